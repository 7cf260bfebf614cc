//! Mail: what shards, and the threads beside them, send to a shard.

use std::sync::Arc;

use tacho_journal::{CommitSeq, MessageId, ReadError};
use tacho_topic::{Group, RetainedCursor, TopicFilter, WaitingPlace};

use crate::authentication::{AuthStep, ExchangeRef};
use crate::config::Limits;
use crate::delivery::{ForOne, LargeShared, Place, Receipt};
use crate::gate::ConnectionPermits;
use crate::keys::SessionRef;
use crate::login_answer::LoginAnswer;
use crate::message::{Message, SharedPayload};
use crate::policy::Policy;
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
    /// A commit is complete: sent to shards that wait for commits.
    Committed,
    /// Members of a shared subscription joined, left or have credit again: for its owner.
    GroupChanged(Arc<Group>),
    /// Deliver to one member of a shared subscription.
    DeliverShared(Arc<Group>, ForOne),
    /// Deliver a message that was queued for the group. It counts as queued until it is delivered,
    /// so that newer messages do not overtake it.
    DeliverWaited(WaitingPlace, ForOne),
    /// Deliver a message that is too large for all members in the sender's shard.
    DeliverLarge(Box<LargeShared>),
    /// Queue until a member of the shared subscription can take it: for its owner.
    QueueShared(WaitingPlace, ForOne),
    /// Keep as the retained message of its topic; an empty payload removes it.
    Retain(Message),
    /// Send retained messages for a new subscription.
    ReplayRequest(Box<ReplayRequest>),
    /// The answer to a replay request.
    ReplayBatch(Box<ReplayBatch>),
    /// The answer of an authentication method.
    Authenticated(ExchangeRef, AuthStep),
    /// Whether the credentials of a login are right.
    LoggedIn(ExchangeRef, Box<LoginAnswer>),
    /// Users and access rules from now on.
    PolicyChanged(Arc<Policy>),
    /// Limits from now on.
    LimitsChanged(Arc<Limits>),
    /// Certificates of clients may be refused now that were accepted before.
    CertificatesJudgedAnew,
    /// Publish changed `$SYS` values.
    PublishSys(Box<[SysValue]>),
    /// Answer a query of the control plane.
    Query(Box<Query>),
    /// A message to this topic was queued in the sender's shard although the memory budget for
    /// queues is used up.
    Clogged(Arc<str>),
    /// There is room in queues again: publishers that are held back may go on.
    RoomMade,
    /// Messages requested from the journal.
    Loaded(Box<Loaded>),
    /// All shards have restored their sessions: session timers may run.
    Recovered,
    /// Disconnect the clients and end.
    Shutdown,
}

/// A connection on its way to another shard.
pub(crate) struct Adopted {
    pub(crate) detached: Detached,
    /// The listener that accepted it.
    pub(crate) listener: u16,
    pub(crate) permits: ConnectionPermits,
}

/// Messages read back from the journal.
pub(crate) struct Loaded {
    pub(crate) wanted_for: LoadedFor,
    pub(crate) messages: Vec<Read>,
}

/// A message identifier and the bytes of the message.
pub(crate) type Read = (MessageId, Result<Arc<[u8]>, ReadError>);

/// The receiver of messages that are read from the journal.
#[derive(Clone, Debug)]
pub(crate) enum LoadedFor {
    /// A session that will send them.
    Session(SessionRef),
    /// A shared subscription, for a message that a member left, with its entry in the queue of the
    /// group.
    Group(Arc<Group>, Place),
}

/// A `$SYS` topic and its new payload.
pub(crate) struct SysValue {
    pub(crate) topic: Arc<str>,
    pub(crate) payload: Box<str>,
}

/// A request for retained messages of an owner. The owner keeps no state of replays: the cursor
/// holds the position.
pub(crate) struct ReplayRequest {
    pub(crate) session: SessionRef,
    /// Identifies the replay within the session.
    pub(crate) replay: u32,
    pub(crate) filter: TopicFilter,
    /// Where to continue.
    pub(crate) cursor: RetainedCursor,
    /// Messages routed with this version of the route map or a later one are left out: live
    /// routing has delivered them to the subscription.
    pub(crate) visible_version: u64,
    /// To be answered once every retained version up to this one has arrived at the owner.
    pub(crate) after: u64,
}

/// Some retained messages, and where to continue.
pub(crate) struct ReplayBatch {
    pub(crate) session: SessionRef,
    pub(crate) replay: u32,
    pub(crate) messages: Vec<Message>,
    /// `None` when the owner has no more.
    pub(crate) next: Option<RetainedCursor>,
}
