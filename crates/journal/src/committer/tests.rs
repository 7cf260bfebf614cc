//! The committer on a disk with faults, read back by rules of its own.

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

/// Small segments, and nothing that is moved.
fn options() -> Options {
    Options { segment_bytes: 64 << 10, retry: Duration::ZERO, ..Options::default() }
}

/// A committer with writers, and what was told to them.
struct Bench {
    disk: Disk,
    journal: Journal,
    committer: Committer,
    writers: Vec<Writer>,
    /// The bytes of the records of each commit, by writer.
    told: BTreeMap<u64, Vec<Vec<u8>>>,
    /// The commits that must be on the disk once they are complete.
    synced: Vec<CommitSeq>,
    next: u64,
}

impl Bench {
    fn new(seed: u64, writers: usize) -> Self {
        Self::open(Disk::new(seed), writers)
    }

    /// Opens what is on the disk, by the rules of [`Log`].
    fn open(disk: Disk, writers: usize) -> Self {
        let log = Log::read(&disk);
        assert_eq!(log.damage, None);
        let shared = log.open(disk.clone(), options());
        let journal = Journal::on(Arc::clone(&shared));
        let told = log.frames.into_iter().map(|(number, records)| (number, vec![records]));
        Self {
            disk,
            writers: (0..writers).map(|_| journal.writer()).collect(),
            committer: Committer::open(shared).expect("the disk is fine"),
            journal,
            told: told.collect(),
            synced: Vec::new(),
            next: 0,
        }
    }

    /// Appends a message of so many bytes.
    fn append(&mut self, writer: usize, bytes: usize, level: Level) -> CommitSeq {
        self.next += 1;
        let body = vec![self.next as u8; bytes];
        let id = MessageId::new(self.next).expect("not 0");
        let record = Record::Message { id, body: &[&body] };
        let commit = self.writers[writer].append(record, level, Urgency::Forces);
        let told = self.told.entry(commit.get()).or_default();
        told.resize(self.writers.len(), Vec::new());
        record.encode(&mut told[writer]);
        if level == Level::Fsynced {
            self.synced.push(commit);
        }
        commit
    }

    /// Appends and commits, which must work.
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

    /// What the disk has is what was told, up to some commit not below `at_least`.
    fn check(&self, disk: &Disk, at_least: u64) -> u64 {
        let log = Log::read(disk);
        assert_eq!(log.damage, None);
        let last = log.last();
        assert!(last >= at_least, "the log ends with {last}, {at_least} was told to be there");
        for (number, records) in &log.frames {
            assert_eq!(Some(records), self.told.get(number).map(|told| told.concat()).as_ref());
        }
        last
    }
}

#[test]
fn commits_are_there_after_a_power_cut() {
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
fn written_commits_are_there_after_the_process_died() {
    let mut bench = Bench::new(1, 1);
    for _ in 0..100 {
        bench.commit(1000, Level::Written);
    }
    // The segments that are full were synced, the last one was not.
    assert!(bench.journal.stats().sync.count() < 10);
    assert_eq!(bench.check(&bench.disk.kill(), 100), 100);
}

#[test]
fn one_record_that_asks_for_it_brings_all_before_it_onto_the_disk() {
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
fn what_a_writer_left_behind_is_committed() {
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
fn the_number_of_ids_given_out_is_in_the_log() {
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
fn a_writer_with_too_much_says_so_until_the_next_commit() {
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
