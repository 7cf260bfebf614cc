//! Questions that the control plane asks shards, and their answers; and what it has them do.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use serde::Serialize;
use tacho_access::AddressRange;
use tacho_codec::QoS;
use tacho_topic::{Group, RetainedCursor, TopicFilter};
use tokio::sync::oneshot;

use crate::asked_access::{AccessAnswer, AskedAccess};
use crate::bridge::Bridges;
use crate::topic_metrics::TopicMetrics;
use crate::trace::TraceSet;

/// Where a shard's answer goes.
pub(crate) type Reply<T> = oneshot::Sender<T>;

/// A question to one shard; it answers in its next turn.
pub(crate) enum Query {
    /// Does the shard take turns?
    Pulse(Reply<()>),
    /// Which clients does it have?
    Clients(ClientScan, Reply<ScannedClients>),
    /// What is there to know of this client, whose session it owns?
    Client(Arc<str>, Reply<Option<Box<ClientDetail>>>),
    /// What has this client subscribed to?
    SubscriptionsOf(Arc<str>, usize, Reply<Option<ScannedSubscriptions>>),
    /// Which of its sessions have subscribed to this?
    Subscribers(SubscriberScan, Reply<ScannedSubscribers>),
    /// What may this client do, whose session it owns?
    Explain(Box<AskedAccess>, Reply<Option<Result<AccessAnswer, String>>>),
    /// Which of its filters match this topic?
    FiltersOf(Arc<str>, Reply<Vec<String>>),
    /// Which members does a shared group have here?
    Members(Arc<Group>, usize, Reply<Vec<MemberRow>>),
    /// Which retained messages does it own?
    Retained(RetainedScan, Reply<ScannedRetained>),
    /// The retained message of a topic that it owns.
    RetainedMessage(Arc<str>, Reply<Option<Box<RetainedMessage>>>),
    /// Remove the retained message of a topic that it owns: whether there was one.
    DeleteRetained(Arc<str>, Reply<bool>),
    /// Publish a message of the broker's operator.
    Publish(Box<Publication>, Reply<Result<(), NotPublished>>),
    /// Disconnect a client: whether it was there.
    Kick(Arc<str>, KickedSession, Reply<Option<Kicked>>),
    /// These are the bridges from now on.
    SetBridges(Arc<Bridges>, Reply<()>),
    /// Do what an operator wants of the bridge at this place.
    BridgeMode(usize, Reply<()>),
    /// Follow these clients and topics from now on.
    Trace(Arc<TraceSet>, Reply<()>),
    /// Count messages of these filters from now on.
    CountTopics(Arc<TopicMetrics>, Reply<()>),
    /// Count what each client publishes, or no longer.
    CountPublishes(bool, Reply<()>),
    /// Which clients have published most since then?
    Publishers(PublisherScan, Reply<ScannedPublishers>),
    /// Which of its clients were slow?
    SlowHistory(Reply<Vec<SlowRow>>),
    /// Take no more clients; name them this server.
    BeginDrain(Option<Arc<str>>, Reply<()>),
    /// Send clients away, so many at most.
    SendAway(usize, Reply<SentAway>),
    /// Take clients again.
    EndDrain(Reply<()>),
    /// Accept connections from this socket, as from the listener with this number: whether it does.
    Listen(usize, TcpListener, Reply<bool>),
    /// Close the socket of the listener with this number.
    CloseListener(usize, Reply<()>),
}

/// Asks for some of a shard's sessions.
pub(crate) struct ClientScan {
    /// The first slot to look at. The shard looks at a bounded number of slots from there on.
    pub(crate) from: usize,
    /// Rows wanted, at most.
    pub(crate) limit: usize,
    pub(crate) order: ScanOrder,
    /// Which clients are wanted; all sessions without it, links of bridges included.
    pub(crate) filter: Option<Arc<ClientFilter>>,
}

/// Which sessions a scan returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanOrder {
    /// All sessions, by slot.
    Slot,
    /// The slowest among the slots scanned: those whose queue is full, then connected ones.
    Slowest,
    /// Those with the largest queues among the slots scanned.
    Queue,
}

/// Which clients are wanted: those for which everything given here holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientFilter {
    /// The beginning of the client identifier.
    pub(crate) prefix: Option<String>,
    pub(crate) user: Option<String>,
    /// Where the client is connected from.
    pub(crate) addresses: Option<AddressRange>,
    pub(crate) is_connected: Option<bool>,
}

/// Some sessions of a shard.
#[derive(Debug)]
pub(crate) struct ScannedClients {
    pub(crate) rows: Vec<ClientRow>,
    /// The slot to continue at; `None` after the last slot.
    pub(crate) next: Option<usize>,
}

/// One session as users see it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ClientRow {
    pub(crate) client_id: String,
    pub(crate) shard: usize,
    pub(crate) connected: bool,
    /// The peer's address, while connected.
    pub(crate) address: Option<SocketAddr>,
    /// The user that it has logged in as.
    pub(crate) user: Option<String>,
    /// The MQTT version of its last CONNECT.
    pub(crate) version: String,
    /// How long it has been connected, or away since the broker started.
    pub(crate) for_s: Option<u64>,
    pub(crate) subscriptions: usize,
    /// Messages queued behind the in-flight window.
    pub(crate) queue_len: usize,
    pub(crate) queue_bytes: u64,
    /// Its queue is full, and publishers are refused or held back for that.
    pub(crate) queue_full: bool,
    /// QoS 1 and 2 messages sent and not acknowledged.
    pub(crate) inflight: usize,
    /// Bytes of output that its connection has not taken.
    pub(crate) output_bytes: usize,
    /// Messages to it that were dropped, for any reason.
    pub(crate) dropped: u64,
    /// How long its output has been above its limit; 0 while it is not.
    pub(crate) blocked_ms: u64,
}

impl ClientRow {
    /// Bytes that wait for the client: the order of the slowest clients, behind full ones.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.queue_bytes + self.output_bytes as u64
    }
}

/// All there is to know of one session, without its subscriptions.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ClientDetail {
    #[serde(flatten)]
    pub(crate) row: ClientRow,
    /// Which listener accepted its connection, as configured.
    pub(crate) listener: Option<SocketAddr>,
    /// The session is in the journal.
    pub(crate) durable: bool,
    /// The client is another broker's bridge.
    pub(crate) bridge: bool,
    /// How long the session outlives its connection; absent: for ever.
    pub(crate) session_expiry_s: Option<u32>,
    /// When the session ends unless the client comes back.
    pub(crate) session_ends_in_s: Option<u64>,
    /// Messages that may be in flight to it, as both sides allow.
    pub(crate) inflight_max: usize,
    /// QoS 1 and 2 messages of it that are not acknowledged.
    pub(crate) inbound_unacked: u32,
    pub(crate) packet_size_max: Option<u32>,
    pub(crate) will: Option<WillDetail>,
    pub(crate) dropped_by_reason: DroppedByReason,
    pub(crate) last_connection: Option<LastConnectionDetail>,
}

/// A will that is not published.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WillDetail {
    pub(crate) topic: String,
    pub(crate) qos: u8,
    pub(crate) retain: bool,
    pub(crate) payload_bytes: usize,
    pub(crate) delay_s: u32,
}

/// Messages to one client that were dropped.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct DroppedByReason {
    pub(crate) offline: u64,
    pub(crate) queue_full: u64,
    pub(crate) queue_bytes_full: u64,
    pub(crate) no_credit: u64,
    pub(crate) expired: u64,
    pub(crate) packet_too_large: u64,
    pub(crate) denied: u64,
    /// The broker shed load.
    pub(crate) shed: u64,
}

/// The connection before, if it ended since the broker started.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LastConnectionDetail {
    pub(crate) reason: String,
    pub(crate) ended_s_ago: u64,
    pub(crate) duration_s: u64,
}

/// Some subscriptions of a client from a place on, and whether there are more.
pub(crate) type ScannedSubscriptions = (Vec<SubscriptionRow>, bool);

/// Subscriptions in one answer.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 512;

/// One subscription of a client.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SubscriptionRow {
    pub(crate) filter: String,
    pub(crate) qos: u8,
    pub(crate) no_local: bool,
    pub(crate) retain_as_published: bool,
    pub(crate) subscription_id: Option<u32>,
}

/// Asks which sessions of a shard have subscribed to a filter.
pub(crate) struct SubscriberScan {
    pub(crate) filter: TopicFilter,
    /// The first place to look at.
    pub(crate) from: usize,
    pub(crate) limit: usize,
}

/// Some of the sessions that have subscribed to a filter.
#[derive(Debug)]
pub(crate) struct ScannedSubscribers {
    pub(crate) rows: Vec<SubscriberRow>,
    /// The place to continue at; `None` after the last one.
    pub(crate) next: Option<usize>,
}

/// A session that has subscribed to something.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SubscriberRow {
    pub(crate) client_id: String,
    pub(crate) filter: String,
    pub(crate) qos: u8,
    pub(crate) connected: bool,
}

/// A member of a shared group.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MemberRow {
    pub(crate) client_id: String,
    pub(crate) qos: u8,
    pub(crate) connected: bool,
    pub(crate) inflight: usize,
    pub(crate) queue_len: usize,
}

/// Asks for some of the retained messages that a shard owns.
pub(crate) struct RetainedScan {
    pub(crate) filter: TopicFilter,
    pub(crate) cursor: RetainedCursor,
    /// Rows wanted, at most and at least 1.
    pub(crate) limit: usize,
}

/// Some of them.
#[derive(Debug)]
pub(crate) struct ScannedRetained {
    pub(crate) rows: Vec<RetainedRow>,
    /// Where to continue; `None` at the end.
    pub(crate) next: Option<RetainedCursor>,
}

/// A retained message without its payload.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RetainedRow {
    pub(crate) topic: String,
    pub(crate) qos: u8,
    pub(crate) payload_bytes: usize,
    /// The user that has published it; absent for anonymous clients and the broker.
    pub(crate) user: Option<String>,
    pub(crate) expires_in_s: Option<u32>,
}

/// A retained message.
#[derive(Clone, Debug)]
pub(crate) struct RetainedMessage {
    pub(crate) row: RetainedRow,
    pub(crate) payload: Vec<u8>,
    pub(crate) content_type: Option<String>,
}

/// Asks for some of the clients that have published since counting began.
pub(crate) struct PublisherScan {
    /// The first slot to look at.
    pub(crate) from: usize,
    pub(crate) limit: usize,
}

/// Some of them.
#[derive(Debug)]
pub(crate) struct ScannedPublishers {
    pub(crate) rows: Vec<PublisherRow>,
    /// The slot to continue at; `None` after the last slot.
    pub(crate) next: Option<usize>,
}

/// What a client has published.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PublisherRow {
    pub(crate) client_id: String,
    pub(crate) shard: usize,
    pub(crate) user: Option<String>,
    pub(crate) address: Option<SocketAddr>,
    /// PUBLISH packets while they were counted.
    pub(crate) messages: u64,
    /// Bytes of their payloads.
    pub(crate) bytes: u64,
}

/// A time in which a client was slow.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SlowRow {
    pub(crate) client_id: String,
    pub(crate) shard: usize,
    /// When it ended, or was told.
    pub(crate) ended_s_ago: u64,
    /// How long the client's output was above its limit; 0 where it missed messages of its queue.
    pub(crate) blocked_ms: u64,
    /// Messages that it has missed.
    pub(crate) dropped: u64,
}

/// A message of the broker's operator.
#[derive(Clone, Debug)]
pub(crate) struct Publication {
    pub(crate) topic: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    pub(crate) expiry_s: Option<u32>,
}

/// Why a message was not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotPublished {
    #[error("topics that begin with $SYS or $share are the broker's own")]
    OwnTopic,
    #[error("the queues of receivers or the journal take no more at present: try again later")]
    NoRoom,
}

/// Clients that were sent away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SentAway {
    pub(crate) count: usize,
    /// No client was left, from the first connection to the last one.
    pub(crate) none_left: bool,
}

/// What becomes of the session of a client that is disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KickedSession {
    /// As if the connection had broken.
    Stays,
    /// It ends with its subscriptions and its queue.
    Ends,
}

/// What became of a client that was to be disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Kicked {
    /// It was connected.
    pub(crate) was_connected: bool,
    /// Its session has ended.
    pub(crate) session_ended: bool,
}
