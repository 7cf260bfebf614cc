//! Single cases: tombstones, records in any order, and when a message can be read.

use tacho_journal::{
    CommitSeq, Counter, Level, MessageId, QueueId, ReadError, Record, Step, Urgency, Writer,
};

use super::Bench;

// Far from the identifiers that a journal assigns here.
const QUEUE: QueueId = QueueId::new(1_000_001);
const OTHER: QueueId = QueueId::new(1_000_002);

/// Commits short-lived messages until all older records are relocated or freed.
fn turn_over(bench: &mut Bench) {
    turn(bench, 80);
}

fn turn(bench: &mut Bench, commits: u64) {
    for seq in 0..commits {
        let queue = bench.journal.new_queue_id();
        let message = bench.message(&[1; 4_000]);
        bench.entry(queue, seq, message);
        bench.commit();
        bench.append(Record::DropQueue { queue });
        bench.commit();
    }
}

/// Name of the oldest segment.
fn oldest(bench: &Bench) -> String {
    use tacho_journal::storage::Storage;
    bench.disk.list().expect("names").into_iter().min().expect("a segment")
}

fn body(bench: &Bench, id: MessageId) -> Result<Vec<u8>, ReadError> {
    let (_, body) = bench.journal.read(&[id]).pop().expect("an answer");
    body.map(|body| body.to_vec())
}

#[test]
fn old_live_records_are_relocated_with_their_current_state() {
    let mut bench = Bench::new(1, 1);
    let message = bench.message(b"old");
    bench.entry(QUEUE, 1, message);
    let without = bench.message(b"not needed");
    bench.entry(QUEUE, 2, without);
    bench.append(Record::Put { queue: QUEUE, key: b"k", version: 3, value: b"v", message: None });
    bench.commit();
    bench.append(Record::State { queue: QUEUE, seq: 1, state: 77, keep_message: true });
    bench.append(Record::State { queue: QUEUE, seq: 2, state: 78, keep_message: false });
    let first = oldest(&bench);
    turn_over(&mut bench);
    assert_ne!(oldest(&bench), first, "the first segment is gone");
    assert!(bench.journal.stats().relocated_records.get() >= 4);
    assert_eq!(body(&bench, message).expect("moved"), b"old");
    assert!(matches!(body(&bench, without), Err(ReadError::Gone)));
    let mut bench = bench.reopen();
    let seen = bench.seen();
    let states: Vec<_> = seen.entries.values().map(|e| (e.message, e.state, &e.meta[..])).collect();
    let expected = [(Some(message.get()), 77, &b"meta"[..]), (None, 78, &b"meta"[..])];
    assert_eq!(states, expected);
    assert_eq!(seen.keys[&(QUEUE.get(), b"k".to_vec())].value, b"v");
}

#[test]
fn removed_records_do_not_reappear() {
    let mut bench = Bench::new(2, 1);
    let kept = bench.message(b"kept");
    let message = bench.message(b"removed");
    bench.entry(QUEUE, 1, kept);
    bench.entry(QUEUE, 2, message);
    bench.entry(OTHER, 1, message);
    bench.append(Record::Put { queue: OTHER, key: b"k", version: 0, value: b"", message: None });
    bench.commit();
    // Relocated, then removed, then the tombstones are freed as well.
    turn_over(&mut bench);
    bench.append(Record::Remove { queue: QUEUE, seq: 2 });
    bench.append(Record::DropQueue { queue: OTHER });
    bench.commit();
    turn_over(&mut bench);
    let mut bench = bench.reopen();
    let seen = bench.seen();
    assert!(seen.entries.keys().eq([&(QUEUE.get(), 1)]), "{seen:?}");
    assert!(seen.keys.is_empty());
}

#[test]
fn a_late_older_value_does_not_revive_a_deleted_key() {
    let mut bench = Bench::new(3, 1);
    let put = |version| Record::Put {
        queue: QueueId::COMMON,
        key: b"r/topic",
        version,
        value: b"v",
        message: None,
    };
    bench.append(put(10));
    bench.append(Record::Delete { queue: QueueId::COMMON, key: b"r/topic", version: 12 });
    bench.commit();
    // Into a segment after that of the tombstone, which is freed first.
    for _ in 0..12 {
        bench.message(&[0; 3_000]);
        bench.commit();
    }
    bench.append(put(11));
    // Its segment is not freed together with that of the tombstone.
    let kept = bench.message(b"kept");
    bench.entry(QUEUE, 1, kept);
    bench.commit();
    let first = oldest(&bench);
    // In any order of freeing, the tombstone must outlive the value.
    for _ in 0..100 {
        turn(&mut bench, 1);
        bench = bench.reopen();
        assert!(bench.seen().keys.is_empty());
    }
    assert_ne!(oldest(&bench), first, "the first segment is gone");
    bench.append(put(13));
    bench.commit();
    let mut bench = bench.reopen();
    assert_eq!(bench.seen().keys.len(), 1);
}

#[test]
fn an_equal_version_replaces_and_an_older_one_does_not() {
    let mut bench = Bench::new(4, 1);
    for (version, value) in [(5, b"a"), (5, b"b"), (4, b"c")] {
        let queue = QUEUE;
        bench.append(Record::Put { queue, key: b"k", version, value, message: None });
    }
    bench.append(Record::Delete { queue: QUEUE, key: b"k", version: 4 });
    bench.commit();
    let mut bench = bench.reopen();
    let seen = bench.seen();
    let value = seen.keys.values().next().expect("not deleted");
    assert_eq!((value.version, &value.value[..]), (5, &b"b"[..]));
}

/// Within a frame the records of the first writer are first.
fn append(writer: &mut Writer, record: Record<'_>) -> CommitSeq {
    writer.append(record, Level::Written, Urgency::Rides)
}

#[test]
fn an_entry_may_precede_its_message() {
    let mut bench = Bench::new(5, 2);
    let id = bench.journal.new_message_id();
    append(&mut bench.writers[1], Record::Message { id, body: &[b"later"] });
    append(&mut bench.writers[1], Record::Open { message: id, meta: b"m" });
    let entry = Record::Entry { queue: QUEUE, seq: 1, message: id, state: 0, meta: b"" };
    append(&mut bench.writers[0], entry);
    append(&mut bench.writers[0], Record::Remove { queue: QUEUE, seq: 1 });
    let entry = Record::Entry { queue: OTHER, seq: 1, message: id, state: 0, meta: b"" };
    append(&mut bench.writers[0], entry);
    bench.commit();
    assert_eq!(body(&bench, id).expect("there"), b"later");
    let mut bench = bench.reopen();
    assert_eq!(bench.recovered.report().unresolved, 0);
    let seen = bench.seen();
    assert_eq!(seen.entries.len(), 1);
    // Both queues count as served although their entries precede the message.
    assert_eq!(seen.opens[&id.get()], [(b"m".to_vec(), [QUEUE.get(), OTHER.get()].into())]);
    assert_eq!(body(&bench, id).expect("there"), b"later");
}

#[test]
fn the_end_of_a_message_may_precede_its_opening() {
    let mut bench = Bench::new(6, 2);
    let id = bench.journal.new_message_id();
    append(&mut bench.writers[1], Record::Message { id, body: &[b"x"] });
    append(&mut bench.writers[1], Record::Open { message: id, meta: b"1" });
    append(&mut bench.writers[0], Record::Done { message: id });
    bench.commit();
    let mut bench = bench.reopen();
    assert!(bench.seen().opens.is_empty());
}

#[test]
fn a_relocated_open_message_keeps_its_served_queues() {
    let mut bench = Bench::new(7, 1);
    let id = bench.message(b"open");
    bench.append(Record::Open { message: id, meta: b"one" });
    bench.entry(QUEUE, 1, id);
    bench.append(Record::Open { message: id, meta: b"two" });
    bench.append(Record::Remove { queue: QUEUE, seq: 1 });
    bench.append(Record::Done { message: id });
    bench.commit();
    let first = oldest(&bench);
    turn_over(&mut bench);
    assert_ne!(oldest(&bench), first, "the first segment is gone");
    let mut bench = bench.reopen();
    let opened = [
        (b"one".to_vec(), [QUEUE.get()].into()),
        (b"two".to_vec(), std::collections::BTreeSet::new()),
    ];
    let seen = bench.seen();
    assert_eq!(seen.opens[&id.get()], opened);
    assert_eq!(seen.bodies[&id.get()], b"open");
    bench.append(Record::Done { message: id });
    bench.commit();
    assert!(bench.reopen().seen().opens.is_empty());
}

#[test]
fn a_message_is_readable_from_its_commit_until_it_is_unreferenced() {
    let mut bench = Bench::new(8, 1);
    let id = bench.message(b"x");
    assert!(matches!(body(&bench, id), Err(ReadError::NotYet)));
    bench.entry(QUEUE, 1, id);
    assert!(matches!(body(&bench, id), Err(ReadError::NotYet)));
    bench.commit();
    assert_eq!(body(&bench, id).expect("there"), b"x");
    // A message that was never written: unknown until the next commit.
    let never = bench.journal.new_message_id();
    assert!(matches!(body(&bench, never), Err(ReadError::Gone)), "no record is waiting");
    bench.message(b"y");
    let never = bench.journal.new_message_id();
    assert!(matches!(body(&bench, never), Err(ReadError::NotYet)));
    bench.message(b"z");
    assert_eq!(bench.committer.step(), Step::Committed(CommitSeq::new(2)));
    bench.message(b"more");
    assert!(matches!(body(&bench, never), Err(ReadError::Gone)), "the answer does not stay open");
    bench.append(Record::Remove { queue: QUEUE, seq: 1 });
    bench.commit();
    turn_over(&mut bench);
    assert!(matches!(body(&bench, id), Err(ReadError::Gone)));
}

#[test]
fn a_message_without_references_is_kept_until_restart() {
    let mut bench = Bench::new(9, 1);
    let id = bench.message(b"fresh");
    bench.commit();
    turn_over(&mut bench);
    assert_eq!(body(&bench, id).expect("kept"), b"fresh");
    bench.entry(QUEUE, 1, id);
    bench.commit();
    let bench = bench.reopen();
    assert_eq!(body(&bench, id).expect("kept"), b"fresh");
    // After a restart no writer can still refer to it.
    let mut bench = bench.reopen();
    let id = bench.message(b"fresh");
    bench.commit();
    let bench = bench.reopen();
    assert!(matches!(body(&bench, id), Err(ReadError::Gone)));
}

#[test]
fn identifiers_are_not_assigned_twice() {
    let mut bench = Bench::new(10, 1);
    let (mut last_message, mut last_queue) = (0, 0);
    for _ in 0..4 {
        for _ in 0..3 {
            let id = bench.message(b"x");
            let queue = bench.journal.new_queue_id();
            assert!(id.get() > last_message && queue.get() > last_queue);
            (last_message, last_queue) = (id.get(), queue.get());
            bench.entry(queue, 1, id);
            bench.commit();
            bench.append(Record::DropQueue { queue });
            bench.commit();
        }
        turn_over(&mut bench);
        bench = bench.reopen();
    }
}

#[test]
fn a_large_queue_is_dropped_in_small_steps() {
    let mut bench = Bench::new(11, 1);
    for seq in 0..20_000 {
        let message = bench.message(b"x");
        bench.entry(QUEUE, seq, message);
    }
    bench.commit();
    assert_eq!(bench.journal.stats().live_entries.get(), 20_000);
    bench.append(Record::DropQueue { queue: QUEUE });
    let message = bench.message(b"y");
    bench.entry(OTHER, 1, message);
    bench.commit();
    bench.settle();
    let stats = bench.journal.stats();
    assert_eq!([&stats.live_entries, &stats.live_messages].map(Counter::get), [1, 1]);
}
