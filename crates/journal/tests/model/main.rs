//! Random process lifetimes of a journal on a disk with every fault, against a model in maps: the
//! state of an opened journal is exactly the state after some commit, and no commit that had to
//! survive is missing.
//!
//! `TACHO_JOURNAL_SEEDS` sets how many runs, `TACHO_JOURNAL_SEED` the only one.

mod life;

use fastrand::Rng;
use life::Run;
use tacho_journal::{MessageId, sim};

const SEEDS: u64 = 1000;

#[test]
fn a_reopened_journal_matches_the_model_after_any_fault() {
    let seeds = sim::seeds(SEEDS);
    let mut moved = 0;
    let mut freed = 0;
    let mut backups = 0;
    let runs = seeds.end - seeds.start;
    for seed in seeds {
        let done = std::panic::catch_unwind(|| Run::new(seed).run());
        let Ok(counts) = done else { panic!("run again with TACHO_JOURNAL_SEED={seed}") };
        moved += counts.moved;
        freed += counts.freed;
        backups += counts.backups;
    }
    let some = moved > 0 && freed > 0 && backups > runs;
    assert!(runs < 100 || some, "{moved} moved, {freed} freed, {backups} backups compared");
}

/// The body of a message, derived from its number.
pub(crate) fn body(id: MessageId) -> Vec<u8> {
    let mut rng = Rng::with_seed(id.get());
    let bytes = match rng.u8(..20) {
        0 => rng.usize(..40_000),
        1..5 => rng.usize(..6000),
        _ => rng.usize(..200),
    };
    (0..bytes).map(|_| rng.u8(..)).collect()
}
