//! A session as its shard keeps it: the protocol machine and what surrounds it.

use tacho_access::Who;
use tacho_codec::Version;
use tacho_net::ConnId;
use tacho_session::server::{ConnectParams, Connected};
use tacho_session::{DropReason, Overflow, QueueLevel};

use super::partial::PartialPacket;
use super::terms::PeerTerms;
use crate::config::{QueuePolicy, overflow_of};
use crate::delivery::Copy;
use crate::ending::LastConnection;
use crate::keys::{ClientKey, LinkIndex};
use crate::message::Source;
use crate::publish_limit::PublishMeter;
use crate::shard::access::SessionAccess;
use crate::shard::admission::ClientPressure;
use crate::shard::durability::{Machine, SessionJournal, Subject};
use crate::shard::groups::Memberships;
use crate::shard::retained::SessionReplays;
use crate::shard::routing::{RouteHint, SessionRequest, SubscribedFilters};
use crate::shard::timers::DeadlineTimer;
use crate::trace::SessionTrace;

/// One session, connected or not. Boxed, so that an idle one costs no more than it is.
///
/// Its public parts belong to other folders, which alone see into them.
pub(in crate::shard) struct Session {
    pub(super) generation: u32,
    key: ClientKey,
    /// Set and cleared by [`Sessions`](super::Sessions), which counts connected sessions.
    pub(super) connection: Option<ConnId>,
    peer: Peer,
    terms: PeerTerms,
    /// The source of its publishes.
    source: Source,
    /// Messages dropped in the machine's keeping that the shard has counted: the low bits of the
    /// numbers that have expired, and for which the queue was full.
    counted: (u32, u32),
    queue_policy: QueuePolicy,
    /// Its queue is full, and publishers have to keep messages for it.
    pub(super) is_full: bool,
    partial: PartialPacket,
    pub(super) timer: DeadlineTimer,
    /// Of the last one that has ended since the broker started. Boxed: many sessions have none.
    last_connection: Option<Box<LastConnection>>,
    /// Places of messages in its queue and window, as [`Sessions`](super::Sessions) counts them.
    pub(super) places: u32,
    /// The protocol. What it records goes through [`Shard::act`](crate::shard::Shard::act).
    pub(in crate::shard) machine: Machine,
    pub(in crate::shard) subscriptions: SubscribedFilters,
    pub(in crate::shard) memberships: Memberships,
    pub(in crate::shard) request: SessionRequest,
    pub(in crate::shard) replays: SessionReplays,
    pub(in crate::shard) pressure: ClientPressure,
    pub(in crate::shard) meter: PublishMeter,
    pub(in crate::shard) journal: SessionJournal,
    pub(in crate::shard) access: SessionAccess,
    /// Of its client's last PUBLISH.
    pub(in crate::shard) route_hint: RouteHint,
    pub(in crate::shard) trace: SessionTrace,
    /// Messages and bytes in its queue when a policy began that drops some at its limits.
    #[cfg(feature = "sim")]
    kept_over: Option<Box<(usize, u64)>>,
}

/// Messages that a session's machine has dropped of those in its keeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::shard) struct DroppedInKeeping {
    /// They expired.
    pub(in crate::shard) expired: u64,
    /// The queue was full.
    pub(in crate::shard) queue_full: u64,
}

/// The other end of a session's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shard) enum Peer {
    Client,
    /// A client that is another broker's bridge, as its CONNECT says.
    Bridge,
    /// Another broker, to which the shard's link of this number connects.
    Broker {
        link: LinkIndex,
    },
}

impl Session {
    /// A session that has no connection.
    pub(in crate::shard) fn new(
        key: ClientKey,
        machine: Machine,
        source: Source,
        subscriptions: SubscribedFilters,
        journal: SessionJournal,
    ) -> Self {
        Self {
            generation: 0,
            key,
            connection: None,
            peer: Peer::Client,
            terms: PeerTerms::NONE,
            source,
            counted: (0, 0),
            queue_policy: QueuePolicy::DropNewest,
            is_full: false,
            partial: PartialPacket::default(),
            timer: DeadlineTimer::default(),
            last_connection: None,
            places: 0,
            machine,
            subscriptions,
            memberships: Memberships::default(),
            request: SessionRequest::default(),
            replays: SessionReplays::default(),
            pressure: ClientPressure::default(),
            meter: PublishMeter::default(),
            journal,
            access: SessionAccess::default(),
            route_hint: RouteHint::default(),
            trace: SessionTrace::default(),
            #[cfg(feature = "sim")]
            kept_over: None,
        }
    }

    /// Tells the session from others that had its slot.
    #[inline]
    pub(in crate::shard) fn generation(&self) -> u32 {
        self.generation
    }

    pub(in crate::shard) fn key(&self) -> &ClientKey {
        &self.key
    }

    /// Its client, as access rules ask about it.
    pub(in crate::shard) fn who(&self) -> Who<'_> {
        let (user, client_id) = (self.access.user_name(), &*self.key.client_id);
        let (origin, attributes) = (self.access.origin(), self.access.attributes());
        Who { user, client_id, origin, attributes }
    }

    /// Its peer's connection, if it has one.
    #[inline]
    pub(in crate::shard) fn connection(&self) -> Option<ConnId> {
        self.connection
    }

    #[inline]
    pub(in crate::shard) fn source(&self) -> Source {
        self.source
    }

    /// Whether its client is another broker's bridge.
    pub(in crate::shard) fn is_bridge(&self) -> bool {
        self.peer == Peer::Bridge
    }

    /// Its connection has ended in this way.
    pub(in crate::shard) fn note_last_connection(&mut self, last: LastConnection) {
        match &mut self.last_connection {
            Some(known) => **known = last,
            none => *none = Some(Box::new(last)),
        }
    }

    /// Its last connection that has ended since the broker started.
    pub(in crate::shard) fn last_connection(&self) -> Option<&LastConnection> {
        self.last_connection.as_deref()
    }

    /// What its peer accepts.
    #[inline]
    pub(in crate::shard) fn terms(&self) -> &PeerTerms {
        &self.terms
    }

    /// The protocol version of its peer.
    #[inline]
    pub(in crate::shard) fn version(&self) -> Version {
        self.terms.version()
    }

    /// The number among the shard's links of bridges, if it is one's.
    #[inline]
    pub(in crate::shard) fn link(&self) -> Option<LinkIndex> {
        match self.peer {
            Peer::Broker { link } => Some(link),
            Peer::Client | Peer::Bridge => None,
        }
    }

    /// A CONNECT says what its client is.
    pub(in crate::shard) fn requested_by(&mut self, peer: Peer) {
        self.peer = peer;
    }

    /// A client is connected, on these terms.
    pub(in crate::shard) fn client_connected(
        &mut self,
        now_ns: u64,
        params: ConnectParams<Copy>,
        terms: PeerTerms,
    ) -> Connected<Copy> {
        self.terms = terms;
        // The address, and the user, may be others.
        self.trace = SessionTrace::default();
        self.pressure.client_connected();
        self.machine.connect(now_ns, params)
    }

    /// The link of a bridge is connected, on these terms.
    pub(in crate::shard) fn link_connected(
        &mut self,
        now_ns: u64,
        params: ConnectParams<Copy>,
        terms: PeerTerms,
    ) {
        self.terms = terms;
        self.pressure.link_connected();
        self.machine.connect(now_ns, params);
    }

    /// The session is that of a bridge's link, and what comes from there has this source.
    pub(in crate::shard) fn became_link(
        &mut self,
        link: LinkIndex,
        source: Source,
        version: Version,
    ) {
        (self.peer, self.source) = (Peer::Broker { link }, source);
        self.terms = PeerTerms::of_broker(version, u32::MAX);
    }

    /// The session is no link's any more, and about to end.
    pub(in crate::shard) fn left_bridge(&mut self) {
        self.peer = Peer::Client;
    }

    /// The version of the client's last connection to an earlier start of the broker.
    pub(in crate::shard) fn restore_version(&mut self, version: Version) {
        self.terms = self.terms.with_version(version);
    }

    /// How many bytes an unfinished packet, now `len` bytes, has more than when that was last told.
    /// 0 if that is too little for a sign of life.
    pub(in crate::shard) fn partial_grew(&mut self, len: usize) -> usize {
        self.partial.grown_by(len as u32) as usize
    }

    /// The unfinished packet is finished: how many bytes of it were told.
    #[inline]
    pub(in crate::shard) fn partial_finished(&mut self) -> usize {
        self.partial.finish() as usize
    }

    /// Messages dropped in the machine's keeping, or for its full queue, and not counted before.
    #[inline]
    pub(in crate::shard) fn take_dropped(&mut self) -> DroppedInKeeping {
        let now = self.dropped_so_far();
        let before = std::mem::replace(&mut self.counted, now);
        DroppedInKeeping {
            expired: now.0.wrapping_sub(before.0).into(),
            queue_full: now.1.wrapping_sub(before.1).into(),
        }
    }

    #[inline]
    fn dropped_so_far(&self) -> (u32, u32) {
        let counters = self.machine.counters();
        let full =
            counters.dropped(DropReason::QueueFull) + counters.dropped(DropReason::QueueBytesFull);
        (counters.dropped(DropReason::Expired) as u32, full as u32)
    }

    /// Whether there is more to do for it than to move its output: dropped messages to count,
    /// stored ones to load, replays or changes of memberships.
    #[inline]
    pub(super) fn needs_more(&self) -> bool {
        self.journal.has_stored()
            || self.replays.are_under_way()
            || !self.memberships.is_empty()
            || self.dropped_so_far() != self.counted
    }

    /// What becomes of messages at the limits of its queue.
    pub(in crate::shard) fn queue_policy(&self) -> QueuePolicy {
        self.queue_policy
    }

    /// Sets what becomes of messages at the limits of its queue. Those that are above them already
    /// stay: they may have been acknowledged.
    pub(in crate::shard) fn set_queue_policy(&mut self, policy: QueuePolicy) {
        #[cfg(feature = "sim")]
        self.note_kept_over();
        self.queue_policy = policy;
        self.machine.set_overflow(overflow_of(policy));
    }

    #[cfg(feature = "sim")]
    fn note_kept_over(&mut self) {
        if self.machine.overflow() == Overflow::Keep {
            self.kept_over = Some(Box::new((self.machine.queue_len(), self.machine.queue_bytes())));
        }
    }

    /// Messages and bytes that may be in its queue; `u64::MAX` where publishers are held up, since
    /// what was routed before they knew that it is full exceeds its limit.
    #[cfg(feature = "sim")]
    pub(in crate::shard) fn queue_max(&self, len_max: u64, bytes_max: u64) -> (u64, u64) {
        if self.machine.overflow() == Overflow::Keep {
            return (u64::MAX, u64::MAX);
        }
        let (len, bytes) = self.kept_over.as_deref().copied().unwrap_or_default();
        (len_max.max(len as u64), bytes_max.max(bytes))
    }

    /// Whether its queue is full, and publishers have to keep messages for it.
    pub(in crate::shard) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Notes whether the queue is full; true if that has changed. A full one counts as full until a
    /// quarter of it is free.
    #[inline]
    pub(super) fn note_level(&mut self) -> bool {
        let is_full = match self.machine.overflow() {
            Overflow::DropNewest | Overflow::DropOldest => false,
            Overflow::Keep => match self.machine.queue_level() {
                QueueLevel::Room => false,
                QueueLevel::High => self.is_full,
                QueueLevel::Full => true,
            },
        };
        std::mem::replace(&mut self.is_full, is_full) != is_full
    }

    /// What an action on the session needs to know of it.
    #[inline]
    pub(in crate::shard) fn subject(&mut self) -> Subject<'_> {
        Subject {
            machine: &mut self.machine,
            journal: &self.journal,
            is_connected: self.connection.is_some(),
            generation: self.generation,
        }
    }

    /// Whether the session goes on when its client connects: being taken over ends one that lasts
    /// no longer than its connection.
    pub(in crate::shard) fn is_resumable(&self) -> bool {
        self.machine.exists() && (self.connection.is_none() || self.machine.expiry_s() > 0)
    }

    /// Messages to the client that were dropped because it was slow or did not come back.
    pub(in crate::shard) fn missed_total(&self) -> u64 {
        let slow = [DropReason::QueueFull, DropReason::QueueBytesFull, DropReason::NoCredit];
        let counters = self.machine.counters();
        let dropped: u64 = slow.into_iter().map(|reason| counters.dropped(reason)).sum();
        dropped + self.pressure.shed_total()
    }

    /// Messages to the client that were dropped, for whatever reason.
    pub(in crate::shard) fn dropped_total(&self) -> u64 {
        self.machine.counters().dropped_total() + self.pressure.shed_total()
    }
}

#[cfg(test)]
mod tests {
    use super::Session;

    /// The allocator hands out 640 bytes, or 768: what few sessions have is boxed.
    #[test]
    fn a_session_fits_its_place() {
        assert!(size_of::<Session>() <= 640, "{} bytes", size_of::<Session>());
    }
}
