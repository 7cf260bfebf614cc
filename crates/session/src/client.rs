//! The client's side of a session.

use std::num::NonZeroU16;
use std::sync::Arc;

use tacho_codec::{PacketId, QoS, ReasonCode, Version};

use crate::alias::{AliasesIn, AliasesOut};
use crate::incoming::Incoming;
use crate::outgoing::{Outgoing, OutgoingLimits};
use crate::{
    AliasOut, BatchSeq, Counters, Delivery, InMemory, Inbound, Offer, Overflow, Payload,
    ProtocolError, Transmit,
};

/// The limits of a client session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// The client's own limit on unacknowledged messages of QoS 1 and 2; the server's Receive
    /// Maximum applies if it is lower.
    pub inflight_max: u16,
    /// The Receive Maximum that CONNECT grants to the server. Enforced for MQTT 5.0 only.
    pub receive_maximum: u16,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self { inflight_max: u16::MAX, receive_maximum: u16::MAX }
    }
}

/// The parameters that CONNECT and CONNACK negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnAckParams {
    /// The protocol version of this connection.
    pub version: Version,
    /// The Session Present flag of CONNACK.
    pub session_present: bool,
    /// The server's Receive Maximum; 65,535 if CONNACK has none.
    pub receive_maximum: u16,
    /// The Topic Alias Maximum that CONNECT granted to the server.
    pub topic_alias_maximum_in: u16,
    /// The server's Topic Alias Maximum; 0 if CONNACK has none.
    pub topic_alias_maximum_out: u16,
    /// Server Keep Alive, or the keep-alive of CONNECT if CONNACK has none; 0 is off.
    pub keep_alive_s: u16,
    /// How long to wait for PINGRESP; 0 waits without limit.
    pub ping_timeout_s: u16,
}

impl ConnAckParams {
    /// A new session with the protocol's defaults and without keep-alive.
    #[must_use]
    pub const fn new(version: Version) -> Self {
        Self {
            version,
            session_present: false,
            receive_maximum: u16::MAX,
            topic_alias_maximum_in: 0,
            topic_alias_maximum_out: 0,
            keep_alive_s: 0,
            ping_timeout_s: 0,
        }
    }
}

/// The result of publishing a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Publish<M> {
    /// Write this packet now; no other packet precedes it.
    Send(Transmit<M>),
    /// It is in the window; `poll_transmit` yields it after the retransmissions of a resume.
    Queued,
    /// The window is full, or there is no connection; the message is returned.
    Blocked(M),
}

/// The action due at a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutEvent {
    /// Nothing was sent for the keep-alive interval: write PINGREQ now.
    SendPingReq,
    /// PINGRESP did not arrive in time: close the connection.
    PingTimeout,
}

/// Decides when to send PINGREQ, and waits for PINGRESP.
#[derive(Debug, Default)]
struct Pinger {
    /// 0 is off.
    interval_ns: u64,
    timeout_ns: u64,
    sent_ns: u64,
    asked_ns: Option<u64>,
}

impl Pinger {
    fn deadline_ns(&self) -> Option<u64> {
        match self.asked_ns {
            Some(asked_ns) if self.timeout_ns > 0 => Some(asked_ns.saturating_add(self.timeout_ns)),
            _ if self.interval_ns > 0 => Some(self.sent_ns.saturating_add(self.interval_ns)),
            _ => None,
        }
    }
}

/// The client's side of one session; it outlives its connections.
///
/// Call order on a connection: after CONNACK [`Session::connack`], then [`Session::publish`] and
/// the `handle_*` of each inbound packet, and after each `handle_*` [`Session::poll_transmit`]
/// until it returns `None`. At the end [`Session::disconnected`].
#[derive(Debug)]
pub struct Session<M> {
    outgoing: Outgoing<M>,
    incoming: Incoming,
    pinger: Pinger,
    aliases_in: AliasesIn,
    aliases_out: AliasesOut,
    enforce_receive_maximum: bool,
    connected: bool,
}

impl<M: Payload> Session<M> {
    /// A session without state and without a connection.
    #[must_use]
    pub fn new(limits: ClientLimits) -> Self {
        Self {
            outgoing: Outgoing::new(OutgoingLimits {
                queue_len_max: 0,
                queue_bytes_max: 0,
                overflow: Overflow::DropNewest,
                inflight_max: limits.inflight_max,
                queue_qos0_offline: false,
                keep_released: true,
            }),
            incoming: Incoming::new(limits.receive_maximum),
            pinger: Pinger::default(),
            aliases_in: AliasesIn::default(),
            aliases_out: AliasesOut::default(),
            enforce_receive_maximum: false,
            connected: false,
        }
    }

    /// CONNACK accepted the connection. Returns the messages that are abandoned because the server
    /// has no session: the unacknowledged ones, oldest first. A resumed session retransmits them.
    pub fn connack(&mut self, now_ns: u64, params: ConnAckParams) -> Vec<M> {
        let mut abandoned = Vec::new();
        if !params.session_present {
            let drained = self.outgoing.drain(&mut InMemory).into_iter();
            abandoned.extend(drained.map(|delivery| delivery.message));
            self.outgoing.clear();
            self.incoming.clear();
        }
        self.outgoing.connect(params.receive_maximum);
        self.incoming.connect();
        self.aliases_in.reset(params.topic_alias_maximum_in);
        self.aliases_out.reset(params.topic_alias_maximum_out);
        self.pinger = Pinger {
            interval_ns: u64::from(params.keep_alive_s) * 1_000_000_000,
            timeout_ns: u64::from(params.ping_timeout_s) * 1_000_000_000,
            sent_ns: now_ns,
            asked_ns: None,
        };
        self.enforce_receive_maximum = params.version == Version::V5;
        self.connected = true;
        abandoned
    }

    /// The connection ended. Identifiers of `reserve_id` are free again.
    pub fn disconnected(&mut self) {
        self.connected = false;
        self.outgoing.disconnect();
        self.incoming.disconnect();
        self.pinger = Pinger::default();
    }

    /// Publishes a message.
    #[inline]
    pub fn publish(&mut self, now_ns: u64, qos: QoS, message: M) -> Publish<M> {
        let may = if qos == QoS::AtMostOnce { self.connected } else { self.can_publish() };
        if !may {
            return Publish::Blocked(message);
        }
        match self.outgoing.offer(now_ns, Delivery::new(qos, message), &mut InMemory) {
            Offer::SendNow(transmit) => {
                self.pinger.sent_ns = now_ns;
                Publish::Send(transmit)
            }
            // Invariant: a client has neither congestion nor expiry, and the window was open.
            Offer::Queued | Offer::Dropped(_) => Publish::Queued,
        }
    }

    /// Whether a message of QoS 1 or 2 can be published now.
    #[inline]
    #[must_use]
    pub fn can_publish(&self) -> bool {
        self.outgoing.is_open()
    }

    /// PUBACK arrived. Returns the acknowledged message.
    ///
    /// # Errors
    /// The identifier is not that of a PUBLISH of QoS 1.
    #[inline]
    pub fn handle_puback(
        &mut self,
        packet_id: PacketId,
        _reason: ReasonCode,
    ) -> Result<Option<M>, ProtocolError> {
        let done = self.outgoing.handle_puback(packet_id, &mut InMemory)?;
        Ok(done.map(|delivery| delivery.message))
    }

    /// PUBREC arrived: queues PUBREL. Returns the message if an error `reason` ends its exchange.
    ///
    /// # Errors
    /// The identifier is not that of a PUBLISH of QoS 2.
    pub fn handle_pubrec(
        &mut self,
        packet_id: PacketId,
        reason: ReasonCode,
    ) -> Result<Option<M>, ProtocolError> {
        let done = self.outgoing.handle_pubrec(packet_id, reason, &mut InMemory)?;
        Ok(done.map(|delivery| delivery.message))
    }

    /// PUBCOMP arrived. Returns the acknowledged message.
    ///
    /// # Errors
    /// The identifier is not that of a PUBREL.
    pub fn handle_pubcomp(
        &mut self,
        packet_id: PacketId,
        _reason: ReasonCode,
    ) -> Result<Option<M>, ProtocolError> {
        let done = self.outgoing.handle_pubcomp(packet_id, &mut InMemory)?;
        Ok(done.map(|delivery| delivery.message))
    }

    /// PUBLISH arrived, with its topic resolved: queues its acknowledgement.
    ///
    /// # Errors
    /// The server exceeds the client's Receive Maximum (0x93).
    #[inline]
    pub fn handle_publish(
        &mut self,
        qos: QoS,
        packet_id: Option<PacketId>,
    ) -> Result<Inbound, ProtocolError> {
        let inbound = self.incoming.handle_publish(qos, packet_id, self.enforce_receive_maximum)?;
        match inbound {
            Inbound::New => self.incoming.accept_publish::<M>(
                qos,
                packet_id,
                ReasonCode::SUCCESS,
                BatchSeq::DONE,
                &mut InMemory,
            ),
            Inbound::Duplicate => self.outgoing.count().duplicates_suppressed += 1,
        }
        Ok(inbound)
    }

    /// PUBREL arrived: queues PUBCOMP.
    ///
    /// # Errors
    /// The server sends PUBREL without reading the answers.
    pub fn handle_pubrel(&mut self, packet_id: PacketId) -> Result<(), ProtocolError> {
        let known = self.incoming.handle_pubrel::<M>(packet_id, &mut InMemory)?;
        if !known {
            self.outgoing.count().acks_unexpected += 1;
        }
        Ok(())
    }

    /// PINGRESP arrived.
    pub fn handle_pingresp(&mut self) {
        self.pinger.asked_ns = None;
    }

    /// The topic that the topic and the topic alias of a PUBLISH refer to; `None` means `topic`
    /// itself.
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

    /// How to send `topic`. Call it only for a PUBLISH that is certainly the next one written.
    #[inline]
    pub fn assign_alias(&mut self, topic: &str) -> AliasOut {
        let plan = self.aliases_out.plan(topic);
        if let AliasOut::Define(alias) = plan {
            self.aliases_out.define(alias, &Arc::from(topic));
        }
        plan
    }

    /// Reserves a packet identifier for SUBSCRIBE or UNSUBSCRIBE; `None` if none is free.
    pub fn reserve_id(&mut self) -> Option<PacketId> {
        self.outgoing.reserve_id()
    }

    /// SUBACK or UNSUBACK arrived: frees its identifier. False if it was not reserved.
    pub fn release_id(&mut self, packet_id: PacketId) -> bool {
        self.outgoing.release_id(packet_id)
    }

    /// The next packet to write: acknowledgements, PUBREL, retransmissions.
    #[inline]
    pub fn poll_transmit(&mut self, now_ns: u64) -> Option<Transmit<M>> {
        let transmit = match self.incoming.poll_ack(BatchSeq::DONE) {
            Some(ack) => {
                Transmit::Ack { kind: ack.kind, packet_id: ack.packet_id, reason: ack.reason }
            }
            None => self.outgoing.poll(now_ns, BatchSeq::DONE, &mut InMemory)?,
        };
        self.pinger.sent_ns = now_ns;
        Some(transmit)
    }

    /// Whether [`Session::poll_transmit`] has work to do.
    #[inline]
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.incoming.has_ack(BatchSeq::DONE) || self.outgoing.has_output(BatchSeq::DONE)
    }

    /// When to call [`Session::handle_timeout`]. The time may move to later at any call, and to
    /// earlier only with `handle_timeout`.
    #[must_use]
    pub fn next_timeout(&self) -> Option<u64> {
        self.pinger.deadline_ns()
    }

    /// Keep-alive: the action due at `now_ns`.
    pub fn handle_timeout(&mut self, now_ns: u64) -> Option<TimeoutEvent> {
        if self.pinger.deadline_ns()? > now_ns {
            return None;
        }
        if self.pinger.asked_ns.is_some() && self.pinger.timeout_ns > 0 {
            self.pinger = Pinger::default();
            return Some(TimeoutEvent::PingTimeout);
        }
        self.pinger.sent_ns = now_ns;
        self.pinger.asked_ns = Some(now_ns);
        Some(TimeoutEvent::SendPingReq)
    }

    /// The number of messages of QoS 1 and 2 that are published and not acknowledged.
    #[must_use]
    pub fn inflight_len(&self) -> usize {
        self.outgoing.inflight_len()
    }

    /// Whether there is a connection.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        self.connected
    }

    /// The counters of the session.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.outgoing.counters()
    }
}
