//! Random appends, commits, faults, kills and power cuts, each run drawn from a seed.
//!
//! `TACHO_JOURNAL_SEEDS` sets how many runs, `TACHO_JOURNAL_SEED` the only one.

use fastrand::Rng;

use super::*;
use crate::sim;

const SEEDS: u64 = 1500;

#[test]
fn completed_commits_survive_any_fault() {
    for seed in sim::seeds(SEEDS) {
        let done = std::panic::catch_unwind(|| Run::new(seed).run());
        assert!(done.is_ok(), "run again with TACHO_JOURNAL_SEED={seed}");
    }
}

struct Run {
    rng: Rng,
    bench: Bench,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let bench = Bench::new(rng.u64(..), rng.usize(1..=4));
        Self { rng, bench }
    }

    fn run(mut self) {
        for _ in 0..self.rng.usize(1..6) {
            self.live();
            self.die();
        }
    }

    /// Appends and commits a number of times, with or without faults.
    fn live(&mut self) {
        for _ in 0..self.rng.usize(..40) {
            match self.rng.u8(..20) {
                0 => self.change_faults(),
                1 => self.change_capacity(),
                2..10 => {
                    self.bench.committer.step();
                }
                _ => self.append(),
            }
        }
    }

    fn append(&mut self) {
        let writer = self.rng.usize(..self.bench.writers.len());
        let bytes = match self.rng.u8(..10) {
            0 => self.rng.usize(..100_000),
            1..4 => self.rng.usize(..10_000),
            _ => self.rng.usize(..300),
        };
        let level = if self.rng.bool() { Level::Fsynced } else { Level::Written };
        self.bench.append(writer, bytes, level);
    }

    fn change_faults(&mut self) {
        let mut faults = Faults::default();
        if self.rng.bool() {
            faults = Faults::drawn(&mut self.rng, 0.3);
        }
        self.bench.disk.set_faults(faults);
    }

    fn change_capacity(&mut self) {
        let used = self.bench.disk.used_bytes();
        let capacity = self.rng.bool().then(|| used + self.rng.u64(..300_000));
        self.bench.disk.set_capacity(capacity);
    }

    /// Cuts the power or kills the process, checks the log, and reopens it.
    fn die(&mut self) {
        let bench = &self.bench;
        bench.disk.set_faults(Faults::default());
        let (disk, at_least) = if self.rng.bool() {
            (bench.disk.power_cut(), bench.safe())
        } else {
            (bench.disk.kill(), bench.journal.committed().get())
        };
        bench.check(&disk, at_least);
        disk.set_capacity(None);
        let writers = bench.writers.len();
        let synced = bench.synced.clone();
        let next = bench.next;
        self.bench = Bench::open(disk, writers);
        // Commits that had to survive in the last lifetime still have to.
        self.bench.synced = synced.into_iter().filter(|commit| commit.get() <= at_least).collect();
        self.bench.synced.push(self.bench.journal.committed());
        self.bench.next = next;
    }
}
