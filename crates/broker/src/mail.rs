//! What shards tell each other.

use std::sync::Arc;

use tacho_journal::{CommitSeq, MessageId, ReadError};
use tacho_topic::{Group, RetainedCursor, TopicFilter};

use crate::authentication::{AuthStep, ExchangeRef};
use crate::delivery::{ForOne, LargeShared, Place, Receipt};
use crate::keys::SessionRef;
use crate::message::{Message, SharedPayload};
use crate::permits::Permit;
use crate::query::Query;

/// A connection on its way to another shard.
pub(crate) type Detached = tacho_net::Detached<SharedPayload>;

/// One entry of a shard's mailbox.
pub(crate) enum Mail {
    /// A connection whose session this shard owns; its CONNECT is still unread.
    Adopt(Box<Adopted>),
    /// Deliver to every matching subscription of the shard's sessions, and return the receipt if
    /// there is one.
    Deliver(Message, Option<Receipt>),
    /// A message was delivered in the sender's shard, and is safe there with this commit.
    Stored(Receipt, CommitSeq),
    /// Everything up to this is committed: for a shard that has said that it waits.
    Committed,
    /// Members of a shared subscription came or went or have room again: for its owner.
    GroupChanged(Arc<Group>),
    /// Deliver to one member of a shared subscription.
    DeliverShared(Arc<Group>, ForOne),
    /// The same for a message that has waited, and counts as waiting until it is delivered, so
    /// that newer ones do not overtake it.
    DeliverWaited(Arc<Group>, ForOne),
    /// The same for a message that is too large for all members of the sender's shard.
    DeliverLarge(Box<LargeShared>),
    /// Keep until a member of a shared subscription can take it: for its owner.
    QueueShared(Arc<Group>, ForOne),
    /// Keep as the retained message of its topic; an empty payload removes it.
    Retain(Message),
    /// Read retained messages for a new subscription.
    ReplayRequest(Box<ReplayRequest>),
    /// The answer.
    ReplayBatch(Box<ReplayBatch>),
    /// What a method of authentication answers.
    Authenticated(ExchangeRef, AuthStep),
    /// Publish the broker's own figures.
    PublishSys(Box<[SysValue]>),
    /// Answer a question of the control plane.
    Ask(Box<Query>),
    /// A message to this topic had to wait in the sender's shard although the budget of all that
    /// waits is used up.
    Clogged(Arc<str>),
    /// Messages that were asked for have been read.
    Loaded(Box<Loaded>),
    /// All shards have what was recovered: sessions' timers may run.
    Recovered,
    /// Say goodbye to the clients and end.
    Shutdown,
}

/// A connection on its way to another shard.
pub(crate) struct Adopted {
    pub(crate) detached: Detached,
    /// The listener that accepted it.
    pub(crate) listener: u16,
    pub(crate) socket: Permit,
}

/// Messages read back from the journal.
pub(crate) struct Loaded {
    pub(crate) wanted_for: LoadedFor,
    pub(crate) messages: Vec<Read>,
}

/// A message's number and its bytes.
pub(crate) type Read = (MessageId, Result<Arc<[u8]>, ReadError>);

/// Who messages are read for.
#[derive(Clone, Debug)]
pub(crate) enum LoadedFor {
    /// A session that is to send them.
    Session(SessionRef),
    /// A shared subscription, a member of which has left one, with its place in the group's queue.
    Group(Arc<Group>, Place),
}

/// A figure of the broker on its way to subscribers.
pub(crate) struct SysValue {
    pub(crate) topic: Arc<str>,
    pub(crate) payload: Box<str>,
}

/// One pull of retained messages: the owner keeps no state, the cursor is all there is.
pub(crate) struct ReplayRequest {
    pub(crate) session: SessionRef,
    /// Which of the session's replays this is.
    pub(crate) replay: u32,
    pub(crate) filter: TopicFilter,
    /// Where to go on.
    pub(crate) cursor: RetainedCursor,
    /// Values that live routing delivered to this subscription are not wanted again: those routed
    /// with this version of the route map or a later one.
    pub(crate) visible_version: u64,
    /// To be read once everything up to this version has arrived at its owner.
    pub(crate) after: u64,
}

/// Some retained messages, and where to go on.
pub(crate) struct ReplayBatch {
    pub(crate) session: SessionRef,
    pub(crate) replay: u32,
    pub(crate) messages: Vec<Message>,
    /// `None` when the owner has no more.
    pub(crate) next: Option<RetainedCursor>,
}
