//! The committer on a disk with faults, checked by an independent reader of the log.

mod faults;
mod random;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::id::{MessageId, QueueId};
use crate::journal::Journal;
use crate::options::{Condition, Level, Options, Urgency};
use crate::record::Record;
use crate::reference::Log;
use crate::sim::{Disk, Faults};
use crate::writer::Writer;

/// Small segments, without compaction.
fn options() -> Options {
    Options { segment_bytes: 64 << 10, retry: Duration::ZERO, ..Options::default() }
}

/// A committer with writers, and the records appended through them.
struct Bench {
    disk: Disk,
    journal: Journal,
    committer: Committer,
    writers: Vec<Writer>,
    /// Encoded records of each commit, by writer.
    appended: BTreeMap<u64, Vec<Vec<u8>>>,
    /// The commits that must be synced once they are complete.
    synced: Vec<CommitSeq>,
    next: u64,
}

impl Bench {
    fn new(seed: u64, writers: usize) -> Self {
        Self::open(Disk::new(seed), writers)
    }

    /// Opens the log on the disk, by the rules of [`Log`].
    fn open(disk: Disk, writers: usize) -> Self {
        let log = Log::read(&disk);
        assert_eq!(log.damage, None);
        let shared = log.open(disk.clone(), options());
        let journal = Journal::on(Arc::clone(&shared));
        let appended = log.frames.into_iter().map(|(number, records)| (number, vec![records]));
        Self {
            disk,
            writers: (0..writers).map(|_| journal.writer()).collect(),
            committer: Committer::open(shared).expect("the disk is fine"),
            journal,
            appended: appended.collect(),
            synced: Vec::new(),
            next: 0,
        }
    }

    /// Appends a message of this many bytes.
    fn append(&mut self, writer: usize, bytes: usize, level: Level) -> CommitSeq {
        self.next += 1;
        let body = vec![self.next as u8; bytes];
        let id = MessageId::new(self.next).expect("not 0");
        let record = Record::Message { id, body: &[&body] };
        let commit = self.writers[writer].append(record, level, Urgency::Forces);
        let appended = self.appended.entry(commit.get()).or_default();
        appended.resize(self.writers.len(), Vec::new());
        record.encode(&mut appended[writer]);
        if level == Level::Fsynced {
            self.synced.push(commit);
        }
        commit
    }

    /// Appends and commits; asserts success.
    fn commit(&mut self, bytes: usize, level: Level) -> CommitSeq {
        let commit = self.append(0, bytes, level);
        assert_eq!(self.committer.step(), Step::Committed(commit));
        assert_eq!(self.journal.committed(), commit);
        commit
    }

    /// The newest commit that must survive a power cut.
    fn safe(&self) -> u64 {
        let committed = self.journal.committed();
        self.synced
            .iter()
            .filter(|commit| **commit <= committed)
            .max()
            .map_or(0, |commit| commit.get())
    }

    /// Asserts that the log holds the appended records up to some commit, at least `at_least`.
    fn check(&self, disk: &Disk, at_least: u64) -> u64 {
        let log = Log::read(disk);
        assert_eq!(log.damage, None);
        let last = log.last();
        assert!(last >= at_least, "the log ends with {last}, {at_least} was reported complete");
        for (number, records) in &log.frames {
            assert_eq!(
                Some(records),
                self.appended.get(number).map(|appended| appended.concat()).as_ref()
            );
        }
        last
    }
}

#[test]
fn forced_commits_survive_a_power_cut() {
    let mut bench = Bench::new(1, 1);
    for _ in 0..100 {
        bench.commit(1000, Level::Fsynced);
    }
    assert_eq!(bench.check(&bench.disk.power_cut(), 100), 100);
    let stats = bench.journal.stats();
    assert_eq!(stats.commits.get(), 100);
    assert_eq!(stats.body_bytes.get(), 100_000);
    assert!(stats.segments.get() > 1, "the log went on in other segments");
}

#[test]
fn written_commits_survive_a_kill() {
    let mut bench = Bench::new(1, 1);
    for _ in 0..100 {
        bench.commit(1000, Level::Written);
    }
    // Full segments were synced, the last one was not.
    assert!(bench.journal.stats().sync.count() < 10);
    assert_eq!(bench.check(&bench.disk.kill(), 100), 100);
}

#[test]
fn a_sync_request_covers_all_earlier_records() {
    let mut bench = Bench::new(1, 2);
    bench.commit(10, Level::Written);
    bench.append(0, 10, Level::Written);
    let commit = bench.append(1, 10, Level::Fsynced);
    assert_eq!(bench.committer.step(), Step::Committed(commit));
    assert_eq!(bench.check(&bench.disk.power_cut(), 2), 2);
}

#[test]
fn all_writers_are_in_one_frame() {
    let mut bench = Bench::new(1, 3);
    let commits = [0, 1, 2].map(|writer| bench.append(writer, 10, Level::Fsynced));
    assert_eq!(commits, [CommitSeq::new(1); 3]);
    assert_eq!(bench.committer.step(), Step::Committed(CommitSeq::new(1)));
    assert_eq!(bench.committer.step(), Step::Idle);
    bench.check(&bench.disk.power_cut(), 1);
}

#[test]
fn records_of_a_dropped_writer_are_committed() {
    let mut bench = Bench::new(1, 2);
    let commit = bench.append(1, 10, Level::Fsynced);
    drop(bench.writers.pop());
    assert_eq!(bench.committer.step(), Step::Committed(commit));
    assert_eq!(bench.committer.step(), Step::Idle);
    bench.commit(10, Level::Fsynced);
}

#[test]
fn a_frame_larger_than_a_segment_has_one_of_its_own() {
    let mut bench = Bench::new(1, 1);
    bench.commit(10, Level::Fsynced);
    bench.commit(300_000, Level::Fsynced);
    bench.commit(10, Level::Fsynced);
    assert_eq!(bench.check(&bench.disk.power_cut(), 3), 3);
    assert_eq!(bench.journal.stats().segments.get(), 3);
}

#[test]
fn the_log_records_the_identifiers_assigned() {
    let mut bench = Bench::new(1, 1);
    let message = bench.journal.new_message_id();
    let queue = bench.journal.new_queue_id();
    bench.commit(10, Level::Fsynced);
    let again = Bench::open(bench.disk.power_cut(), 1);
    assert!(again.journal.new_message_id() > message);
    assert!(again.journal.new_queue_id() > queue);
    assert!(queue > QueueId::COMMON);
}

#[test]
fn a_full_writer_reports_it_until_the_next_commit() {
    let mut bench = Bench::new(1, 1);
    let limit = bench.journal.options().buffer_bytes_max;
    bench.append(0, 10, Level::Fsynced);
    assert!(!bench.journal.is_pressed());
    for _ in 0..2 {
        bench.append(0, limit, Level::Fsynced);
        assert!(bench.journal.is_pressed());
    }
    assert_eq!(bench.journal.stats().pressed.get(), 1);
    assert_eq!(bench.committer.step(), Step::Committed(CommitSeq::new(1)));
    assert!(!bench.journal.is_pressed());
}

#[test]
fn small_commits_cost_blocks_and_large_ones_little_more_than_their_bodies() {
    let mut bench = Bench::new(1, 1);
    bench.commit(10, Level::Fsynced);
    assert_eq!(bench.journal.stats().written_bytes.get(), 4096);
    for _ in 0..16 {
        bench.append(0, 1024, Level::Fsynced);
    }
    bench.committer.step();
    let written = bench.journal.stats().written_bytes.get() - 4096;
    assert!(written < 16 * 1024 * 3 / 2, "{written}");
}
