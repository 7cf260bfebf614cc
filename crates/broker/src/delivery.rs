//! Messages on their way: to the queue of a session, to a member of a shared subscription, from one
//! shard to another.

use std::sync::Arc;

use tacho_journal::{MessageId, QueueId};
use tacho_session::Payload;
use tacho_topic::{Group, ShardSet};

use crate::config::Level;
use crate::message::Message;

/// A message on its way to one session, and the shared subscription it came through, if any.
///
/// The group matters when the session ends with the message undelivered: it goes to another member.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    pub(crate) message: Body,
    /// `NO_GROUP` for an ordinary subscription.
    pub(crate) group: GroupRef,
}

/// A message, or where it is.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// In memory.
    Here(Message),
    /// In the journal: it has to be read before it can be sent.
    Stored(MessageId),
}

impl Body {
    /// The message, if it is in memory.
    #[inline]
    pub(crate) const fn here(&self) -> Option<&Message> {
        match self {
            Self::Here(message) => Some(message),
            Self::Stored(_) => None,
        }
    }
}

impl Payload for Copy {
    #[inline]
    fn is_loaded(&self) -> bool {
        matches!(self.message, Body::Here(_))
    }
}

/// A shared subscription by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupRef(pub(crate) u64);

/// No shared subscription: their numbers begin with 1.
pub(crate) const NO_GROUP: GroupRef = GroupRef(0);

/// A place in a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) queue: QueueId,
    pub(crate) seq: u64,
    pub(crate) level: Level,
}

/// What a part of a distribution ends with: it goes back to where the message came from, once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receipt {
    pub(crate) shard: u16,
    pub(crate) distribution: u32,
}

/// What keeps a message for one member of a shared subscription while it is on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owed {
    /// Nothing does: it lives in memory.
    Nothing,
    /// It is part of an open message's distribution.
    Receipt(Receipt),
    /// It has a place in a queue of the journal.
    Place(Place),
}

/// A message for one member of a shared subscription, and what keeps it on its way there.
#[derive(Debug)]
pub(crate) struct ForOne {
    pub(crate) message: Message,
    pub(crate) owed: Owed,
}

impl Owed {
    /// Whether the journal is sure to have the message.
    pub(crate) fn is_kept(self) -> bool {
        !matches!(self, Self::Nothing)
    }
}

/// A message of a shared subscription for a shard whose members perhaps take it.
pub(crate) struct LargeShared {
    pub(crate) group: Arc<Group>,
    pub(crate) one: ForOne,
    /// The shards whose members do not.
    pub(crate) asked: ShardSet,
}
