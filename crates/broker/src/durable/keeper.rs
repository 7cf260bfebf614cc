//! The journal's threads, from the broker's start to its end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use tacho_journal::{CommitThread, Committer, Journal, Opened};
use tacho_net::{Remote, clock};

use super::reader::{Reader, Waiting};
use super::start::{Part, ReadBack, options, read_back};
use super::{Durable, WallClock};
use crate::config::Config;
use crate::mail::Mail;
use crate::memory;
use crate::server::{JournalError, StartError};
use crate::shard::Shared;

/// A journal that is open and read, and whose threads do not run yet.
pub(crate) struct Keeping {
    directory: PathBuf,
    committer: Committer,
    reader: Waiting,
}

/// The journal's threads.
pub(crate) struct Keeper {
    directory: PathBuf,
    commits: CommitThread,
    reader: JoinHandle<()>,
}

impl Keeping {
    /// Opens the data directory, if there is one, and reads it: `shared` learns of the journal, and
    /// what it had is returned by shard.
    pub(crate) fn start(
        config: &Config,
        shared: &mut Shared,
        remote: &Remote<Mail>,
    ) -> Result<(Option<Self>, Vec<Part>), StartError> {
        let Some(directory) = &config.data_dir else {
            return Ok((None, (0..config.shards).map(|_| Part::default()).collect()));
        };
        let opened = Journal::open(directory, options(&config.durability));
        let opened = opened.map_err(|error| unusable(directory, error))?;
        let (now_ns, unix_ns) = (clock::now_ns(), clock::unix_ns());
        let wall = WallClock::new(now_ns, unix_ns);
        let (reader, waiting) = Reader::new(opened.journal.clone(), remote.clone());
        let (committer, parts) = install(opened, config, shared, (wall, now_ns), reader)
            .map_err(|error| unusable(directory, error))?;
        let directory = directory.clone();
        Ok((Some(Self { directory, committer, reader: waiting }), parts))
    }

    /// Starts the threads. Shards that wait for commits are told by mail.
    pub(crate) fn spawn(
        self,
        shared: &Arc<Shared>,
        remote: &Remote<Mail>,
    ) -> Result<Keeper, StartError> {
        let Self { directory, committer, reader } = self;
        let failed = |error| unusable(&directory, error);
        let reader = reader.spawn().map_err(failed)?;
        // Not the shards themselves, which end before their last records are committed.
        let (shared, remote) = (Arc::downgrade(shared), remote.clone());
        let notify = move |_| {
            if let Some(shared) = shared.upgrade()
                && let Some(durable) = &shared.durable
            {
                durable.committed(&remote);
            }
        };
        let commits = committer.spawn(Arc::new(notify)).map_err(failed)?;
        Ok(Keeper { directory, commits, reader })
    }
}

impl Keeper {
    /// Commits what the shards have left, now that they have ended, and lets the directory go.
    pub(crate) fn stop(self) {
        if !self.commits.stop() {
            let directory = self.directory.display();
            tracing::error!("the disk of {directory} has not taken everything before the end");
        }
        // It ends as nobody can ask it any more. Whatever became of it, the broker has ended.
        let _ = self.reader.join();
    }
}

/// Reads the journal back and makes it known to all shards.
pub(crate) fn install(
    opened: Opened,
    config: &Config,
    shared: &mut Shared,
    (wall, now_ns): (WallClock, u64),
    reader: Reader,
) -> Result<(Committer, Vec<Part>), JournalError> {
    let Opened { journal, committer, mut recovered } = opened;
    let settings = &config.durability;
    let (routes, shards) = (&shared.routes, config.shards);
    let read = memory::counted(&shared.memory, || {
        read_back(
            &journal,
            &mut recovered,
            routes,
            shards,
            settings,
            &shared.bridges,
            (wall, now_ns),
        )
    })?;
    let ReadBack { starts, parts, groups } = read;
    let levels = config.session_levels();
    let settings = settings.clone();
    let durable = Durable::new(journal, wall, settings, levels, starts, config.shards, reader);
    for (group, queue) in groups {
        durable.groups.queue(group, || queue);
    }
    shared.durable = Some(durable);
    Ok((committer, parts))
}

fn unusable(directory: &Path, error: impl Into<JournalError>) -> StartError {
    StartError::Journal { directory: directory.to_path_buf(), source: error.into() }
}
