//! Random lives of a journal on a disk with every fault, against a model that keeps everything in
//! maps: what a journal shows when it is opened is exactly what the records up to some commit say,
//! and that commit is none before what was promised.
//!
//! `TACHO_JOURNAL_SEEDS` sets how many runs, `TACHO_JOURNAL_SEED` the only one.

mod life;

use fastrand::Rng;
use life::Run;
use tacho_journal::{MessageId, sim};

const SEEDS: u64 = 1000;

#[test]
fn the_journal_says_what_was_told_to_it_whatever_happens() {
    let seeds = sim::seeds(SEEDS);
    let mut moved = 0;
    let mut freed = 0;
    let runs = seeds.end - seeds.start;
    for seed in seeds {
        let done = std::panic::catch_unwind(|| Run::new(seed).run());
        let Ok(counts) = done else { panic!("run again with TACHO_JOURNAL_SEED={seed}") };
        moved += counts.moved;
        freed += counts.freed;
    }
    assert!(runs < 100 || moved > 0 && freed > 0, "{moved} moved, {freed} freed");
}

/// The body of a message: its number says all.
pub(crate) fn body(id: MessageId) -> Vec<u8> {
    let mut rng = Rng::with_seed(id.get());
    let bytes = match rng.u8(..20) {
        0 => rng.usize(..40_000),
        1..5 => rng.usize(..6000),
        _ => rng.usize(..200),
    };
    (0..bytes).map(|_| rng.u8(..)).collect()
}
