//! The journal's interface for shards.

use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::backup::{self, Backup, BackupError};
use crate::backup_list::LIST_NAME;
use crate::committer::Committer;
use crate::error::OpenError;
use crate::id::{CommitSeq, MessageId, QueueId};
use crate::lock::Lock;
use crate::options::{Condition, Options};
use crate::read::{self, Body};
use crate::recovered::Recovered;
use crate::recovery;
use crate::shared::Shared;
use crate::stats::Stats;
use crate::storage::{Files, Storage};
use crate::writer::Writer;

/// An open journal. Cheap to clone.
#[derive(Clone)]
pub struct Journal {
    shared: Arc<Shared>,
}

/// The result of opening a journal.
pub struct Opened {
    /// The handle for shards and readers.
    pub journal: Journal,
    /// Commits the records that the writers append.
    pub committer: Committer,
    /// The live content at the end of the log.
    pub recovered: Recovered,
}

impl Journal {
    /// Opens the journal of a directory, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// If the directory cannot be used, another process uses it, or its format is not known.
    pub fn open(directory: &Path, options: Options) -> Result<Opened, OpenError> {
        let lock = Lock::take(directory)?;
        let what = || format!("cannot open {}", directory.display());
        let files = Files::within(lock.directory(), false).map_err(OpenError::io(what()))?;
        if files.open(LIST_NAME).is_ok() {
            return Err(OpenError::Backup { directory: directory.display().to_string() });
        }
        Self::open_locked(Arc::new(files), options, Some(lock))
    }

    /// Opens a journal on any storage, which no other process may use meanwhile.
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

    /// The options that it was opened with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// A new writer: one for each shard.
    #[must_use]
    pub fn writer(&self) -> Writer {
        Writer::new(Arc::clone(&self.shared))
    }

    /// A message id that was never used before, also across restarts.
    #[must_use]
    pub fn new_message_id(&self) -> MessageId {
        let number = self.shared.message_ids.fetch_add(1, Ordering::Relaxed) + 1;
        // Invariant: one more than a number is not 0 before 2^64 messages.
        MessageId::new(number).expect("the number is not 0")
    }

    /// A queue id that was never used before, also across restarts.
    #[must_use]
    pub fn new_queue_id(&self) -> QueueId {
        QueueId::new(self.shared.queue_ids.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The high-water mark: every commit up to this one is complete.
    #[must_use]
    pub fn committed(&self) -> CommitSeq {
        CommitSeq::new(self.shared.committed.load(Ordering::Acquire))
    }

    /// The current condition; costs one atomic load.
    #[must_use]
    pub fn condition(&self) -> Condition {
        self.shared.troubles.condition()
    }

    /// True while the backlog of a writer exceeds its limit: hold publishers back.
    #[must_use]
    pub fn is_pressed(&self) -> bool {
        self.shared.buffers.is_pressed()
    }

    /// Requests a commit of all appended records.
    pub fn force(&self) {
        self.shared.signal.force();
    }

    /// Reads the bodies of messages. Blocks, so shards must not call it.
    #[must_use]
    pub fn read(&self, ids: &[MessageId]) -> Vec<(MessageId, Body)> {
        read::messages(&self.shared, ids)
    }

    /// Makes a backup in a directory, which must not be there or be empty: the content up to the
    /// newest commit at this moment. Its files are shared with the log where the file system can do
    /// that. Blocks, so shards must not call it; commits go on meanwhile.
    ///
    /// # Errors
    ///
    /// If another one is being made, the disk fails, or something cannot be read or written. Then
    /// there is no backup.
    pub fn back_up(&self, directory: &Path) -> Result<Backup, BackupError> {
        backup::make(&self.shared, directory)
    }

    /// The same into any storage, which must be empty.
    ///
    /// # Errors
    ///
    /// See [`Self::back_up`].
    #[cfg(feature = "sim")]
    pub fn back_up_to(&self, target: &dyn Storage) -> Result<Backup, BackupError> {
        backup::fill(&self.shared, target, &|_| Err(std::io::ErrorKind::Unsupported.into()))
    }

    /// Counters and gauges.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }
}
