//! Journals in directories of the file system, with their threads.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use tacho_journal::{
    CommitSeq, CommitThread, Condition, Inspection, Journal, Level, MessageId, OpenError, Opened,
    Options, Problem, QueueId, Record, Recovered, Urgency, Writer,
};

use super::model::Seen;
use super::options;

const QUEUE: QueueId = QueueId::new(1_000_001);

/// Generous, as the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// The newest commit, and the condition variable of its waiters.
type Committed = Arc<(Mutex<u64>, Condvar)>;

pub(crate) struct Running {
    pub(crate) journal: Journal,
    pub(crate) recovered: Recovered,
    pub(crate) writer: Writer,
    pub(crate) thread: CommitThread,
    committed: Committed,
}

impl Running {
    pub(crate) fn open(directory: &Path) -> Self {
        Self::open_with(directory, options())
    }

    pub(crate) fn open_with(directory: &Path, options: Options) -> Self {
        let opened = Journal::open(directory, options).expect("the journal opens");
        let Opened { journal, committer, recovered } = opened;
        let committed: Committed = Arc::default();
        let shared = Arc::clone(&committed);
        let notify = move |commit: CommitSeq| {
            *shared.0.lock().expect("not poisoned") = commit.get();
            shared.1.notify_all();
        };
        let thread = committer.spawn(Arc::new(notify)).expect("a thread");
        Self { writer: journal.writer(), journal, recovered, thread, committed }
    }

    pub(crate) fn append(&mut self, record: Record<'_>) -> CommitSeq {
        self.writer.append(record, Level::Written, Urgency::Forces)
    }

    pub(crate) fn publish(
        &mut self,
        queue: QueueId,
        seq: u64,
        body: &[u8],
    ) -> (MessageId, CommitSeq) {
        let id = self.journal.new_message_id();
        self.writer.gather(Record::Message { id, body: &[body] }, Level::Written);
        let entry = Record::Entry { queue, seq, message: id, state: 0, meta: b"" };
        self.writer.gather(entry, Level::Written);
        (id, self.writer.close(Urgency::Forces))
    }

    pub(crate) fn wait(&self, commit: CommitSeq) {
        let guard = self.committed.0.lock().expect("not poisoned");
        let wait = self.committed.1.wait_timeout_while(guard, PATIENCE, |at| *at < commit.get());
        assert!(!wait.expect("not poisoned").1.timed_out(), "not committed");
    }

    fn seen(&mut self) -> Seen {
        let mut seen = Seen::default();
        self.recovered.visit(&mut seen).expect("the log can be read");
        seen
    }
}

/// Waits until something is the case.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain: {what}");
    }
}

/// Paths of the non-empty segments, in order.
fn segments(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("the directory");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    let used = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "segment")
            && fs::read(path).expect("a file").starts_with(b"tjnl")
    };
    paths.retain(used);
    paths.sort();
    paths
}

#[test]
fn old_records_stay_readable_while_the_thread_relocates_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut running = Running::open(directory.path());
    let old: Vec<_> = (0..20).map(|seq| running.publish(QUEUE, seq, &[7; 2_000]).0).collect();
    let moved = |running: &Running| running.journal.stats().relocated_records.get() >= 40;
    let end = Instant::now() + PATIENCE;
    let mut seq = 0;
    while !moved(&running) {
        assert!(Instant::now() < end, "no record was relocated");
        let queue = running.journal.new_queue_id();
        let (_, commit) = running.publish(queue, 0, &[8; 3_000]);
        running.append(Record::DropQueue { queue });
        running.wait(commit);
        let id = old[seq % old.len()];
        let (_, body) = running.journal.read(&[id]).pop().expect("an answer");
        assert_eq!(*body.expect("readable during relocation"), [7; 2_000]);
        seq += 1;
    }
    assert!(running.thread.stop());
    drop((running.journal, running.writer, running.recovered));
    let mut running = Running::open(directory.path());
    assert_eq!(running.seen().entries.len(), old.len());
    for (_, body) in running.journal.read(&old) {
        assert_eq!(*body.expect("readable"), [7; 2_000]);
    }
}

#[test]
fn a_damaged_file_is_quarantined_once() {
    let directory = tempfile::tempdir().expect("a directory");
    // Compaction is off, so the damaged segment stays.
    let still = Options { log_bytes_min: u64::MAX, ..options() };
    let mut running = Running::open_with(directory.path(), still.clone());
    for seq in 0..20 {
        let (_, commit) = running.publish(QUEUE, seq, &[seq as u8; 3_000]);
        running.wait(commit);
    }
    assert!(running.thread.stop());
    drop((running.journal, running.writer, running.recovered));
    let damaged = segments(directory.path()).swap_remove(0);
    let mut content = fs::read(&damaged).expect("a segment");
    content[9_000] ^= 1;
    fs::write(&damaged, &content).expect("damaged");

    let inspection = Inspection::open(directory.path()).expect("the directory is not in use");
    let problems = inspection.check();
    assert!(matches!(&problems[..], [Problem::Damage(_)]), "{problems:?}");
    let name = damaged.file_name().and_then(|name| name.to_str()).expect("a name");
    assert!(problems[0].to_string().contains(name), "{}", problems[0]);
    drop(inspection);

    let kept = directory.path().join("quarantine").join(name);
    for round in 0..2 {
        let mut running = Running::open_with(directory.path(), still.clone());
        assert_eq!(running.seen().entries.len(), 19);
        let report = running.recovered.report();
        assert_eq!(report.damage.len(), 1);
        assert_eq!(report.quarantined.len(), 1 - round, "{report:?}");
        let stats = running.journal.stats();
        assert_eq!(stats.quarantined.get(), 1 - round as u64);
        assert_eq!(fs::read(&kept).expect("a copy"), content);
        assert!(running.thread.stop());
    }
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&kept), 0o600);
    assert_eq!(mode(&directory.path().join("quarantine")), 0o700);
}

#[test]
fn a_removed_lock_file_lets_no_second_process_in() {
    let directory = tempfile::tempdir().expect("a directory");
    let lock = directory.path().join("lock");
    let mut running = Running::open(directory.path());
    fs::remove_file(&lock).expect("removed");
    assert!(matches!(Journal::open(directory.path(), options()), Err(OpenError::Locked { .. })));
    assert!(matches!(Inspection::open(directory.path()), Err(OpenError::Locked { .. })));
    let end = Instant::now() + PATIENCE;
    let mut seq = 0;
    while !lock.exists() {
        assert!(Instant::now() < end, "the lock file is not made again");
        seq += 1;
        let (_, commit) = running.publish(QUEUE, seq, b"body");
        running.wait(commit);
    }
    assert_eq!(running.journal.condition(), Condition::Fine);
    assert!(running.thread.stop());
    drop((running.journal, running.writer, running.recovered));
    let inspection = Inspection::open(directory.path()).expect("the directory is free");
    assert_eq!((inspection.check(), inspection.summary().entries), (vec![], seq));
}

#[test]
fn nothing_is_committed_while_another_directory_is_in_the_place_of_the_locked_one() {
    let outer = tempfile::tempdir().expect("a directory");
    let (path, away) = (outer.path().join("data"), outer.path().join("away"));
    let options = Options { retry: Duration::from_millis(10), ..options() };
    let mut running = Running::open_with(&path, options.clone());
    let (_, commit) = running.publish(QUEUE, 1, b"before");
    running.wait(commit);
    fs::rename(&path, &away).expect("moved");
    let end = Instant::now() + PATIENCE;
    while running.journal.condition() != Condition::Displaced {
        assert!(Instant::now() < end, "it is not noticed");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Another process begins anew there.
    let mut second = Running::open_with(&path, options.clone());
    let (_, commit) = second.publish(QUEUE, 1, b"of the second");
    second.wait(commit);
    let before = running.journal.committed();
    let (_, waiting) = running.publish(QUEUE, 2, b"while it was away");
    let (_, commit) = second.publish(QUEUE, 2, b"of the second");
    second.wait(commit);
    assert_eq!(running.journal.committed(), before);
    assert!(second.thread.stop());
    drop((second.journal, second.writer, second.recovered));
    let inspection = Inspection::open(&path).expect("free");
    assert_eq!((inspection.check(), inspection.summary().entries), (vec![], 2));
    drop(inspection);
    // What waited is committed once the directory is back.
    fs::remove_dir_all(&path).expect("removed");
    fs::rename(&away, &path).expect("moved back");
    running.wait(waiting);
    assert_eq!(running.journal.condition(), Condition::Fine);
    assert!(running.thread.stop());
    drop((running.journal, running.writer, running.recovered));
    let inspection = Inspection::open(&path).expect("free");
    assert_eq!((inspection.check(), inspection.summary().entries), (vec![], 2));
}

#[test]
fn a_directory_in_use_cannot_be_inspected() {
    let directory = tempfile::tempdir().expect("a directory");
    assert!(matches!(Inspection::open(directory.path()), Err(OpenError::NoJournal { .. })));
    let mut running = Running::open(directory.path());
    let (id, commit) = running.publish(QUEUE, 1, b"body");
    running.wait(commit);
    assert!(matches!(Inspection::open(directory.path()), Err(OpenError::Locked { .. })));
    assert!(matches!(Journal::open(directory.path(), options()), Err(OpenError::Locked { .. })));
    assert!(running.thread.stop());
    drop((running.journal, running.writer, running.recovered));
    let before = segments(directory.path());
    let one = Inspection::open(directory.path()).expect("the directory is not in use");
    let two = Inspection::open(directory.path()).expect("inspections may overlap");
    assert!(matches!(Journal::open(directory.path(), options()), Err(OpenError::Locked { .. })));
    let summary = one.summary();
    assert_eq!((summary.entries, summary.messages, summary.queues, summary.keys), (1, 1, 1, 0));
    assert_eq!((summary.last_message, summary.segments.len()), (id.get(), 1));
    assert!(summary.live_bytes > 4 && summary.log_bytes >= 4 << 10);
    assert_eq!(summary.segments[0].live_records, 2);
    assert_eq!((two.check(), two.report().damage.len()), (vec![], 0));
    assert_eq!(&*two.message(id).expect("readable"), b"body");
    assert_eq!(segments(directory.path()), before, "inspection changes no file");
}
