//! What the journal keeps of a session beside its messages: that it exists and until when, its
//! subscriptions, its will.

use tacho_journal::QueueId;

use crate::config::Level;

/// A durable session's place in the journal, from its creation to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) queue: QueueId,
    pub(crate) level: Level,
    /// Whether the journal has a will of the session.
    pub(crate) has_will: bool,
}
