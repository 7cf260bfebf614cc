//! Disk space taken by the log.

use tacho_journal::sim::Disk;
use tacho_journal::{Condition, Options, QueueId, Record, Step};

use super::{Bench, options};

const OLD: QueueId = QueueId::new(1);
const BUSY: QueueId = QueueId::new(2);

fn log_bytes(bench: &Bench) -> u64 {
    bench.journal.stats().log_bytes.get()
}

#[test]
fn an_idle_session_does_not_block_compaction() {
    let mut bench = Bench::new(1, 1);
    for seq in 0..30 {
        let message = bench.message(&[7; 2_000]);
        bench.entry(OLD, seq, message);
        // Between short-lived messages.
        let message = bench.message(&[8; 2_000]);
        bench.entry(BUSY, seq, message);
        bench.commit();
    }
    let mut largest = 0;
    for seq in 30..1_500 {
        let message = bench.message(&[8; 2_000]);
        bench.entry(BUSY, seq, message);
        bench.append(Record::Remove { queue: BUSY, seq: seq - 30 });
        bench.committer.step();
        largest = largest.max(log_bytes(&bench));
    }
    let stats = bench.journal.stats();
    let bound = options().log_bytes_min.max(2 * stats.live_bytes.get());
    assert!(bound < 350_000, "{bound}");
    // While compaction relocates in small steps, one more segment may be filled than is freed.
    assert!(largest < bound + 6 * u64::from(options().segment_bytes), "{largest} of {bound}");
    assert!(stats.relocated_records.get() > 60);
    let mut bench = bench.reopen();
    let seen = bench.seen();
    let old: Vec<_> = seen.entries.iter().filter(|((queue, _), _)| *queue == OLD.get()).collect();
    assert_eq!(old.len(), 30);
    for (_, entry) in old {
        let id = entry.message.and_then(tacho_journal::MessageId::new).expect("a message");
        let (_, body) = bench.journal.read(&[id]).pop().expect("an answer");
        assert_eq!(&*body.expect("readable"), [7; 2_000]);
    }
}

#[test]
fn the_space_of_a_dropped_queue_is_freed() {
    let mut bench = Bench::new(2, 1);
    for seq in 0..500 {
        let message = bench.message(&[7; 3_000]);
        bench.entry(OLD, seq, message);
        bench.append(Record::Put {
            queue: OLD,
            key: &seq.to_le_bytes(),
            version: 0,
            value: b"v",
            message: None,
        });
        bench.commit();
    }
    assert!(log_bytes(&bench) > 1_500_000);
    bench.append(Record::DropQueue { queue: OLD });
    bench.commit();
    bench.settle();
    assert!(log_bytes(&bench) <= 2 * u64::from(options().segment_bytes), "{}", log_bytes(&bench));
    assert_eq!(bench.journal.stats().live_bytes.get(), 0);
    // One file per step.
    bench.steps(100);
    let used = bench.disk.used_bytes();
    assert!(used < 10 * u64::from(options().segment_bytes), "{used} bytes of files");
}

#[test]
fn appends_beyond_the_live_limit_are_refused_until_space_is_freed() {
    let limited = Options { journal_bytes_max: Some(200_000), ..options() };
    let mut bench = Bench::open_with(Disk::new(3), 1, limited);
    let mut seq = 0;
    while bench.journal.condition() == Condition::Fine {
        let message = bench.message(&[7; 3_000]);
        bench.entry(OLD, seq, message);
        bench.commit();
        seq += 1;
        assert!(seq < 100, "the limit is never reached");
    }
    assert_eq!(bench.journal.condition(), Condition::Limited);
    assert!(bench.journal.stats().live_bytes.get() > 200_000);
    for removed in 0..seq / 2 {
        bench.append(Record::Remove { queue: OLD, seq: removed });
    }
    bench.commit();
    assert_eq!(bench.journal.condition(), Condition::Fine);
}

#[test]
fn restarts_do_not_fill_the_disk() {
    let mut bench = Bench::new(4, 1);
    for seq in 0..60 {
        let message = bench.message(&[7; 500]);
        bench.entry(OLD, seq, message);
        bench.commit();
        bench = bench.reopen();
        assert_eq!(bench.seen().entries.len() as u64, seq + 1);
    }
    bench.settle();
    let bound = options().log_bytes_min + 6 * u64::from(options().segment_bytes);
    assert!(bench.disk.used_bytes() < bound, "{}", bench.disk.used_bytes());
}

/// Steps until idle; returns the bytes relocated.
fn rest(bench: &mut Bench) -> u64 {
    let before = bench.journal.stats().relocated_bytes.get();
    let mut idle = 0;
    for _ in 0..10_000 {
        idle = if bench.committer.step() == Step::Idle { idle + 1 } else { 0 };
        if idle == 20 {
            return bench.journal.stats().relocated_bytes.get() - before;
        }
    }
    panic!(
        "compaction does not settle: {:?} bytes relocated",
        bench.journal.stats().relocated_bytes
    );
}

/// The log is as small as compaction can make it, and still above its target size.
fn check_rest(mut bench: Bench, messages: u64) {
    let moved = rest(&mut bench);
    let live = bench.journal.stats().live_bytes.get();
    assert!(moved > 0, "the log is at its target size already");
    assert!(moved <= 3 * live, "{moved} bytes relocated, {live} live");
    // A little garbage must not restart compaction.
    bench.append(Record::Remove { queue: OLD, seq: 0 });
    assert_eq!(rest(&mut bench), 0);
    let before = log_bytes(&bench);
    for seq in (1..messages).filter(|seq| seq % 4 != 1) {
        bench.append(Record::Remove { queue: OLD, seq });
    }
    // Now compaction pays.
    rest(&mut bench);
    let after = log_bytes(&bench);
    let segment = u64::from(bench.journal.options().segment_bytes);
    assert!(after + segment <= before, "{before} bytes of log became {after}");
    assert_eq!(bench.reopen().seen().entries.len() as u64, (messages + 2) / 4);
}

fn append_old(bench: &mut Bench, seq: u64, bytes: usize) {
    let message = bench.message(&vec![7; bytes]);
    bench.entry(OLD, seq, message);
    bench.committer.step();
}

// Two messages do not fit into one segment, but one fills less than half of it: wherever they are,
// the log is more than twice as large as the live records.
#[test]
fn compaction_settles_when_messages_fill_less_than_half_a_segment() {
    let options = Options { segment_bytes: 16 << 10, log_bytes_min: 48 << 10, ..options() };
    let mut bench = Bench::open_with(Disk::new(5), 1, options);
    for seq in 0..4 {
        append_old(&mut bench, seq, [5_100, 10_800][seq as usize % 2]);
    }
    check_rest(bench, 4);
}

// While the disk is full the log should be little larger than its live records. With few segments
// it cannot be: the last one is never full.
#[test]
fn a_full_disk_is_not_compacted_without_gain() {
    let segment_bytes = 16 << 20;
    let options = Options { segment_bytes, segments_ready: 2, ..options() };
    let options = Options { first_segment_bytes: segment_bytes, ..options };
    let options = Options { log_bytes_min: 8 * u64::from(segment_bytes), ..options };
    let mut bench = Bench::open_with(Disk::new(6), 1, options);
    // More than one segment holds.
    let mut messages = 200;
    (0..messages).for_each(|seq| append_old(&mut bench, seq, 100 << 10));
    bench.steps(10);
    bench.disk.set_capacity(Some(bench.disk.used_bytes()));
    let mut held = 0;
    while held < 20 {
        append_old(&mut bench, messages, 100 << 10);
        messages += 1;
        held += u64::from(bench.journal.condition() == Condition::Full);
    }
    check_rest(bench, messages);
}

// The live records of the oldest segment no longer fit: relocating a part of them frees nothing and
// would use up the room for the records that free space.
#[test]
fn compaction_does_not_use_up_the_last_room_of_a_full_disk() {
    let options = Options { segment_bytes: 1 << 20, log_bytes_min: 1 << 30, ..options() };
    let mut bench = Bench::open_with(Disk::new(7), 1, options);
    let mut messages = 0;
    let mut append = |bench: &mut Bench| {
        append_old(bench, messages, 100 << 10);
        messages += 1;
        messages
    };
    // More than compaction scans on a full disk, and without gain.
    while append(&mut bench) < 220 {}
    bench.disk.set_capacity(Some(bench.disk.used_bytes()));
    while bench.journal.condition() == Condition::Fine {
        append(&mut bench);
    }
    // The last segment is in use. Nine of these fit into one; three are left out.
    for _ in 0..5 {
        append(&mut bench);
    }
    let all = append(&mut bench);
    let remove = |bench: &mut Bench, which: &dyn Fn(u64) -> bool| {
        for seq in (0..all).filter(|seq| which(*seq)) {
            bench.append(Record::Remove { queue: OLD, seq });
        }
        let commit = bench.journal.committed().get() + 1;
        assert_eq!(bench.committer.step(), Step::Committed(tacho_journal::CommitSeq::new(commit)));
        bench.steps(200);
    };
    remove(&mut bench, &|seq| seq % 2 == 1);
    let stats = bench.journal.stats();
    assert!(stats.log_bytes.get() > stats.live_bytes.get() * 3 / 2, "compaction has no work");
    assert_eq!(stats.relocated_records.get(), 0);
    assert_eq!(bench.journal.condition(), Condition::Full);
    // The remaining live records fit: the segment is freed and recycled.
    remove(&mut bench, &|seq| seq % 2 == 0 && seq < 8);
    assert!(bench.journal.stats().relocated_records.get() > 0);
    assert_eq!(bench.journal.condition(), Condition::Fine);
    let kept = (8..all).filter(|seq| seq % 2 == 0).count();
    assert_eq!(bench.reopen().seen().entries.len(), kept);
}
