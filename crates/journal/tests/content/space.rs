//! How much of the disk the log takes.

use tacho_journal::sim::Disk;
use tacho_journal::{Condition, Options, QueueId, Record, Step};

use super::{Bench, options};

const OLD: QueueId = QueueId::new(1);
const BUSY: QueueId = QueueId::new(2);

fn log_bytes(bench: &Bench) -> u64 {
    bench.journal.stats().log_bytes.get()
}

#[test]
fn a_session_that_never_returns_does_not_hold_the_log() {
    let mut bench = Bench::new(1, 1);
    for seq in 0..30 {
        let message = bench.message(&[7; 2_000]);
        bench.entry(OLD, seq, message);
        // Between messages that are soon gone.
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
    // While a step moves a little, a segment more may be filled than is freed.
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
fn the_space_of_a_dropped_queue_is_given_back() {
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
    // One file in each step.
    bench.steps(100);
    let used = bench.disk.used_bytes();
    assert!(used < 10 * u64::from(options().segment_bytes), "{used} bytes of files");
}

#[test]
fn more_than_may_be_live_is_refused_until_it_is_gone() {
    let limited = Options { journal_bytes_max: Some(200_000), ..options() };
    let mut bench = Bench::open_with(Disk::new(3), 1, limited);
    let mut seq = 0;
    while bench.journal.condition() == Condition::Fine {
        let message = bench.message(&[7; 3_000]);
        bench.entry(OLD, seq, message);
        bench.commit();
        seq += 1;
        assert!(seq < 100, "no limit");
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

/// Steps until nothing is left to do; what was moved until then.
fn rest(bench: &mut Bench) -> u64 {
    let before = bench.journal.stats().relocated_bytes.get();
    let mut idle = 0;
    for _ in 0..10_000 {
        idle = if bench.committer.step() == Step::Idle { idle + 1 } else { 0 };
        if idle == 20 {
            return bench.journal.stats().relocated_bytes.get() - before;
        }
    }
    panic!("what is live is moved round and round: {:?}", bench.journal.stats().relocated_bytes);
}

/// The log is as small as moving can make it, and larger than it should be.
fn check_rest(mut bench: Bench, messages: u64) {
    let moved = rest(&mut bench);
    let live = bench.journal.stats().live_bytes.get();
    assert!(moved > 0, "the log is as small as it should be");
    assert!(moved <= 3 * live, "{moved} bytes were moved, {live} are live");
    // A little garbage is no reason to begin again.
    bench.append(Record::Remove { queue: OLD, seq: 0 });
    assert_eq!(rest(&mut bench), 0);
    let before = log_bytes(&bench);
    for seq in (1..messages).filter(|seq| seq % 4 != 1) {
        bench.append(Record::Remove { queue: OLD, seq });
    }
    // Now there is something to be gained.
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

// One and the next do not fit into a segment, but take less than half of two: so the log is more
// than twice as large as what is live, in whatever place they are.
#[test]
fn messages_that_fill_less_than_half_of_their_segments_come_to_rest() {
    let options = Options { segment_bytes: 16 << 10, log_bytes_min: 48 << 10, ..options() };
    let mut bench = Bench::open_with(Disk::new(5), 1, options);
    for seq in 0..4 {
        append_old(&mut bench, seq, [5_100, 10_800][seq as usize % 2]);
    }
    check_rest(bench, 4);
}

// While the disk is full the log should be little larger than what is live. With few segments it
// cannot be: the last one is never full.
#[test]
fn a_full_disk_is_not_worn_by_moving_what_cannot_get_smaller() {
    let options = Options { segment_bytes: 16 << 20, segments_ready: 2, ..options() };
    let options = Options { log_bytes_min: 8 * u64::from(options.segment_bytes), ..options };
    let mut bench = Bench::open_with(Disk::new(6), 1, options);
    // More than one segment takes.
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

// What is live in the oldest segment would not find room any more: to move a part of it frees
// nothing, and what makes space would be held.
#[test]
fn the_last_room_of_a_full_disk_is_not_used_up_by_moving() {
    let options = Options { segment_bytes: 1 << 20, log_bytes_min: 1 << 30, ..options() };
    let mut bench = Bench::open_with(Disk::new(7), 1, options);
    let mut messages = 0;
    let mut append = |bench: &mut Bench| {
        append_old(bench, messages, 100 << 10);
        messages += 1;
        messages
    };
    // More than is looked at with a full disk, and nothing of it to be gained.
    while append(&mut bench) < 220 {}
    bench.disk.set_capacity(Some(bench.disk.used_bytes()));
    while bench.journal.condition() == Condition::Fine {
        append(&mut bench);
    }
    // The last segment has been begun. Nine of these go into one; three are left out.
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
    assert!(stats.log_bytes.get() > stats.live_bytes.get() * 3 / 2, "there is nothing to move");
    assert_eq!(stats.relocated_records.get(), 0);
    assert_eq!(bench.journal.condition(), Condition::Full);
    // What is left there finds room: the segment gets free, and is used again.
    remove(&mut bench, &|seq| seq % 2 == 0 && seq < 8);
    assert!(bench.journal.stats().relocated_records.get() > 0);
    assert_eq!(bench.journal.condition(), Condition::Fine);
    let kept = (8..all).filter(|seq| seq % 2 == 0).count();
    assert_eq!(bench.reopen().seen().entries.len(), kept);
}
