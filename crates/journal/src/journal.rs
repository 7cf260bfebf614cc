//! The journal as the shards see it, and what its parts share.

use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
        self.shared.troubles.condition()
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
