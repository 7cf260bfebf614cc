//! The threads of the journal.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use tacho_journal::{CommitThread, Committer, Journal, Opened};
use tacho_net::{Remote, clock};

use super::reader::{Reader, ReaderThread};
use super::start::{ReadBack, RecoveryContext, ShardPart, journal_options, read_back};
use super::{Durable, JournalError, WallClock};
use crate::mail::Mail;
use crate::memory;

/// What recovery returns: the journal for all shards, and what each shard starts with.
pub(crate) struct RecoveredBroker {
    pub(crate) committer: Committer,
    pub(crate) durable: Durable,
    pub(crate) parts: Vec<ShardPart>,
}

/// A journal that is open and has been read back, and whose threads do not run yet.
pub(crate) struct IdleJournal {
    directory: PathBuf,
    committer: Committer,
    reader: ReaderThread,
}

/// The running threads of the journal.
pub(crate) struct JournalThreads {
    directory: PathBuf,
    commits: CommitThread,
    reader: JoinHandle<()>,
}

impl IdleJournal {
    /// Opens a data directory and reads it back.
    pub(crate) fn open(
        directory: PathBuf,
        context: &RecoveryContext<'_>,
        remote: &Remote<Mail>,
    ) -> Result<(Self, Durable, Vec<ShardPart>), JournalError> {
        let opened = Journal::open(&directory, journal_options(&context.config.durability))?;
        let (now_ns, unix_ns) = (clock::now_ns(), clock::unix_ns());
        let wall = WallClock::new(now_ns, unix_ns);
        let (reader, thread) = Reader::new(opened.journal.clone(), remote.clone());
        let RecoveredBroker { committer, mut durable, parts } =
            recover(opened, context, (wall, now_ns), reader)?;
        if let Ok(disk) = rustix::fs::statvfs(&directory) {
            durable.set_disk_bytes(disk.f_blocks.saturating_mul(disk.f_frsize));
        }
        Ok((Self { directory, committer, reader: thread }, durable, parts))
    }

    /// Starts the threads. `committed` is called after every commit.
    pub(crate) fn spawn(
        self,
        committed: impl Fn() + Send + Sync + 'static,
    ) -> Result<JournalThreads, JournalError> {
        let Self { directory, committer, reader } = self;
        let reader = reader.spawn()?;
        let commits = committer.spawn(Arc::new(move |_| committed()))?;
        Ok(JournalThreads { directory, commits, reader })
    }
}

impl JournalThreads {
    /// Commits the last records of the shards, which have ended, and releases the directory.
    pub(crate) fn stop(self) {
        if !self.commits.stop() {
            let directory = self.directory.display();
            tracing::error!("{directory}: the disk did not take the last records before the end");
        }
        // The thread ends because no shard can send it requests any more. The broker has ended, so
        // a panic of that thread changes nothing.
        let _ = self.reader.join();
    }
}

/// Reads the journal back: the sessions of all shards, and the handle that they share.
pub(crate) fn recover(
    opened: Opened,
    context: &RecoveryContext<'_>,
    (wall, now_ns): (WallClock, u64),
    reader: Reader,
) -> Result<RecoveredBroker, JournalError> {
    let Opened { journal, committer, mut recovered } = opened;
    let config = context.config;
    let read = memory::counted(context.memory, || {
        read_back(&journal, &mut recovered, context, (wall, now_ns))
    })?;
    let ReadBack { starts, parts, groups } = read;
    let (levels, settings) = (config.session_levels(), config.durability.clone());
    let durable = Durable::new(journal, wall, settings, &levels, starts, config.shards, reader);
    for (group, queue) in groups {
        durable.groups.queue(group, || queue);
    }
    Ok(RecoveredBroker { committer, durable, parts })
}
