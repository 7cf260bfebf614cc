//! Every kind of fault, one at a time.

use fastrand::Rng;

use super::*;
use crate::blocks::BLOCK;
use crate::frame;
use crate::pool::Ready;
use crate::segment::parse_name;
use crate::storage::Storage as _;

fn always(fault: impl FnOnce(&mut Faults)) -> Faults {
    let mut faults = Faults::default();
    fault(&mut faults);
    faults
}

#[test]
fn short_writes_are_continued() {
    let mut bench = Bench::new(1, 1);
    bench.disk.set_faults(always(|faults| faults.short = 0.9));
    for _ in 0..20 {
        bench.commit(10_000, Level::Fsynced);
    }
    bench.disk.set_faults(Faults::default());
    assert_eq!(bench.check(&bench.disk.power_cut(), 20), 20);
}

#[test]
fn after_a_failed_sync_the_frame_is_written_to_another_file() {
    for seed in 0..50 {
        let mut bench = Bench::new(seed, 1);
        bench.commit(5000, Level::Fsynced);
        bench.committer.step();
        bench.disk.set_faults(always(|faults| faults.sync_error = 1.0));
        let commit = bench.append(0, 5000, Level::Fsynced);
        assert_eq!(bench.committer.step(), Step::Held);
        assert_eq!(bench.journal.condition(), Condition::Failing);
        assert!(bench.journal.committed() < commit);
        bench.disk.set_faults(Faults::default());
        assert_eq!(bench.committer.step(), Step::Committed(commit));
        while bench.committer.step() != Step::Idle {}
        assert_eq!(bench.journal.condition(), Condition::Fine);
        assert_eq!(bench.journal.stats().sync_errors.get(), 1);
        assert_eq!(bench.check(&bench.disk.power_cut(), 2), 2);
    }
}

#[test]
fn written_commits_move_along_when_their_file_fails() {
    for seed in 0..50 {
        let mut bench = Bench::new(seed, 1);
        bench.commit(5000, Level::Fsynced);
        for _ in 0..3 {
            bench.commit(3000, Level::Written);
        }
        bench.disk.set_faults(always(|faults| faults.sync_error = 1.0));
        let commit = bench.append(0, 100, Level::Fsynced);
        for _ in 0..5 {
            assert_eq!(bench.committer.step(), Step::Held);
        }
        bench.disk.set_faults(Faults::default());
        assert_eq!(bench.committer.step(), Step::Committed(commit));
        assert_eq!(bench.journal.stats().lost_frames.get(), 0);
        assert_eq!(bench.check(&bench.disk.power_cut(), commit.get()), commit.get());
    }
}

#[test]
fn a_written_commit_that_cannot_be_saved_leaves_no_gap() {
    let mut bench = Bench::new(1, 1);
    bench.commit(5000, Level::Fsynced);
    let lost = bench.commit(3000, Level::Written);
    bench.append(0, 100, Level::Fsynced);
    bench.disk.set_faults(always(|faults| {
        faults.sync_error = 1.0;
        faults.read_error = 1.0;
    }));
    assert_eq!(bench.committer.step(), Step::Held);
    bench.disk.set_faults(Faults::default());
    assert_eq!(bench.committer.step(), Step::Committed(CommitSeq::new(3)));
    assert_eq!(bench.journal.stats().lost_frames.get(), 1);
    bench.appended.insert(lost.get(), Vec::new());
    assert_eq!(bench.check(&bench.disk.power_cut(), 3), 3);
}

#[test]
fn a_failed_write_is_repeated_in_another_segment() {
    for seed in 0..20 {
        let mut bench = Bench::new(seed, 1);
        bench.commit(5000, Level::Fsynced);
        bench.disk.set_faults(always(|faults| faults.write_error = 1.0));
        let commit = bench.append(0, 9000, Level::Fsynced);
        for _ in 0..3 {
            assert_eq!(bench.committer.step(), Step::Held);
        }
        assert_eq!(bench.journal.condition(), Condition::Failing);
        bench.disk.set_faults(Faults::default());
        assert_eq!(bench.committer.step(), Step::Committed(commit));
        while bench.committer.step() != Step::Idle {}
        assert_eq!(bench.journal.condition(), Condition::Fine);
        assert_eq!(bench.check(&bench.disk.power_cut(), 2), 2);
    }
}

#[test]
fn a_full_disk_delays_commits_until_there_is_space() {
    let mut bench = Bench::new(1, 1);
    bench.commit(1000, Level::Fsynced);
    bench.disk.set_capacity(Some(bench.disk.used_bytes()));
    // Prepared segments can still be written: room for the records that free space.
    let mut commits = 1;
    let held = loop {
        let commit = bench.append(0, 1000, Level::Fsynced);
        if bench.committer.step() == Step::Held {
            break commit;
        }
        commits += 1;
    };
    assert!(commits > 10, "only {commits}");
    assert_eq!(bench.journal.condition(), Condition::Full);
    let later = bench.append(0, 1000, Level::Fsynced);
    assert_eq!(bench.committer.step(), Step::Held);
    assert_eq!(bench.journal.committed().get(), commits);
    bench.disk.set_capacity(None);
    assert_eq!(bench.committer.step(), Step::Committed(held));
    assert_eq!(bench.committer.step(), Step::Committed(later));
    while bench.committer.step() != Step::Idle {}
    assert_eq!(bench.journal.condition(), Condition::Fine);
    assert_eq!(bench.check(&bench.disk.power_cut(), later.get()), later.get());
}

#[test]
fn the_disk_is_known_to_be_full_before_the_last_segment_is() {
    let mut bench = Bench::new(1, 1);
    bench.commit(1000, Level::Fsynced);
    bench.disk.set_capacity(Some(bench.disk.used_bytes()));
    while bench.journal.condition() == Condition::Fine {
        bench.commit(1000, Level::Fsynced);
    }
    assert_eq!(bench.journal.condition(), Condition::Full);
    for _ in 0..10 {
        bench.commit(1000, Level::Fsynced);
    }
}

#[test]
fn a_long_failure_does_not_fill_the_disk() {
    let mut bench = Bench::new(1, 1);
    bench.commit(1000, Level::Fsynced);
    bench.append(0, 1000, Level::Fsynced);
    for _ in 0..100 {
        bench.disk.set_faults(always(|faults| faults.sync_error = 0.5));
        bench.committer.step();
        bench.append(0, 1000, Level::Fsynced);
    }
    bench.disk.set_faults(Faults::default());
    while bench.committer.step() != Step::Idle {}
    for _ in 0..200 {
        bench.committer.step();
    }
    let files = bench.disk.list().expect("names").len() as u64;
    let stats = bench.journal.stats();
    assert!(stats.sync_errors.get() > 10);
    assert!(files <= stats.segments.get() + 4, "{files} files, {} segments", stats.segments.get());
}

#[test]
fn failed_file_creations_are_retried() {
    for seed in 0..20 {
        let mut bench = Bench::new(seed, 1);
        bench.disk.set_faults(always(|faults| faults.name_error = 0.5));
        let mut committed = 0;
        for _ in 0..200 {
            bench.append(0, 2000, Level::Fsynced);
            if let Step::Committed(commit) = bench.committer.step() {
                committed = commit.get();
            }
        }
        assert!(committed > 0);
        bench.disk.set_faults(Faults::default());
        bench.check(&bench.disk.power_cut(), committed);
    }
}

#[test]
fn after_a_failure_commits_complete_only_when_synced() {
    for seed in 0..50 {
        let mut bench = Bench::new(seed, 1);
        bench.commit(5000, Level::Fsynced);
        bench.disk.set_faults(always(|faults| faults.write_error = 1.0));
        let commit = bench.append(0, 5000, Level::Written);
        assert_eq!(bench.committer.step(), Step::Held);
        bench.disk.set_faults(Faults::default());
        assert_eq!(bench.committer.step(), Step::Committed(commit));
        assert_eq!(bench.check(&bench.disk.power_cut(), 2), 2, "seed {seed}");
    }
}

/// The newest frame that any frame declares synced.
fn claimed(disk: &Disk) -> u64 {
    let names = disk.list().expect("names");
    let segments = names.iter().filter_map(|name| Some((parse_name(name)?, name)));
    let mut claimed = 0;
    for (id, name) in segments {
        let file = disk.open(name).expect("a file");
        let blocks = (0..file.size().expect("a size")).step_by(BLOCK);
        let headers = blocks.filter_map(|at| frame::header_at(&*file, at).expect("readable"));
        let synced = headers.filter(|header| header.segment == id).map(|header| header.synced);
        claimed = claimed.max(synced.max().unwrap_or(0));
    }
    claimed
}

// Recovery reports a missing frame as damage if a later frame declares it synced.
#[test]
fn frames_declared_synced_survive_a_power_cut() {
    let mut claims = 0;
    for seed in 0..200 {
        let mut rng = Rng::with_seed(seed);
        let mut bench = Bench::new(seed, 1);
        for _ in 0..rng.u32(1..12) {
            let fails = rng.u32(..4) == 0;
            let sync_error = if fails { 1.0 } else { 0.0 };
            bench.disk.set_faults(always(|faults| faults.sync_error = sync_error));
            let level = if rng.bool() { Level::Fsynced } else { Level::Written };
            bench.append(0, rng.usize(..6000), level);
            bench.committer.step();
        }
        bench.disk.set_faults(Faults::default());
        let claimed = claimed(&bench.disk);
        claims += claimed;
        let disk = bench.disk.power_cut();
        bench.check(&disk, claimed);
    }
    assert!(claims > 200, "{claims}");
}

// A single failed read once ended the start with "a frame is missing".
#[test]
fn unsynced_frames_are_found_on_a_disk_whose_reads_fail_now_and_then() {
    for seed in 0..50 {
        let mut bench = Bench::new(seed, 1);
        bench.commit(10, Level::Fsynced);
        (0..4).for_each(|_| _ = bench.commit(10, Level::Written));
        let (id, segment) = bench.committer.shared.segments.last().expect("a segment");
        bench.disk.set_faults(always(|faults| faults.read_error = 0.05));
        let frames = settle::unsynced(id, &segment.file, None, 5).expect("read");
        assert_eq!(frames.len(), 4, "seed {seed}");
    }
}

// A partial takeover from a failing file once made the next start fail.
#[test]
fn a_partial_takeover_of_frames_is_ignored() {
    let mut bench = Bench::new(1, 1);
    bench.commit(10, Level::Fsynced);
    bench.commit(10, Level::Written);
    bench.commit(10, Level::Written);
    let (id, segment) = bench.committer.shared.segments.last().expect("a segment");
    let mut frames = settle::unsynced(id, &segment.file, None, 3).expect("read");
    assert_eq!(frames.len(), 2);
    let next = SegmentId::new(9);
    let file = bench.disk.create(&file_name(next)).expect("made");
    let mut tail = Tail::new(Ready { id: next, file, bytes: 64 << 10, is_raw: false }, None, 1);
    tail.offset = frames[0].bytes.len() as u64;
    tail.write(&mut frames[1], 1).expect("written");
    tail.sync().expect("synced");
    bench.disk.damage(&file_name(id), 2 * BLOCK, BLOCK);
    let mut bench = Bench::open(bench.disk.kill(), 1);
    assert_eq!(bench.journal.committed(), CommitSeq::new(2));
    assert_eq!(bench.commit(10, Level::Fsynced), CommitSeq::new(3));
}
