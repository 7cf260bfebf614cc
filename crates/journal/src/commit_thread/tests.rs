//! The threads, on real files and on a disk that fills up.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use super::*;
use crate::id::MessageId;
use crate::journal::{Journal, Opened};
use crate::options::{Condition, Level, Options, Urgency};
use crate::record::Record;
use crate::reference::Log;
use crate::sim::{Disk, Faults};
use crate::storage::Files;
use crate::writer::Writer;

/// Far more than any test here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn options() -> Options {
    Options { segment_bytes: 1 << 20, retry: Duration::from_millis(5), ..Options::default() }
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn message(number: u64, bytes: usize) -> (MessageId, Vec<u8>) {
    (MessageId::new(number).expect("not 0"), vec![number as u8; bytes])
}

fn append(writer: &mut Writer, number: u64, urgency: Urgency) -> (CommitSeq, Vec<u8>) {
    let (id, body) = message(number, 100);
    let record = Record::Message { id, body: &[&body] };
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    (writer.append(record, Level::Fsynced, urgency), bytes)
}

fn no_notify() -> Notify {
    Arc::new(|_| {})
}

#[test]
fn forced_records_are_committed_and_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let Opened { journal, committer, .. } =
        Journal::open(directory.path(), options()).expect("opened");
    let reported = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&reported);
    let threads = committer.spawn(Arc::new(move |commit| {
        sink.lock().expect("no panic").push(commit);
    }));
    let threads = threads.expect("started");
    let mut writer = journal.writer();
    for number in 1..=20 {
        let (commit, _) = append(&mut writer, number, Urgency::Forces);
        until("it is committed", || journal.committed() >= commit);
    }
    assert!(threads.stop());
    let reported = reported.lock().expect("no panic");
    assert!(reported.is_sorted_by(|a, b| a < b), "{reported:?}");
    assert_eq!(reported.last(), Some(&journal.committed()));
    assert_eq!(journal.stats().commits.get(), journal.committed().get());
    assert!(journal.stats().sync.count() >= 20);
}

#[test]
fn riding_records_are_committed_without_a_forced_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let Opened { journal, committer, .. } =
        Journal::open(directory.path(), options()).expect("opened");
    let threads = committer.spawn(no_notify()).expect("started");
    let mut writer = journal.writer();
    for number in 1..=5 {
        let (commit, _) = append(&mut writer, number, Urgency::Rides);
        until("it is committed", || journal.committed() >= commit);
        // From the polling state of the thread to the one that waits for a wake-up.
        thread::sleep(options().ride_max * u32::from(number % 2 == 0) * 3);
    }
    assert!(threads.stop());
}

#[test]
fn waiting_records_are_committed_on_request() {
    let directory = tempfile::tempdir().expect("a directory");
    let Opened { journal, committer, .. } =
        Journal::open(directory.path(), options()).expect("opened");
    let threads = committer.spawn(no_notify()).expect("started");
    let mut writer = journal.writer();
    let (commit, _) = append(&mut writer, 1, Urgency::Waits);
    thread::sleep(options().ride_max * 3);
    assert!(journal.committed() < commit, "no commit was requested");
    journal.force();
    until("it is committed", || journal.committed() >= commit);
    // A large backlog requests a commit by itself.
    let (id, body) = message(2, 5 << 20);
    let record = Record::Message { id, body: &[&body] };
    let commit = writer.append(record, Level::Fsynced, Urgency::Waits);
    until("it is committed", || journal.committed() >= commit);
    assert!(threads.stop());
}

#[test]
fn records_appended_earlier_are_never_in_a_later_commit() {
    let directory = tempfile::tempdir().expect("a directory");
    let Opened { journal, committer, .. } =
        Journal::open(directory.path(), options()).expect("opened");
    let threads = committer.spawn(no_notify()).expect("started");
    let newest = AtomicU64::new(0);
    let reported: Mutex<BTreeMap<u64, BTreeMap<u64, Vec<u8>>>> = Mutex::default();
    thread::scope(|scope| {
        for shard in 0..4 {
            let mut writer = journal.writer();
            let (newest, reported) = (&newest, &reported);
            scope.spawn(move || {
                for number in 1..=2000 {
                    let urgency = if number % 3 == 0 { Urgency::Forces } else { Urgency::Rides };
                    let before = newest.load(Ordering::SeqCst);
                    let (commit, bytes) = append(&mut writer, number, urgency);
                    assert!(commit.get() >= before, "{commit:?} was appended after {before}");
                    newest.fetch_max(commit.get(), Ordering::SeqCst);
                    let mut reported = reported.lock().expect("no panic");
                    let records = reported.entry(commit.get()).or_default();
                    records.entry(shard).or_default().extend_from_slice(&bytes);
                }
            });
        }
    });
    assert!(threads.stop(), "everything is committed");
    let log = Log::read(&Files::open(directory.path()).expect("opened"));
    assert_eq!(log.damage, None);
    let reported = reported.into_inner().expect("no panic");
    assert!(log.frames.keys().eq(reported.keys()));
    for (number, commit) in reported {
        let records: Vec<u8> = commit.into_values().flatten().collect();
        assert!(log.frames[&number] == records, "commit {number}");
    }
}

#[test]
fn a_temporarily_full_disk_loses_nothing() {
    let disk = Disk::new(1);
    let Opened { journal, committer, .. } =
        Journal::open_on(disk.clone(), options()).expect("opened");
    let threads = committer.spawn(no_notify()).expect("started");
    let mut writer = journal.writer();
    let (first, _) = append(&mut writer, 1, Urgency::Forces);
    until("it is committed", || journal.committed() >= first);
    disk.set_capacity(Some(0));
    let (id, body) = message(2, 8 << 20);
    let record = Record::Message { id, body: &[&body] };
    let commit = writer.append(record, Level::Fsynced, Urgency::Forces);
    until("it is full", || journal.condition() == Condition::Full);
    assert!(journal.committed() < commit);
    disk.set_capacity(None);
    until("it is committed", || journal.committed() >= commit);
    until("all is well", || journal.condition() == Condition::Fine);
    assert!(threads.stop());
    assert_eq!(Log::read(&disk.power_cut()).last(), commit.get());
}

#[test]
fn a_journal_that_cannot_commit_still_stops() {
    let disk = Disk::new(1);
    let Opened { journal, committer, .. } =
        Journal::open_on(disk.clone(), options()).expect("opened");
    disk.set_faults(Faults { sync_error: 1.0, ..Faults::default() });
    let threads = committer.spawn(no_notify()).expect("started");
    append(&mut journal.writer(), 1, Urgency::Forces);
    until("it fails", || journal.condition() == Condition::Failing);
    assert!(!threads.stop());
}

#[test]
fn a_panicked_commit_thread_is_reported_as_failing() {
    let disk = Disk::new(1);
    let Opened { journal, committer, .. } = Journal::open_on(disk, options()).expect("opened");
    let threads = committer.spawn(Arc::new(|_| panic!("on purpose")));
    let threads = threads.expect("started");
    append(&mut journal.writer(), 1, Urgency::Forces);
    until("it is known", || journal.condition() == Condition::Failing);
    assert!(!threads.stop());
}
