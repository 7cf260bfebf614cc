//! What the journal has of one session, and what its client waits for.

use super::confirmations::Confirmations;
use super::session_records::JournaledSession;

/// A session's side of the journal.
#[derive(Default)]
pub(in crate::shard) struct SessionJournal {
    /// Its place in the journal, if it is durable.
    pub(super) place: Option<JournaledSession>,
    /// Which of the shard's hand-offs are its own, once it had some: never if it is durable.
    pub(super) hand_offs: Option<u32>,
    /// Present while its client waits for a commit.
    pub(super) confirmations: Option<Box<Confirmations>>,
    pub(super) stored: StoredMessages,
}

/// Messages in a session's queue and window that are not in memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StoredMessages {
    pub(super) count: u32,
    pub(super) request: ReadRequest,
}

/// Whether stored messages have been asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReadRequest {
    #[default]
    None,
    UnderWay,
}

impl StoredMessages {
    pub(super) fn left(&mut self, messages: u32) {
        self.count = self.count.saturating_sub(messages);
    }
}

impl SessionJournal {
    pub(in crate::shard) fn new(place: Option<JournaledSession>) -> Self {
        Self { place, ..Self::default() }
    }

    /// Whether the session is durable.
    #[inline]
    pub(in crate::shard) fn is_durable(&self) -> bool {
        self.place.is_some()
    }

    /// Whether a message that the session is offered may have a place in the journal.
    #[inline]
    pub(in crate::shard) fn has_places(&self) -> bool {
        self.place.is_some() || self.hand_offs.is_some()
    }

    /// Whether some of the session's messages are not in memory.
    #[inline]
    pub(in crate::shard) fn has_stored(&self) -> bool {
        self.stored.count > 0
    }

    /// The session's connection is over: nothing waits to be confirmed.
    pub(in crate::shard) fn disconnected(&mut self) {
        self.confirmations = None;
    }
}
