//! The broker's side of a session.

mod lifetime;
mod loading;
mod peer;
mod restore;
mod types;

pub use crate::restored::{ExchangeStage, Restored, RestoredExchange};
pub use types::{ConnectParams, Connected, DisconnectEffects, End, SessionLimits, TimeoutEvent};

use std::num::NonZeroU16;
use std::sync::Arc;

use tacho_codec::{PacketId, QoS, ReasonCode, Version};

use crate::alias::{AliasesIn, AliasesOut};
use crate::incoming::Incoming;
use crate::keep_alive::KeepAlive;
use crate::lifetime::{Due, Lifetime};
use crate::outgoing::{Outgoing, OutgoingLimits};
use crate::{
    AliasOut, BatchSeq, Counters, Delivery, DropReason, Inbound, Offer, Overflow, Payload, Persist,
    ProtocolError, QueueLevel, Transmit,
};

/// The broker's side of one session; it outlives its connections.
///
/// Call order on a connection: [`Session::connect`], then [`Session::handle_activity`] for every
/// inbound packet and its `handle_*`, [`Session::offer`] for every message to the client, and after
/// each of those, and after a commit, [`Session::poll_transmit`] until it returns `None`. At the
/// end [`Session::disconnect`]. Arm a timer for [`Session::next_timeout`] after connecting and
/// disconnecting, and again whenever it fires.
#[derive(Debug)]
pub struct Session<M> {
    outgoing: Outgoing<M>,
    incoming: Incoming,
    lifetime: Lifetime<M>,
    keep_alive: KeepAlive,
    aliases_in: AliasesIn,
    aliases_out: AliasesOut,
    enforce_receive_maximum: bool,
}

impl<M: Payload> Session<M> {
    /// A session without state and without a connection.
    #[must_use]
    pub fn new(limits: SessionLimits) -> Self {
        let mut aliases_in = AliasesIn::default();
        aliases_in.set_bytes_max(limits.alias_bytes_max);
        Self {
            outgoing: Outgoing::new(outgoing_limits(&limits)),
            incoming: Incoming::new(limits.receive_maximum),
            lifetime: Lifetime::new(),
            keep_alive: KeepAlive::OFF,
            aliases_in,
            aliases_out: AliasesOut::default(),
            enforce_receive_maximum: false,
        }
    }

    /// Starts a connection, after [`Session::disconnect`] ended the previous one.
    ///
    /// A resumed session retransmits its unacknowledged PUBLISH and PUBREL, in their order.
    pub fn connect(&mut self, now_ns: u64, params: ConnectParams<M>) -> Connected<M> {
        // Resumed [MQTT-3.1.2-5] or new [MQTT-3.1.2-6]; a clean start drops the old state
        // [MQTT-3.1.2-4], [MQTT-3.1.4-4]. CONNACK tells which [MQTT-3.2.2-2], [MQTT-3.2.2-3].
        let session_present = self.lifetime.exists() && !params.clean_start;
        if !session_present {
            self.forget();
        }
        let publish_will =
            self.lifetime.open(now_ns, params.clean_start, params.session_expiry_s, params.will);
        self.outgoing.connect(params.receive_maximum);
        self.incoming.connect();
        self.aliases_in.reset(params.topic_alias_maximum_in);
        self.aliases_out.reset(params.topic_alias_maximum_out);
        self.keep_alive = KeepAlive::new(now_ns, params.keep_alive_s);
        self.enforce_receive_maximum = params.version == Version::V5;
        Connected { session_present, publish_will }
    }

    /// Ends the connection; does nothing without one.
    pub fn disconnect(&mut self, now_ns: u64, end: End) -> DisconnectEffects<M> {
        if !self.lifetime.is_connected() {
            return DisconnectEffects { publish_will: None, session_ended: false, error: None };
        }
        let (keep_will, mut expiry_override_s, clean_takeover) = match end {
            End::Normal { expiry_override } => (false, expiry_override, false),
            End::WithWill { expiry_override } => (true, expiry_override, false),
            End::TakenOver { clean_start } => (true, None, clean_start),
            End::Lost | End::ProtocolError | End::ServerShutdown => (true, None, false),
        };
        let error = self.expiry_error(expiry_override_s);
        if error.is_some() {
            expiry_override_s = None;
        }
        let keep_will = keep_will || error.is_some();
        let closing = self.lifetime.close(now_ns, keep_will, expiry_override_s, clean_takeover);
        self.keep_alive = KeepAlive::OFF;
        self.aliases_in.reset(0);
        self.aliases_out.reset(0);
        self.outgoing.disconnect();
        self.incoming.disconnect();
        if closing.session_ended {
            self.incoming.clear();
        }
        DisconnectEffects {
            publish_will: closing.publish_will,
            session_ended: closing.session_ended,
            error,
        }
    }

    /// A DISCONNECT must not give a session an expiry that CONNECT refused (MQTT 5.0, 3.14.2.2.2).
    fn expiry_error(&self, expiry_override_s: Option<u32>) -> Option<ProtocolError> {
        let requested_s = expiry_override_s?;
        (requested_s > 0 && self.lifetime.expiry_s() == 0).then_some(ProtocolError::new(
            ReasonCode::PROTOCOL_ERROR,
            "DISCONNECT sets a session expiry after CONNECT set none",
        ))
    }

    fn forget(&mut self) {
        self.outgoing.clear();
        self.incoming.clear();
    }

    /// Any packet arrived.
    #[inline]
    pub fn handle_activity(&mut self, now_ns: u64) {
        self.keep_alive.heard(now_ns);
    }

    /// When to call [`Session::handle_timeout`]. The time may move to later by itself, but never to
    /// earlier.
    #[must_use]
    pub fn next_timeout(&self) -> Option<u64> {
        match (self.keep_alive.deadline_ns(), self.lifetime.deadline_ns()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Call it until it returns `None`, then arm the timer for [`Session::next_timeout`] again.
    pub fn handle_timeout(&mut self, now_ns: u64) -> Option<TimeoutEvent<M>> {
        if self.keep_alive.deadline_ns().is_some_and(|deadline_ns| deadline_ns <= now_ns) {
            self.keep_alive = KeepAlive::OFF;
            return Some(TimeoutEvent::KeepAliveExpired);
        }
        match self.lifetime.take_due(now_ns) {
            Some(Due::Will(message)) => Some(TimeoutEvent::PublishWill(message)),
            Some(Due::End) => {
                self.incoming.clear();
                Some(TimeoutEvent::SessionExpired)
            }
            None => {
                self.release_memory();
                None
            }
        }
    }

    /// Returns the memory of empty queues. `handle_timeout` and `disconnect` do it too.
    pub fn release_memory(&mut self) {
        self.outgoing.release_memory();
        self.incoming.release_memory();
    }

    /// PUBLISH arrived, with its topic resolved. A new message has to be routed, then accepted.
    ///
    /// # Errors
    /// The client exceeds its Receive Maximum (0x93).
    #[inline]
    pub fn handle_publish(
        &mut self,
        qos: QoS,
        packet_id: Option<PacketId>,
    ) -> Result<Inbound, ProtocolError> {
        let inbound = self.incoming.handle_publish(qos, packet_id, self.enforce_receive_maximum)?;
        if inbound == Inbound::Duplicate {
            self.outgoing.count().duplicates_suppressed += 1;
        }
        Ok(inbound)
    }

    /// A new message was routed (or refused, with an error `reason`); `batch` is the newest batch
    /// of the records stored for it.
    ///
    /// Its PUBACK or PUBREC is sent after those of the messages before it and not before the
    /// commit. Delaying the call withholds the acknowledgement, which throttles the client.
    #[inline]
    pub fn accept_publish(
        &mut self,
        qos: QoS,
        packet_id: Option<PacketId>,
        reason: ReasonCode,
        batch: BatchSeq,
        persist: &mut impl Persist<M>,
    ) {
        self.incoming.accept_publish(qos, packet_id, reason, batch, persist);
    }

    /// A new message of QoS 2 is stored, but [`Session::accept_publish`] has to wait: records its
    /// identifier in the batch of the message. Without this call, accepting records it.
    pub fn record_publish(&mut self, packet_id: PacketId, persist: &mut impl Persist<M>) {
        self.incoming.record_publish(packet_id, persist);
    }

    /// PUBREL arrived: queues PUBCOMP.
    ///
    /// # Errors
    /// The client sends PUBREL without reading the answers.
    pub fn handle_pubrel(
        &mut self,
        packet_id: PacketId,
        persist: &mut impl Persist<M>,
    ) -> Result<(), ProtocolError> {
        let known = self.incoming.handle_pubrel(packet_id, persist)?;
        if !known {
            self.outgoing.count().acks_unexpected += 1;
        }
        Ok(())
    }

    /// The topic that the topic and the topic alias of a PUBLISH refer to; `None` means `topic`
    /// itself, always so without an alias.
    ///
    /// # Errors
    /// The alias is out of range (0x94) or unknown (0x82).
    #[inline]
    pub fn resolve_alias(
        &mut self,
        topic: &str,
        alias: Option<NonZeroU16>,
    ) -> Result<Option<Arc<str>>, ProtocolError> {
        self.aliases_in.resolve(topic, alias)
    }

    /// How to send `topic`. An [`AliasOut::Define`] takes effect only with
    /// [`Session::define_alias`].
    #[inline]
    pub fn plan_alias(&mut self, topic: &str) -> AliasOut {
        self.aliases_out.plan(topic)
    }

    /// A PUBLISH with `topic` and the alias that [`Session::plan_alias`] proposed is certainly
    /// written, and not dropped for its size.
    pub fn define_alias(&mut self, alias: NonZeroU16, topic: &Arc<str>) {
        self.aliases_out.define(alias, topic);
    }

    /// Offers a message for the client.
    ///
    /// It is sent now if there is a connection, no message waits in front of it and, for QoS 1 and
    /// 2, the window is open. Otherwise it is queued, or dropped and counted.
    #[inline]
    pub fn offer(
        &mut self,
        now_ns: u64,
        delivery: Delivery<M>,
        persist: &mut impl Persist<M>,
    ) -> Offer<M> {
        self.outgoing.offer(now_ns, delivery, persist)
    }

    /// The reason why [`Session::offer`] would drop the message now, for messages that can wait
    /// elsewhere until there is room.
    #[must_use]
    pub fn refusal(&self, now_ns: u64, delivery: &Delivery<M>) -> Option<DropReason> {
        self.outgoing.refusal(now_ns, delivery)
    }

    /// PUBACK arrived.
    ///
    /// # Errors
    /// The identifier is not that of a PUBLISH of QoS 1.
    #[inline]
    pub fn handle_puback(
        &mut self,
        packet_id: PacketId,
        _reason: ReasonCode,
        persist: &mut impl Persist<M>,
    ) -> Result<(), ProtocolError> {
        self.outgoing.handle_puback(packet_id, persist).map(drop)
    }

    /// PUBREC arrived: queues PUBREL, or ends the exchange if `reason` is an error.
    ///
    /// # Errors
    /// The identifier is not that of a PUBLISH of QoS 2.
    pub fn handle_pubrec(
        &mut self,
        packet_id: PacketId,
        reason: ReasonCode,
        persist: &mut impl Persist<M>,
    ) -> Result<(), ProtocolError> {
        self.outgoing.handle_pubrec(packet_id, reason, persist).map(drop)
    }

    /// PUBCOMP arrived.
    ///
    /// # Errors
    /// The identifier is not that of a PUBREL.
    pub fn handle_pubcomp(
        &mut self,
        packet_id: PacketId,
        _reason: ReasonCode,
        persist: &mut impl Persist<M>,
    ) -> Result<(), ProtocolError> {
        self.outgoing.handle_pubcomp(packet_id, persist).map(drop)
    }

    /// The PUBLISH just yielded is too large for the client and was not written: ends its exchange
    /// as if it was acknowledged [MQTT-3.1.2-25].
    pub fn abandon(&mut self, packet_id: Option<PacketId>, persist: &mut impl Persist<M>) {
        if let Some(packet_id) = packet_id {
            self.outgoing.abandon(packet_id, persist);
        }
        self.outgoing.count().count_drop(DropReason::PacketTooLarge);
    }

    /// The client may not have the PUBLISH just yielded, which was not written: ends its exchange
    /// as if it was acknowledged.
    pub fn withhold(&mut self, packet_id: Option<PacketId>, persist: &mut impl Persist<M>) {
        if let Some(packet_id) = packet_id {
            self.outgoing.abandon(packet_id, persist);
        }
        self.outgoing.count().count_drop(DropReason::Denied);
    }

    /// As [`Session::withhold`] of a message with a packet identifier that another client may have
    /// instead: returns it. `None` if it is not in flight.
    pub fn give_back(
        &mut self,
        packet_id: PacketId,
        persist: &mut impl Persist<M>,
    ) -> Option<Delivery<M>> {
        self.outgoing.give_back(packet_id, persist)
    }

    /// The next packet to write. Promises of batches up to `committed` may be sent.
    ///
    /// The order is acknowledgements, PUBREL, retransmissions, and queued messages as the window
    /// allows.
    #[inline]
    pub fn poll_transmit(
        &mut self,
        now_ns: u64,
        committed: BatchSeq,
        persist: &mut impl Persist<M>,
    ) -> Option<Transmit<M>> {
        if let Some(ack) = self.incoming.poll_ack(committed) {
            return Some(Transmit::Ack {
                kind: ack.kind,
                packet_id: ack.packet_id,
                reason: ack.reason,
            });
        }
        self.outgoing.poll(now_ns, committed, persist)
    }

    /// Whether [`Session::poll_transmit`] has work to do.
    #[inline]
    #[must_use]
    pub fn has_output(&self, committed: BatchSeq) -> bool {
        self.incoming.has_ack(committed) || self.outgoing.has_output(committed)
    }

    /// While the connection is congested, offers of QoS 1 and 2 are queued and those of QoS 0
    /// dropped. A new connection starts uncongested; without one, the call has no effect.
    pub fn set_congested(&mut self, congested: bool) {
        self.outgoing.set_congested(congested);
    }

    /// Takes the undelivered messages out of a session that ended, oldest first, to give those of
    /// shared subscriptions to other members. QoS 2 messages that were sent are left out, since
    /// they may have arrived.
    pub fn take_undelivered(&mut self, persist: &mut impl Persist<M>) -> Vec<Delivery<M>> {
        self.outgoing.drain_for_others(persist)
    }

    /// Takes the `wanted` messages out of the queue, oldest first. Messages with a packet
    /// identifier stay with this client.
    pub fn take_queued(
        &mut self,
        wanted: impl Fn(&M) -> bool,
        persist: &mut impl Persist<M>,
    ) -> Vec<Delivery<M>> {
        self.outgoing.take_queued(wanted, persist)
    }

    /// The messages of the session, those in flight first.
    pub fn messages(&self) -> impl Iterator<Item = &M> {
        self.outgoing.messages()
    }

    /// The number of messages in the queue, without those in flight.
    #[must_use]
    pub fn queue_len(&self) -> usize {
        self.outgoing.queue_len()
    }

    /// The number of the next message that is queued or gets a packet identifier.
    #[must_use]
    pub const fn next_seq(&self) -> u64 {
        self.outgoing.next_seq()
    }

    /// Whether a message of QoS 1 or 2 offered now would be sent at once.
    #[inline]
    #[must_use]
    pub fn takes_now(&self) -> bool {
        self.outgoing.is_open()
    }

    /// Whether a PUBLISH of the client with this identifier would be a duplicate.
    #[must_use]
    pub fn knows_inbound(&self, qos: QoS, packet_id: PacketId) -> bool {
        qos == QoS::ExactlyOnce && self.incoming.knows(packet_id)
    }

    /// The sum of `Delivery::size_bytes` in the queue.
    #[must_use]
    pub fn queue_bytes(&self) -> u64 {
        self.outgoing.queue_bytes()
    }

    /// How full the queue is.
    #[inline]
    #[must_use]
    pub fn queue_level(&self) -> QueueLevel {
        self.outgoing.queue_level()
    }

    /// What becomes of messages of QoS 1 and 2 at the limits of the queue.
    #[inline]
    #[must_use]
    pub const fn overflow(&self) -> Overflow {
        self.outgoing.overflow()
    }

    /// Replaces what becomes of messages of QoS 1 and 2 at the limits of the queue.
    pub const fn set_overflow(&mut self, overflow: Overflow) {
        self.outgoing.set_overflow(overflow);
    }

    /// Replaces how many messages may be queued. More that are queued already stay.
    pub const fn set_queue_len_max(&mut self, len_max: u32) {
        self.outgoing.set_queue_len_max(len_max);
    }

    /// The number of messages of QoS 1 and 2 in the window: sent or about to be sent, and not
    /// acknowledged.
    #[must_use]
    pub fn inflight_len(&self) -> usize {
        self.outgoing.inflight_len()
    }

    /// For how long the peer has not answered the oldest PUBLISH of QoS 1 or 2 or PUBREL sent on
    /// this connection; `None` if it has answered all. Looks at the whole window.
    #[must_use]
    pub fn unanswered_ns(&self, now_ns: u64) -> Option<u64> {
        self.outgoing.unanswered_ns(now_ns)
    }

    /// The number of further messages of QoS 1 and 2 that fit into the window.
    #[must_use]
    pub fn window_left(&self) -> usize {
        self.outgoing.inflight_max().saturating_sub(self.outgoing.inflight_len())
    }

    /// The number of unacknowledged messages of QoS 1 and 2 that this connection allows.
    #[must_use]
    pub fn window(&self) -> usize {
        self.outgoing.inflight_max()
    }

    /// The number of messages of QoS 1 and 2 that would be sent at once if offered now: none
    /// without a connection, while it is congested, or behind a queue.
    #[inline]
    #[must_use]
    pub fn credit(&self) -> usize {
        if self.outgoing.is_open() { self.window_left() } else { 0 }
    }

    /// Whether the connection is congested, see [`Session::set_congested`].
    #[inline]
    #[must_use]
    pub const fn is_congested(&self) -> bool {
        self.outgoing.is_congested()
    }

    /// The number of messages received on this connection whose last acknowledgement is pending.
    #[must_use]
    pub const fn inbound_unacked(&self) -> u32 {
        self.incoming.unacked()
    }

    /// Whether there is a connection.
    #[inline]
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        self.lifetime.is_connected()
    }

    /// Whether the session has state that a connect could resume.
    #[must_use]
    pub const fn exists(&self) -> bool {
        self.lifetime.exists()
    }

    /// The counters of the session.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.outgoing.counters()
    }
}

const fn outgoing_limits(limits: &SessionLimits) -> OutgoingLimits {
    OutgoingLimits {
        queue_len_max: limits.queue_len_max,
        queue_bytes_max: limits.queue_bytes_max,
        overflow: limits.overflow,
        inflight_max: limits.inflight_max,
        queue_qos0_offline: limits.queue_qos0_offline,
        keep_released: false,
    }
}
