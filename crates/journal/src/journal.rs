//! The journal as the shards see it, and what its parts share.

use std::io;
use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

use crate::committer::Committer;
use crate::error::OpenError;
use crate::id::{CommitSeq, MessageId, QueueId};
use crate::index::Index;
use crate::keeper::{Pool, Unused};
use crate::lock::Lock;
use crate::options::{Condition, Options, Urgency};
use crate::read::{self, Body, Doubts};
use crate::recovery::{self, Recovered, Recovery};
use crate::salt::Salt;
use crate::segment::Segments;
use crate::stats::Stats;
use crate::storage::{Files, Storage};
use crate::writer::{Buffers, Writer};

/// A journal that is open. Cheap to clone.
#[derive(Clone)]
pub struct Journal {
    shared: Arc<Shared>,
}

/// What opening a journal gives.
pub struct Opened {
    /// For everybody.
    pub journal: Journal,
    /// Writes what the writers append.
    pub committer: Committer,
    /// What was live at the end of the log.
    pub recovered: Recovered,
}

impl Journal {
    /// Opens the journal of a directory, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// If the directory cannot be used, another process uses it, or its format is not known.
    pub fn open(directory: &Path, options: Options) -> Result<Opened, OpenError> {
        let lock = Lock::take(directory)?;
        let what = || format!("cannot open {}", directory.display());
        let files = Files::open(directory).map_err(OpenError::io(what()))?;
        Self::open_locked(Arc::new(files), options, Some(lock))
    }

    /// Opens a journal on any storage. Nobody else may use it meanwhile.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or its format is not known.
    pub fn open_on(storage: impl Storage + 'static, options: Options) -> Result<Opened, OpenError> {
        Self::open_locked(Arc::new(storage), options, None)
    }

    fn open_locked(
        storage: Arc<dyn Storage>,
        options: Options,
        lock: Option<Lock>,
    ) -> Result<Opened, OpenError> {
        let stats = Stats::default();
        let mut recovery = recovery::recover(&*storage, &stats)?;
        let report = mem::take(&mut recovery.report);
        let shared = Arc::new(Shared::new(storage, options, stats, lock, recovery));
        let committer = Committer::open(Arc::clone(&shared))?;
        let recovered = Recovered::new(Arc::clone(&shared), report);
        Ok(Opened { journal: Self { shared }, committer, recovered })
    }

    #[cfg(test)]
    pub(crate) fn on(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// How it was opened.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// A new writer: one for each shard.
    #[must_use]
    pub fn writer(&self) -> Writer {
        Writer::new(Arc::clone(&self.shared))
    }

    /// A message id that was never used, before a restart neither.
    #[must_use]
    pub fn new_message_id(&self) -> MessageId {
        let number = self.shared.message_ids.fetch_add(1, Ordering::Relaxed) + 1;
        // Invariant: one more than a number is not 0 before 2^64 messages.
        MessageId::new(number).expect("the number is not 0")
    }

    /// A queue id that was never used, before a restart neither.
    #[must_use]
    pub fn new_queue_id(&self) -> QueueId {
        QueueId::new(self.shared.queue_ids.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Everything up to this commit is complete.
    #[must_use]
    pub fn committed(&self) -> CommitSeq {
        CommitSeq::new(self.shared.committed.load(Ordering::Acquire))
    }

    /// How it is doing: one load.
    #[must_use]
    pub fn condition(&self) -> Condition {
        self.shared.state.condition()
    }

    /// True while some writer has more waiting than it should: hold publishers back.
    #[must_use]
    pub fn is_pressed(&self) -> bool {
        self.shared.buffers.is_pressed()
    }

    /// Asks for a commit of all that was appended.
    pub fn force(&self) {
        self.shared.signal.force();
    }

    /// Reads the bodies of messages. Blocks: not for shards.
    #[must_use]
    pub fn read(&self, ids: &[MessageId]) -> Vec<(MessageId, Body)> {
        read::messages(&self.shared, ids)
    }

    /// What it has done and what it holds.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }
}

/// What the journal's parts share.
pub(crate) struct Shared {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) options: Options,
    pub(crate) stats: Stats,
    pub(crate) state: State,
    pub(crate) signal: Signal,
    pub(crate) buffers: Buffers,
    pub(crate) pool: Pool,
    pub(crate) segments: Segments,
    /// Bytes that the segment which is written has left; none if there is no such segment.
    pub(crate) tail_room: AtomicU64,
    /// The mark of frames.
    pub(crate) salt: Option<Salt>,
    /// The newest frame that is complete.
    pub(crate) committed: AtomicU64,
    /// The greatest message id given out.
    pub(crate) message_ids: AtomicU64,
    /// The greatest queue id given out.
    pub(crate) queue_ids: AtomicU64,
    index: Mutex<Index>,
    pub(crate) doubts: Doubts,
    /// Held as long as anybody uses the journal.
    _lock: Option<Lock>,
}

impl Shared {
    /// Goes on where the log ended.
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        options: Options,
        stats: Stats,
        lock: Option<Lock>,
        recovery: Recovery,
    ) -> Self {
        let segments = Segments::default();
        for (id, segment) in recovery.segments {
            segments.insert(id, segment);
        }
        let unused = recovery.unused.into_iter().map(|name| Unused { name, sound: true });
        Self {
            storage,
            options,
            stats,
            state: State::default(),
            signal: Signal::default(),
            buffers: Buffers::new(CommitSeq::new(recovery.last_frame + 1)),
            pool: Pool::new(recovery.next_segment, unused),
            segments,
            tail_room: AtomicU64::new(0),
            salt: recovery.salt,
            committed: AtomicU64::new(recovery.last_frame),
            message_ids: AtomicU64::new(recovery.message_ids),
            queue_ids: AtomicU64::new(recovery.queue_ids),
            index: Mutex::new(recovery.index),
            doubts: Doubts::default(),
            _lock: lock,
        }
    }

    /// Only for the committer, readers and the garbage collection: never for a shard.
    pub(crate) fn index(&self) -> MutexGuard<'_, Index> {
        // A panic under this lock can only be one of memory that is missing.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is wrong at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Trouble {
    /// What is live takes more than it may.
    Limit = 1,
    /// A commit found the disk full.
    CommitFull = 2,
    /// No new segment can be made, the disk is full: what is left is for acknowledgements.
    NoSegment = 4,
    /// A commit failed.
    CommitFails = 8,
    /// A new segment could not be made for another reason.
    BadSegment = 16,
}

/// All that is wrong, in one number.
#[derive(Default)]
pub(crate) struct State(AtomicU8);

impl State {
    /// True if it was not so before.
    pub(crate) fn begin(&self, trouble: Trouble) -> bool {
        self.0.fetch_or(trouble as u8, Ordering::Relaxed) & trouble as u8 == 0
    }

    /// True if it was so before.
    pub(crate) fn end(&self, trouble: Trouble) -> bool {
        self.0.load(Ordering::Relaxed) & trouble as u8 != 0
            && self.0.fetch_and(!(trouble as u8), Ordering::Relaxed) & trouble as u8 != 0
    }

    pub(crate) fn condition(&self) -> Condition {
        match self.0.load(Ordering::Relaxed) {
            0 => Condition::Fine,
            1 => Condition::Limited,
            2..8 => Condition::Full,
            _ => Condition::Failing,
        }
    }
}

/// Wakes the commit thread.
#[derive(Default)]
pub(crate) struct Signal {
    /// Somebody waits for a commit that was not begun yet.
    forced: AtomicBool,
    /// The commit thread will look for what rides by itself.
    armed: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Signal {
    /// Something was appended.
    pub(crate) fn appended(&self, urgency: Urgency) {
        let flag = match urgency {
            Urgency::Forces => &self.forced,
            Urgency::Rides => &self.armed,
            Urgency::Waits => return,
        };
        // The thread takes the flag away before it looks into the buffers. Who appends after that
        // look sees the flag taken away, because both hold the lock of the buffer in between.
        if !flag.load(Ordering::Relaxed) && !flag.swap(true, Ordering::AcqRel) {
            self.wake();
        }
    }

    /// Something else than an append wants a commit.
    pub(crate) fn force(&self) {
        self.appended(Urgency::Forces);
    }

    pub(crate) fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// The calling thread is the one to wake.
    pub(crate) fn attach(&self) -> io::Result<()> {
        let thread = std::thread::current();
        self.thread.set(thread).map_err(|_| io::Error::other("a second commit thread"))
    }

    pub(crate) fn is_forced(&self) -> bool {
        self.forced.load(Ordering::Acquire)
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Acquire)
    }

    /// The thread is about to look into the buffers.
    pub(crate) fn begin(&self) {
        self.forced.swap(false, Ordering::AcqRel);
    }

    /// Whether the thread looks for what rides without being woken.
    pub(crate) fn arm(&self, armed: bool) {
        self.armed.swap(armed, Ordering::AcqRel);
    }
}
