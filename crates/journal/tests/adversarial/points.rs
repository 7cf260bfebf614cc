//! Each disk operation as the last one that succeeds, or as one that fails.

use std::time::Duration;

use tacho_journal::sim::Disk;
use tacho_journal::{CommitSeq, Journal, Opened, Options, Step};

use crate::disk::{Trap, Trapped};
use crate::model::Workload;

const STEPS: usize = 150;

/// How a process lifetime ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    PowerCut,
    Kill,
}

fn options() -> Options {
    Options {
        segment_bytes: 64 << 10,
        segments_ready: 1,
        // A few segments: live records are relocated constantly.
        log_bytes_min: 192 << 10,
        retry: Duration::ZERO,
        ..Options::default()
    }
}

/// Result of one process lifetime.
#[derive(Clone, Copy, Debug)]
struct Lived {
    /// The newest complete commit that has to survive a power cut.
    safe: CommitSeq,
    /// The newest complete commit.
    complete: CommitSeq,
    /// Recycled segments, and relocated records.
    recycled: u64,
    moved: u64,
}

impl Lived {
    /// The newest commit that has to survive this end.
    fn must(self, end: End) -> CommitSeq {
        if end == End::Kill { self.complete } else { self.safe }
    }
}

/// One lifetime, from opening to end. `None`: the disk died while the journal was opened.
fn live(disk: &Trapped, workload: &mut Workload, safe: CommitSeq, steps: usize) -> Option<Lived> {
    let mut tries = 0;
    let opened = loop {
        match Journal::open_on(disk.clone(), options()) {
            Ok(opened) => break opened,
            Err(_) if disk.is_dead() => return None,
            // A disk that fails once is no reason to give up permanently.
            Err(error) => assert!(tries < 10, "{error}"),
        }
        tries += 1;
    };
    let Opened { journal, mut committer, mut recovered } = opened;
    workload.check(&journal, &mut recovered, safe);
    let mut writer = journal.writer();
    for _ in 0..steps {
        workload.append_some(&journal, &mut writer);
        for _ in 0..3 {
            if disk.is_dead() {
                break;
            }
            committer.step();
        }
    }
    if !disk.is_dead() {
        // The disk works again: the log must settle.
        let mut tries = 0;
        while committer.step() != Step::Idle {
            tries += 1;
            let stats = journal.stats();
            assert!(
                tries < 1_000,
                "compaction does not settle: {} segments, {} bytes, {} of them live",
                stats.segments.get(),
                stats.log_bytes.get(),
                stats.live_bytes.get()
            );
        }
    }
    let complete = journal.committed();
    let safe = workload.asked.range(..=complete).next_back().copied().unwrap_or(CommitSeq::DONE);
    let stats = journal.stats();
    let (recycled, moved) = (stats.recycled_segments.get(), stats.relocated_records.get());
    Some(Lived { safe, complete, recycled, moved })
}

fn end(disk: &Trapped, how: End) -> Disk {
    match how {
        End::PowerCut => disk.disk.power_cut(),
        End::Kill => disk.disk.kill(),
    }
}

/// Three lifetimes: one with the trap, one that is cut off early, one that only checks.
fn run(seed: u64, trap: Option<(u64, Trap)>, how: End) -> (u64, Option<Lived>) {
    let mut workload = Workload::new(seed);
    let disk = Trapped::new(Disk::new(seed), trap);
    let first = live(&disk, &mut workload, CommitSeq::DONE, STEPS);
    let count = disk.done();
    let safe = first.map_or(CommitSeq::DONE, |lived| lived.must(how));
    let second = Trapped::new(end(&disk, how), None);
    let lived = live(&second, &mut workload, safe, 8).expect("the disk works");
    let third = Trapped::new(end(&second, how), None);
    live(&third, &mut workload, lived.must(how), 0).expect("the disk works");
    (count, first)
}

/// Every n-th operation is tried; all of them, with `TACHO_JOURNAL_POINTS=1`, take minutes.
fn stride() -> usize {
    std::env::var("TACHO_JOURNAL_POINTS").map_or(8, |text| text.parse().unwrap())
}

/// Tries a trap at all operations, with several seeds for the workload and the disk.
fn every_point(trap: Trap, how: End, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let (count, lived) = run(seed, None, how);
        let lived = lived.expect("the disk works");
        assert!(lived.recycled > 0 && lived.moved > 0, "the workload does too little: {lived:?}");
        for at in (seed % stride() as u64..count).step_by(stride()) {
            let result = std::panic::catch_unwind(|| run(seed, Some((at, trap)), how));
            assert!(result.is_ok(), "seed {seed}, {trap:?} at operation {at}, then {how:?}");
        }
    }
}

#[test]
fn power_may_fail_at_any_operation() {
    every_point(Trap::Dies, End::PowerCut, 0..3);
}

#[test]
fn the_process_may_die_at_any_operation() {
    every_point(Trap::Dies, End::Kill, 10..12);
}

#[test]
fn any_operation_may_fail_once_before_a_power_cut() {
    every_point(Trap::Fails(0), End::PowerCut, 20..22);
}

#[test]
fn operations_may_fail_in_a_row_before_the_process_dies() {
    every_point(Trap::Fails(4), End::Kill, 30..31);
    every_point(Trap::Fails(2), End::PowerCut, 31..32);
}

#[test]
fn the_disk_may_be_temporarily_full_at_any_operation() {
    every_point(Trap::Full(6), End::PowerCut, 40..41);
    every_point(Trap::Full(3), End::Kill, 41..42);
}

/// Recovery after a cut-off lifetime is itself cut off at every operation.
#[test]
fn recovery_may_be_cut_off_at_any_operation() {
    for seed in 50..53 {
        for first in (40..300).step_by(23 * stride()) {
            let mut at = 0;
            loop {
                let mut workload = Workload::new(seed);
                let disk = Trapped::new(Disk::new(seed), Some((first, Trap::Dies)));
                let lived = live(&disk, &mut workload, CommitSeq::DONE, STEPS);
                let how = if first % 2 == 0 { End::PowerCut } else { End::Kill };
                let safe = lived.map_or(CommitSeq::DONE, |lived| lived.must(how));
                let again = Trapped::new(end(&disk, how), Some((at, Trap::Dies)));
                let opened = Journal::open_on(again.clone(), options()).is_ok();
                let once_more = Trapped::new(end(&again, how), Some((at / 2, Trap::Dies)));
                drop(Journal::open_on(once_more.clone(), options()));
                let last = Trapped::new(end(&once_more, how), None);
                live(&last, &mut workload, safe, 3).expect("the disk works");
                if opened {
                    break;
                }
                at += 1;
            }
            assert!(at < 100, "opening takes {at} operations");
        }
    }
}
