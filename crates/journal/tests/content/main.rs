//! What the journal says is live, against a naive model of it: while it runs, after kills and power
//! cuts, after damage, and while old records are moved.

mod damage;
mod directory;
mod format;
mod model;
mod random;
mod space;
mod stories;

use std::time::Duration;

use tacho_journal::sim::Disk;
use tacho_journal::{
    CommitSeq, Committer, Journal, Level, MessageId, Opened, Options, QueueId, Record, Recovered,
    Step, Urgency, Writer,
};

/// Small segments, and a log that is made smaller early.
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

    /// Steps until there is nothing left to do, the moving of old records included.
    fn settle(&mut self) {
        let mut idle = 0;
        while idle < 3 {
            idle = if self.committer.step() == Step::Idle { idle + 1 } else { 0 };
        }
    }

    /// Commits what was appended; as a frame takes all, once is enough.
    fn commit(&mut self) -> CommitSeq {
        self.settle();
        self.journal.committed()
    }

    /// The process dies and another one opens the same disk.
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
