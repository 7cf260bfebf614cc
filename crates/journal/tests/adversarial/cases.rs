//! Single cases, one test each.

use std::time::Duration;

use tacho_journal::sim::{Disk, Faults};
use tacho_journal::{
    CommitSeq, Committer, Journal, Level, MessageId, Opened, Options, QueueId, ReadError, Record,
    Recovered, Step, Urgency, Visitor, Writer,
};

use crate::body;

fn options() -> Options {
    Options {
        segment_bytes: 64 << 10,
        segments_ready: 1,
        log_bytes_min: 128 << 10,
        retry: Duration::ZERO,
        ..Options::default()
    }
}

struct Bench {
    journal: Journal,
    committer: Committer,
    recovered: Recovered,
    writer: Writer,
}

impl Bench {
    fn open(disk: &Disk) -> Self {
        let Opened { journal, committer, recovered } =
            Journal::open_on(disk.clone(), options()).unwrap();
        let writer = journal.writer();
        Self { journal, committer, recovered, writer }
    }

    fn append(&mut self, record: Record<'_>) -> CommitSeq {
        self.writer.append(record, Level::Fsynced, Urgency::Forces)
    }

    fn commit(&mut self, record: Record<'_>) {
        let commit = self.append(record);
        while self.journal.committed() < commit {
            assert_ne!(self.committer.step(), Step::Idle, "the commit never completes");
        }
    }

    fn message(&mut self, body: &[u8]) -> MessageId {
        let id = self.journal.new_message_id();
        self.commit(Record::Message { id, body: &[body] });
        id
    }

    /// Writes and removes this many bytes, compaction included.
    fn churn(&mut self, bytes: usize) {
        let queue = QueueId::new(1 << 40);
        for seq in 0..(bytes / 4000) as u64 {
            let message = self.message(&[7; 3_500]);
            self.commit(Record::Entry { queue, seq, message, state: 0, meta: &[] });
            self.commit(Record::Remove { queue, seq });
        }
    }

    fn shown(&mut self) -> Shown {
        let mut shown = Shown::default();
        self.recovered.visit(&mut shown).unwrap();
        shown
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Shown {
    keys: Vec<Vec<u8>>,
    entries: Vec<(QueueId, u64, u32)>,
    opens: Vec<(MessageId, Vec<u8>, Vec<QueueId>)>,
}

impl Visitor for Shown {
    fn key(&mut self, _: QueueId, key: &[u8], _: u64, _: &[u8], _: Option<(MessageId, &[u8])>) {
        self.keys.push(key.to_vec());
    }

    fn entry(&mut self, queue: QueueId, seq: u64, _: Option<MessageId>, state: u32, _: &[u8]) {
        self.entries.push((queue, seq, state));
    }

    fn open(&mut self, message: MessageId, _: &[u8], meta: &[u8], served: &[QueueId]) {
        self.opens.push((message, meta.to_vec(), served.to_vec()));
    }
}

/// The queues that an open message was delivered to are known while it is open, even when the entry
/// and its removal have left the log with their segments.
#[test]
fn served_queues_outlive_their_entries() {
    let disk = Disk::new(1);
    let mut bench = Bench::open(&disk);
    let message = bench.message(b"open");
    bench.commit(Record::Open { message, meta: b"to all" });
    let queues = [QueueId::new(5), QueueId::new(9)];
    for queue in queues {
        bench.commit(Record::Entry { queue, seq: 1, message, state: 0, meta: &[] });
        bench.commit(Record::Remove { queue, seq: 1 });
    }
    for _ in 0..3 {
        bench.churn(1 << 20);
        assert!(bench.journal.stats().relocated_records.get() > 0, "no record was relocated");
        let mut again = Bench::open(&disk.copy(2));
        assert_eq!(again.shown().opens, [(message, b"to all".to_vec(), queues.to_vec())]);
        assert_eq!(again.journal.read(&[message])[0].1.as_deref().unwrap(), b"open");
    }
    // The end of the message takes effect there, too.
    bench.commit(Record::Done { message });
    bench.churn(1 << 20);
    let mut again = Bench::open(&disk.power_cut());
    assert_eq!(again.shown(), Shown::default());
    assert!(matches!(again.journal.read(&[message])[0].1, Err(ReadError::Gone)));
}

/// A deleted key with an older value behind it in the log does not reappear when its tombstone is
/// dropped, moved or freed.
#[test]
fn a_late_older_value_never_revives_a_deleted_key() {
    let disk = Disk::new(3);
    let mut bench = Bench::open(&disk);
    let queue = QueueId::COMMON;
    bench.commit(Record::Put { queue, key: b"k", version: 5, value: b"5", message: None });
    bench.commit(Record::Delete { queue, key: b"k", version: 9 });
    bench.churn(200 << 10);
    bench.commit(Record::Put { queue, key: b"k", version: 7, value: b"7", message: None });
    for _ in 0..4 {
        bench.churn(300 << 10);
        let mut again = Bench::open(&disk.copy(4));
        assert!(again.shown().keys.is_empty(), "a deleted key is back");
        again.churn(300 << 10);
    }
    bench.commit(Record::Put { queue, key: b"k", version: 10, value: b"10", message: None });
    let mut again = Bench::open(&disk.power_cut());
    assert_eq!(again.shown().keys, [b"k".to_vec()]);
}

/// Message and queue identifiers are never assigned twice while any record on the disk may use
/// them, even when no live record does.
#[test]
fn identifiers_are_not_reused_after_all_their_records_are_gone() {
    let mut disk = Disk::new(5);
    let (mut newest_message, mut newest_queue) = (0, 0);
    for _ in 0..5 {
        let mut bench = Bench::open(&disk);
        let (message, queue) = (bench.journal.new_message_id(), bench.journal.new_queue_id());
        assert!(message.get() > newest_message && queue.get() > newest_queue);
        bench.commit(Record::Put { queue, key: b"k", version: 0, value: &[], message: None });
        bench.commit(Record::DropQueue { queue });
        bench.churn(400 << 10);
        newest_message = bench.journal.new_message_id().get() - 1;
        newest_queue = bench.journal.new_queue_id().get() - 1;
        disk = disk.power_cut();
    }
}

/// Segments left over by failed writes are freed, however often the disk fails.
#[test]
fn repeated_disk_failures_do_not_fill_the_disk() {
    for seed in 0..20 {
        let disk = Disk::new(seed);
        let mut bench = Bench::open(&disk);
        for number in 0..400_u64 {
            // Written and not synced: every failure makes the committer write it again.
            let id = bench.journal.new_message_id();
            let body = body(id);
            let (queue, seq) = (QueueId::new(1), number % 8);
            let level = if number % 8 == 0 { Level::Fsynced } else { Level::Written };
            bench.writer.gather(Record::Message { id, body: &[&body] }, level);
            let record = Record::Entry { queue, seq, message: id, state: 0, meta: &[] };
            bench.writer.gather(record, level);
            bench.writer.close(Urgency::Forces);
            disk.set_faults(Faults { sync_error: 0.4, ..Faults::default() });
            for _ in 0..6 {
                bench.committer.step();
            }
        }
        disk.set_faults(Faults::default());
        for _ in 0..300 {
            bench.committer.step();
        }
        let segments = bench.journal.stats().segments.get();
        assert!(segments <= 6, "seed {seed}: {segments} segments, {} bytes", disk.used_bytes());
    }
}

/// A frame holds the records of one writer after those of another, in any order of appending.
#[test]
fn a_removal_by_another_writer_in_the_same_commit_takes_effect() {
    let disk = Disk::new(8);
    let mut bench = Bench::open(&disk);
    // Created first, so its records are first in the frame.
    let mut early = bench.journal.writer();
    std::mem::swap(&mut early, &mut bench.writer);
    let message = bench.message(b"waits");
    let queue = QueueId::new(5);
    for seq in 1..4 {
        let entry = Record::Entry { queue, seq, message, state: 0, meta: &[] };
        bench.append(entry);
        let commit = early.append(Record::Remove { queue, seq }, Level::Fsynced, Urgency::Forces);
        assert_eq!(bench.committer.step(), Step::Committed(commit));
    }
    let mut again = Bench::open(&disk.power_cut());
    assert_eq!(again.shown(), Shown::default());
}
