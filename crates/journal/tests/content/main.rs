//! The live state of a journal against a naive model: while it runs, after kills and power cuts,
//! after damage, and during compaction.

mod backups;
mod cases;
mod damage;
mod directory;
mod format;
mod model;
mod owners;
mod random;
mod space;

use std::time::Duration;

use tacho_journal::sim::Disk;
use tacho_journal::{
    CommitSeq, Committer, Journal, Level, MessageId, Opened, Options, QueueId, Record, Recovered,
    Step, Urgency, Writer,
};

/// Small segments, and compaction that starts early.
fn options() -> Options {
    Options {
        segment_bytes: 32 << 10,
        segments_ready: 1,
        log_bytes_min: 96 << 10,
        linger: Duration::ZERO,
        retry: Duration::ZERO,
        ..Options::default()
    }
}

/// A journal on a disk in memory, without threads.
struct Bench {
    disk: Disk,
    journal: Journal,
    committer: Committer,
    recovered: Recovered,
    writers: Vec<Writer>,
}

impl Bench {
    fn new(seed: u64, writers: usize) -> Self {
        Self::open(Disk::new(seed), writers)
    }

    fn open(disk: Disk, writers: usize) -> Self {
        Self::open_with(disk, writers, options())
    }

    fn open_with(disk: Disk, writers: usize, options: Options) -> Self {
        let opened = Journal::open_on(disk.clone(), options).expect("the journal opens");
        let Opened { journal, committer, recovered } = opened;
        let writers = (0..writers).map(|_| journal.writer()).collect();
        Self { disk, journal, committer, recovered, writers }
    }

    fn append(&mut self, record: Record<'_>) -> CommitSeq {
        self.writers[0].append(record, Level::Fsynced, Urgency::Forces)
    }

    /// A message of its own for each call.
    fn message(&mut self, body: &[u8]) -> MessageId {
        let id = self.journal.new_message_id();
        self.append(Record::Message { id, body: &[body] });
        id
    }

    fn entry(&mut self, queue: QueueId, seq: u64, message: MessageId) -> CommitSeq {
        self.append(Record::Entry { queue, seq, message, state: 0, meta: b"meta" })
    }

    fn steps(&mut self, count: usize) {
        for _ in 0..count {
            self.committer.step();
        }
    }

    /// Steps until idle, compaction included.
    fn settle(&mut self) {
        let mut idle = 0;
        while idle < 3 {
            idle = if self.committer.step() == Step::Idle { idle + 1 } else { 0 };
        }
    }

    /// Commits the appended records; a frame takes all of them, so one step is enough.
    fn commit(&mut self) -> CommitSeq {
        self.settle();
        self.journal.committed()
    }

    /// Kills the process and opens the same disk in a new one.
    fn reopen(self) -> Self {
        let writers = self.writers.len();
        Self::open(self.disk.kill(), writers)
    }

    fn seen(&mut self) -> model::Seen {
        let mut seen = model::Seen::default();
        self.recovered.visit(&mut seen).expect("the log can be read");
        seen
    }
}
