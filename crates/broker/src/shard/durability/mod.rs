//! Durability: what the journal keeps for this shard, and what waits for its commits.
//!
//! The way of a QoS 1 message into the journal: [`distribution`] notes it as open where several
//! shards or turns take part, [`journal`] appends its record and its places in queues to the
//! current record batch, [`commits`] hands the batch over and serves the sessions that wait for
//! it. Back: [`loading`] asks the reader thread for bodies, [`restore`] makes sessions at start.

mod commits;
mod confirmations;
mod distribution;
mod ended_sessions;
mod hand_off_places;
mod hand_offs;
mod journal;
mod loading;
mod recorder;
mod restore;
mod session;
mod session_records;
mod stalled;
mod unanswered;

use std::sync::Arc;

use tacho_session::BatchSeq;

use crate::durable::Durable;
use crate::keys::SessionSlot;
use crate::stats::ShardStats;
use journal::ShardJournal;
use loading::Loading;
use unanswered::Unanswered;

pub(super) use confirmations::{PendingConnect, RecordedChanges};
pub(super) use distribution::{Acknowledge, Sending};
pub(super) use journal::is_retained_durably;
pub(super) use recorder::{Machine, Subject};
pub(super) use session::SessionJournal;
pub(super) use session_records::{JournaledSession, OpenedSession};
pub(super) use stalled::{ConnectAnswer, ConnectRequest};
pub(super) use unanswered::{Changed, NOTHING_CAN_BE_WRITTEN};

/// Owns the shard's side of the journal.
pub(super) struct Journaling {
    /// Present where there is a data directory.
    journal: Option<Box<ShardJournal>>,
    /// Reads of messages that are to be asked for again.
    loading: Loading,
    /// Clients that wait for a commit.
    unanswered: Unanswered,
    /// Restored sessions from here on have no timers yet.
    unarmed: Option<SessionSlot>,
}

impl Journaling {
    pub(super) fn new(durable: Option<&Durable>, stats: &Arc<ShardStats>) -> Self {
        let journal = |durable| Box::new(ShardJournal::new(durable, Arc::clone(stats)));
        Self {
            journal: durable.map(journal),
            loading: Loading::default(),
            unanswered: Unanswered::default(),
            unarmed: None,
        }
    }

    /// Whether there is a journal.
    #[inline]
    pub(super) fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    /// Whether the journal takes nothing new at present.
    #[inline]
    pub(super) fn is_stalled(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| !journal.is_fine())
    }

    /// Whether more was handed to the journal than it should have to write at once.
    #[inline]
    pub(super) fn is_behind(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.is_pressed())
    }

    /// The newest batch of this shard that is committed.
    #[inline]
    pub(super) fn committed(&self) -> BatchSeq {
        self.journal.as_ref().map_or(BatchSeq::DONE, |journal| journal.commits.committed())
    }

    /// The shard's side of the journal, for the records of shared groups.
    pub(super) fn journal(&mut self) -> Option<&mut ShardJournal> {
        self.journal.as_deref_mut()
    }
}
