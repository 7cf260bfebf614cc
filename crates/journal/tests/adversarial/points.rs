//! Each operation of the disk as the last one, or as one that fails.

use std::time::Duration;

use tacho_journal::sim::Disk;
use tacho_journal::{CommitSeq, Journal, Opened, Options, Step};

use crate::disk::{Trap, Trapped};
use crate::model::Teller;

const STEPS: usize = 150;

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    PowerCut,
    Kill,
}

fn options() -> Options {
    Options {
        segment_bytes: 64 << 10,
        segments_ready: 1,
        // A few segments: live records are moved all the time.
        log_bytes_min: 192 << 10,
        retry: Duration::ZERO,
        ..Options::default()
    }
}

/// What a life came to.
#[derive(Clone, Copy, Debug)]
struct Lived {
    /// The newest commit that was complete and has to survive a power cut.
    safe: CommitSeq,
    /// The newest complete one.
    complete: CommitSeq,
    /// Segments that were used again, and records that were moved.
    recycled: u64,
    moved: u64,
}

impl Lived {
    /// What has to survive such an end.
    fn must(self, end: End) -> CommitSeq {
        if end == End::Kill { self.complete } else { self.safe }
    }
}

/// A life from its opening to its end. `None`: it died while it was opened.
fn live(disk: &Trapped, teller: &mut Teller, safe: CommitSeq, steps: usize) -> Option<Lived> {
    let mut tries = 0;
    let opened = loop {
        match Journal::open_on(disk.clone(), options()) {
            Ok(opened) => break opened,
            Err(_) if disk.is_dead() => return None,
            // A disk that fails once is no reason to give up for good.
            Err(error) => assert!(tries < 10, "{error}"),
        }
        tries += 1;
    };
    let Opened { journal, mut committer, mut recovered } = opened;
    teller.check(&journal, &mut recovered, safe);
    let mut writer = journal.writer();
    for _ in 0..steps {
        teller.tell(&journal, &mut writer);
        for _ in 0..3 {
            if disk.is_dead() {
                break;
            }
            committer.step();
        }
    }
    if !disk.is_dead() {
        // All is well by now: nothing may be held for ever.
        let mut tries = 0;
        while committer.step() != Step::Idle {
            tries += 1;
            let stats = journal.stats();
            assert!(
                tries < 1_000,
                "it does not come to rest: {} segments, {} bytes, {} of them live",
                stats.segments.get(),
                stats.log_bytes.get(),
                stats.live_bytes.get()
            );
        }
    }
    let complete = journal.committed();
    let safe = teller.asked.range(..=complete).next_back().copied().unwrap_or(CommitSeq::DONE);
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

/// Three lives: the first one with the trap, then one that is cut off soon, then a look.
fn run(seed: u64, trap: Option<(u64, Trap)>, how: End) -> (u64, Option<Lived>) {
    let mut teller = Teller::new(seed);
    let disk = Trapped::new(Disk::new(seed), trap);
    let first = live(&disk, &mut teller, CommitSeq::DONE, STEPS);
    let count = disk.done();
    let safe = first.map_or(CommitSeq::DONE, |lived| lived.must(how));
    let second = Trapped::new(end(&disk, how), None);
    let lived = live(&second, &mut teller, safe, 8).expect("nothing fails");
    let third = Trapped::new(end(&second, how), None);
    live(&third, &mut teller, lived.must(how), 0).expect("nothing fails");
    (count, first)
}

/// One in so many operations is tried: all of them, with `TACHO_JOURNAL_POINTS=1`, take minutes.
fn stride() -> usize {
    std::env::var("TACHO_JOURNAL_POINTS").map_or(8, |text| text.parse().unwrap())
}

/// All operations with some trap; several seeds of what is told and what reaches the disk.
fn every_point(trap: Trap, how: End, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let (count, lived) = run(seed, None, how);
        let lived = lived.expect("nothing fails");
        assert!(lived.recycled > 0 && lived.moved > 0, "not enough happens: {lived:?}");
        for at in (seed % stride() as u64..count).step_by(stride()) {
            let result = std::panic::catch_unwind(|| run(seed, Some((at, trap)), how));
            assert!(result.is_ok(), "seed {seed}, {trap:?} at operation {at}, then {how:?}");
        }
    }
}

#[test]
fn the_power_may_go_at_any_operation() {
    every_point(Trap::Dies, End::PowerCut, 0..3);
}

#[test]
fn the_process_may_die_at_any_operation() {
    every_point(Trap::Dies, End::Kill, 10..12);
}

#[test]
fn any_operation_may_fail_once_and_then_the_power_goes() {
    every_point(Trap::Fails(0), End::PowerCut, 20..22);
}

#[test]
fn any_operations_may_fail_in_a_row_and_then_the_process_dies() {
    every_point(Trap::Fails(4), End::Kill, 30..31);
    every_point(Trap::Fails(2), End::PowerCut, 31..32);
}

#[test]
fn the_disk_may_be_full_for_a_while_at_any_operation() {
    every_point(Trap::Full(6), End::PowerCut, 40..41);
    every_point(Trap::Full(3), End::Kill, 41..42);
}

/// A life that was cut off is opened again, and that is cut off at any operation, again and again.
#[test]
fn opening_may_be_cut_off_at_any_operation() {
    for seed in 50..53 {
        for first in (40..300).step_by(23 * stride()) {
            let mut at = 0;
            loop {
                let mut teller = Teller::new(seed);
                let disk = Trapped::new(Disk::new(seed), Some((first, Trap::Dies)));
                let lived = live(&disk, &mut teller, CommitSeq::DONE, STEPS);
                let how = if first % 2 == 0 { End::PowerCut } else { End::Kill };
                let safe = lived.map_or(CommitSeq::DONE, |lived| lived.must(how));
                let again = Trapped::new(end(&disk, how), Some((at, Trap::Dies)));
                let opened = Journal::open_on(again.clone(), options()).is_ok();
                let once_more = Trapped::new(end(&again, how), Some((at / 2, Trap::Dies)));
                drop(Journal::open_on(once_more.clone(), options()));
                let last = Trapped::new(end(&once_more, how), None);
                live(&last, &mut teller, safe, 3).expect("nothing fails");
                if opened {
                    break;
                }
                at += 1;
            }
            assert!(at < 100, "opening takes {at} operations");
        }
    }
}
