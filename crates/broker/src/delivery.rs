//! Messages on their way: to the queue of a session, to a member of a shared subscription, from one
//! shard to another.

use std::sync::Arc;

use tacho_journal::{MessageId, QueueId};
use tacho_session::Payload;
use tacho_topic::{Group, ShardSet};

use crate::config::Level;
use crate::message::Message;

/// A message for one session, and its shared subscription, if any.
///
/// If the session ends before the message is delivered, another member of the group gets it.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    pub(crate) message: Body,
    /// `NO_GROUP` for an ordinary subscription.
    pub(crate) group: GroupRef,
}

/// A message, or its identifier in the journal.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// In memory.
    Here(Message),
    /// In the journal: the message has to be loaded before it can be sent.
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

/// No shared subscription: group numbers begin with 1.
pub(crate) const NO_GROUP: GroupRef = GroupRef(0);

/// A queue entry in the journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) queue: QueueId,
    pub(crate) seq: u64,
    pub(crate) level: Level,
}

/// Confirms that a part of a distribution is stored: it is returned once to the shard of the
/// publisher.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receipt {
    pub(crate) shard: u16,
    pub(crate) distribution: u32,
}

/// What keeps a message for one member of a shared subscription on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owed {
    /// Nothing: the message is only in memory.
    Nothing,
    /// A part of the distribution of an open message.
    Receipt(Receipt),
    /// A queue entry in the journal.
    Place(Place),
}

/// A message for one member of a shared subscription, and what keeps it on its way there.
#[derive(Debug)]
pub(crate) struct ForOne {
    pub(crate) message: Message,
    pub(crate) owed: Owed,
}

impl Owed {
    /// Whether the journal has the message.
    pub(crate) fn is_kept(self) -> bool {
        !matches!(self, Self::Nothing)
    }
}

/// A message of a shared subscription that is too large for some members: for the members of
/// another shard.
pub(crate) struct LargeShared {
    pub(crate) group: Arc<Group>,
    pub(crate) one: ForOne,
    /// The shards that have no member for it.
    pub(crate) asked: ShardSet,
}
