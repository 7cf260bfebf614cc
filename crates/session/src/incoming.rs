//! The incoming half: acknowledgements in order, duplicate suppression, receive maximum.

use std::collections::VecDeque;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_codec::{AckKind, PacketId, QoS, ReasonCode};

use crate::on_demand::OnDemand;
use crate::{BatchSeq, Persist, ProtocolError, Record};

/// Bound on pending acknowledgements: a conforming peer has at most one exchange per identifier,
/// each with one PUBREC and one PUBCOMP.
const ACKS_LEN_MAX: usize = 2 * 65_535;

/// The kind of an incoming PUBLISH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inbound {
    /// Route it, then call `accept_publish` exactly once.
    New,
    /// A retransmission of a known QoS 2 message: neither route nor accept it.
    Duplicate,
}

/// An acknowledgement to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    pub(crate) kind: AckKind,
    pub(crate) packet_id: PacketId,
    pub(crate) reason: ReasonCode,
}

#[derive(Debug)]
struct AckSlot {
    ack: Ack,
    /// The owner has accepted (or refused) the message; until then the slot only keeps the order.
    accepted: bool,
    /// Sending it ends the exchange and returns one unit of the receive maximum.
    returns_credit: bool,
    batch: BatchSeq,
}

/// An incoming QoS 2 exchange between PUBLISH and PUBREL.
#[derive(Debug)]
struct Exchange {
    stage: InboundStage,
    /// An acknowledgement slot of this connection waits for `accept_publish`.
    slot_waits: bool,
    /// It counts against the receive maximum of this connection.
    counted: bool,
    batch: BatchSeq,
}

/// How far an incoming QoS 2 message got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InboundStage {
    /// It arrived.
    Received,
    /// Its identifier is recorded.
    Recorded,
    /// Its identifier is recorded, and the owner has accepted it.
    Accepted,
}

impl Exchange {
    /// Records the identifier, once.
    #[inline]
    fn record<M>(&mut self, packet_id: PacketId, persist: &mut impl Persist<M>) {
        if self.stage == InboundStage::Received {
            self.stage = InboundStage::Recorded;
            self.batch = persist.persist(Record::InboundReceived { packet_id });
        }
    }
}

type Exchanges = HashMap<PacketId, Exchange, RandomState>;

/// The receiving side of one session.
#[derive(Debug)]
pub(crate) struct Incoming {
    acks: VecDeque<AckSlot>,
    exchanges: OnDemand<Exchanges>,
    /// The number of accepted slots at the front of `acks`; the next one, if any, is not accepted.
    accepted_len: usize,
    /// The newest batch that the release of an identifier waits for.
    released: BatchSeq,
    receive_maximum: u16,
    /// Exchanges of this connection whose last acknowledgement is not sent yet.
    unacked: u32,
}

impl Incoming {
    pub(crate) fn new(receive_maximum: u16) -> Self {
        Self {
            acks: VecDeque::new(),
            exchanges: OnDemand::new(),
            accepted_len: 0,
            released: BatchSeq::DONE,
            receive_maximum: receive_maximum.max(1),
            unacked: 0,
        }
    }

    /// The identifiers of a stored session, without a connection.
    pub(crate) fn restore(receive_maximum: u16, received: Vec<PacketId>) -> Self {
        let mut incoming = Self::new(receive_maximum);
        let exchange = || Exchange {
            stage: InboundStage::Accepted,
            slot_waits: false,
            counted: false,
            batch: BatchSeq::DONE,
        };
        let received = received.into_iter().map(|packet_id| (packet_id, exchange()));
        if received.len() > 0 {
            incoming.exchanges.get_or_default().extend(received);
        }
        incoming
    }

    /// Starts a connection: unsent acknowledgements are void, known identifiers remain.
    pub(crate) fn connect(&mut self) {
        self.disconnect();
        for exchange in self.exchanges.get_mut().into_iter().flat_map(Exchanges::values_mut) {
            exchange.slot_waits = false;
            exchange.counted = false;
        }
    }

    pub(crate) fn disconnect(&mut self) {
        self.acks = VecDeque::new();
        self.accepted_len = 0;
        self.unacked = 0;
        if self.exchanges.get().is_some_and(Exchanges::is_empty) {
            self.exchanges.clear();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.exchanges.clear();
        self.disconnect();
    }

    /// The peer has lost the exchanges: drops them and frees their identifiers.
    pub(crate) fn forget<M>(&mut self, persist: &mut impl Persist<M>) {
        let mut exchanges: Vec<_> = self.exchanges.take().into_iter().flatten().collect();
        exchanges.sort_unstable_by_key(|(packet_id, _)| *packet_id);
        for (packet_id, exchange) in exchanges {
            self.release(packet_id, &exchange, persist);
        }
        self.disconnect();
    }

    pub(crate) fn release_memory(&mut self) {
        if self.acks.is_empty() {
            self.acks = VecDeque::new();
        }
        if self.exchanges.get().is_some_and(Exchanges::is_empty) {
            self.exchanges.clear();
        }
    }

    /// Whether a QoS 2 exchange with this identifier is open.
    pub(crate) fn knows(&self, packet_id: PacketId) -> bool {
        self.exchanges.get().is_some_and(|exchanges| exchanges.contains_key(&packet_id))
    }

    pub(crate) const fn unacked(&self) -> u32 {
        self.unacked
    }

    /// `enforce_receive_maximum` is false for MQTT 3.x, which has no such limit; then only the
    /// number of identifiers limits the peer.
    #[inline]
    pub(crate) fn handle_publish(
        &mut self,
        qos: QoS,
        packet_id: Option<PacketId>,
        enforce_receive_maximum: bool,
    ) -> Result<Inbound, ProtocolError> {
        if qos == QoS::AtMostOnce {
            return Ok(Inbound::New);
        }
        let Some(packet_id) = packet_id else {
            return Err(ProtocolError::new(
                ReasonCode::PROTOCOL_ERROR,
                "a PUBLISH of QoS 1 or 2 has no packet identifier",
            ));
        };
        let credit_max =
            if enforce_receive_maximum { u32::from(self.receive_maximum) } else { 65_535 };
        let has_credit = self.unacked < credit_max && self.acks.len() < ACKS_LEN_MAX;
        if qos == QoS::ExactlyOnce {
            let known = self.exchanges.get_mut().and_then(|known| known.get_mut(&packet_id));
            if let Some(exchange) = known {
                if !exchange.counted {
                    if !has_credit {
                        return Err(receive_maximum_exceeded());
                    }
                    exchange.counted = true;
                    self.unacked += 1;
                }
                if exchange.stage == InboundStage::Accepted {
                    let batch = exchange.batch;
                    self.push_ack(AckKind::PubRec, packet_id, ReasonCode::SUCCESS, batch, false)?;
                } else if !exchange.slot_waits {
                    exchange.slot_waits = true;
                    self.reserve_ack(AckKind::PubRec, packet_id);
                }
                return Ok(Inbound::Duplicate);
            }
            if !has_credit {
                return Err(receive_maximum_exceeded());
            }
            self.exchanges.get_or_default().insert(
                packet_id,
                Exchange {
                    stage: InboundStage::Received,
                    slot_waits: true,
                    counted: true,
                    batch: BatchSeq::DONE,
                },
            );
            self.reserve_ack(AckKind::PubRec, packet_id);
        } else {
            if !has_credit {
                return Err(receive_maximum_exceeded());
            }
            self.reserve_ack(AckKind::PubAck, packet_id);
        }
        self.unacked += 1;
        Ok(Inbound::New)
    }

    /// Releases the acknowledgement of a new message, to be sent once `batch` is committed.
    #[inline]
    pub(crate) fn accept_publish<M>(
        &mut self,
        qos: QoS,
        packet_id: Option<PacketId>,
        reason: ReasonCode,
        batch: BatchSeq,
        persist: &mut impl Persist<M>,
    ) {
        let Some(packet_id) = packet_id else { return };
        match qos {
            QoS::AtMostOnce => {}
            QoS::AtLeastOnce => self.fill_ack(AckKind::PubAck, packet_id, reason, batch, true),
            QoS::ExactlyOnce => {
                let refused = reason.is_error();
                let mut batch = batch;
                let mut returns_credit = false;
                if refused {
                    // The sender frees the identifier when it receives the error.
                    if let Some(exchange) = self.end_exchange(packet_id) {
                        batch = batch.max(self.release(packet_id, &exchange, persist));
                        returns_credit = exchange.counted;
                    }
                } else if let Some(exchange) = self.exchange_mut(packet_id) {
                    exchange.record(packet_id, persist);
                    batch = batch.max(exchange.batch);
                    exchange.stage = InboundStage::Accepted;
                    exchange.slot_waits = false;
                    exchange.batch = batch;
                }
                self.fill_ack(AckKind::PubRec, packet_id, reason, batch, returns_credit);
            }
        }
    }

    /// Records the identifier of a message that is not accepted yet.
    pub(crate) fn record_publish<M>(&mut self, packet_id: PacketId, persist: &mut impl Persist<M>) {
        if let Some(exchange) = self.exchange_mut(packet_id) {
            exchange.record(packet_id, persist);
        }
    }

    #[inline]
    fn exchange_mut(&mut self, packet_id: PacketId) -> Option<&mut Exchange> {
        self.exchanges.get_mut()?.get_mut(&packet_id)
    }

    #[inline]
    fn end_exchange(&mut self, packet_id: PacketId) -> Option<Exchange> {
        self.exchanges.get_mut()?.remove(&packet_id)
    }

    /// An exchange is over; returns the batch that frees its identifier.
    fn release<M>(
        &mut self,
        packet_id: PacketId,
        exchange: &Exchange,
        persist: &mut impl Persist<M>,
    ) -> BatchSeq {
        if exchange.stage == InboundStage::Received {
            return BatchSeq::DONE;
        }
        let batch = persist.persist(Record::InboundReleased { packet_id });
        self.released = self.released.max(batch);
        batch
    }

    /// Queues PUBCOMP; an unknown identifier is answered with 0x92 (MQTT 5.0, 4.3.3).
    /// Returns whether the identifier was known.
    pub(crate) fn handle_pubrel<M>(
        &mut self,
        packet_id: PacketId,
        persist: &mut impl Persist<M>,
    ) -> Result<bool, ProtocolError> {
        let (reason, returns_credit) = match self.end_exchange(packet_id) {
            Some(exchange) => {
                self.release(packet_id, &exchange, persist);
                (ReasonCode::SUCCESS, exchange.counted)
            }
            None => (ReasonCode::PACKET_IDENTIFIER_NOT_FOUND, false),
        };
        // For an unknown identifier too: its release on an earlier connection may be uncommitted.
        self.push_ack(AckKind::PubComp, packet_id, reason, self.released, returns_credit)?;
        Ok(reason == ReasonCode::SUCCESS)
    }

    #[inline]
    pub(crate) fn has_ack(&self, committed: BatchSeq) -> bool {
        self.accepted_len > 0 && self.acks.front().is_some_and(|slot| slot.batch <= committed)
    }

    /// The next acknowledgement whose batch is committed.
    #[inline]
    pub(crate) fn poll_ack(&mut self, committed: BatchSeq) -> Option<Ack> {
        if !self.has_ack(committed) {
            return None;
        }
        let slot = self.acks.pop_front()?;
        self.accepted_len -= 1;
        if slot.returns_credit {
            self.unacked = self.unacked.saturating_sub(1);
        }
        Some(slot.ack)
    }

    #[inline]
    fn reserve_ack(&mut self, kind: AckKind, packet_id: PacketId) {
        self.acks.push_back(AckSlot {
            ack: Ack { kind, packet_id, reason: ReasonCode::SUCCESS },
            accepted: false,
            returns_credit: false,
            batch: BatchSeq::DONE,
        });
    }

    fn push_ack(
        &mut self,
        kind: AckKind,
        packet_id: PacketId,
        reason: ReasonCode,
        batch: BatchSeq,
        returns_credit: bool,
    ) -> Result<(), ProtocolError> {
        if self.acks.len() >= ACKS_LEN_MAX {
            return Err(receive_maximum_exceeded());
        }
        if self.accepted_len == self.acks.len() {
            self.accepted_len += 1;
        }
        let ack = Ack { kind, packet_id, reason };
        self.acks.push_back(AckSlot { ack, accepted: true, returns_credit, batch });
        Ok(())
    }

    /// Messages are usually accepted in the order of arrival, so the first comparison matches.
    #[inline]
    fn fill_ack(
        &mut self,
        kind: AckKind,
        packet_id: PacketId,
        reason: ReasonCode,
        batch: BatchSeq,
        returns_credit: bool,
    ) {
        let waiting = self.acks.range_mut(self.accepted_len..).find(|slot| {
            !slot.accepted && slot.ack.packet_id == packet_id && slot.ack.kind == kind
        });
        // No slot: the connection of the message is closed, so its acknowledgement is void.
        let Some(slot) = waiting else { return };
        slot.accepted = true;
        slot.ack.reason = reason;
        slot.batch = batch;
        slot.returns_credit = returns_credit;
        while self.acks.get(self.accepted_len).is_some_and(|slot| slot.accepted) {
            self.accepted_len += 1;
        }
    }
}

const fn receive_maximum_exceeded() -> ProtocolError {
    ProtocolError::new(
        ReasonCode::RECEIVE_MAXIMUM_EXCEEDED,
        "the peer exceeds the receive maximum of unacknowledged QoS 1 and 2 messages",
    )
}
