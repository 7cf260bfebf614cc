//! The peer's answers to PUBLISH and PUBREL.

use tacho_codec::{PacketId, QoS, ReasonCode};

use super::slot::{Progress, Slot, Stage};
use super::{Outgoing, Release};
use crate::{BatchSeq, Delivery, Payload, Persist, ProtocolError, Record};

/// Bound on pending PUBRELs: a conforming peer answers at most one exchange per identifier.
const RELEASES_LEN_MAX: usize = 65_535;

impl<M: Payload> Outgoing<M> {
    /// The end of a QoS 1 exchange, with any reason code [MQTT-4.4.0-2]. Returns its message.
    #[inline]
    pub(crate) fn handle_puback(
        &mut self,
        packet_id: PacketId,
        persist: &mut impl Persist<M>,
    ) -> Result<Option<Delivery<M>>, ProtocolError> {
        let Some(slot) = self.window.get_mut(packet_id) else {
            self.count().acks_unexpected += 1;
            return Ok(None);
        };
        if slot.stage != Stage::Publish || !slot.sent || slot.qos() != Some(QoS::AtLeastOnce) {
            return Err(mismatch("PUBACK does not answer a PUBLISH of QoS 1"));
        }
        Ok(self.finish(packet_id, persist))
    }

    /// The first answer of a QoS 2 exchange. An error ends it and returns its message
    /// [MQTT-4.4.0-2]; otherwise the answer is PUBREL [MQTT-4.3.3-4], and PUBLISH is not
    /// retransmitted from then on [MQTT-4.3.3-6].
    pub(crate) fn handle_pubrec(
        &mut self,
        packet_id: PacketId,
        reason: ReasonCode,
        persist: &mut impl Persist<M>,
    ) -> Result<Option<Delivery<M>>, ProtocolError> {
        let Some(slot) = self.window.get_mut(packet_id) else {
            self.count().acks_unexpected += 1;
            if !reason.is_error() {
                let batch = self.released;
                self.push_release(packet_id, ReasonCode::PACKET_IDENTIFIER_NOT_FOUND, batch)?;
            }
            return Ok(None);
        };
        match slot.stage {
            Stage::Publish if slot.sent && slot.qos() == Some(QoS::ExactlyOnce) => {
                if reason.is_error() {
                    return Ok(self.finish(packet_id, persist));
                }
                let batch = slot.release(packet_id, persist);
                if !self.keep_released {
                    slot.delivery = None;
                }
                self.released = self.released.max(batch);
                // Not sent on this connection yet: PUBREL replaces the retransmission.
                if slot.is_on_wire() {
                    slot.release_waits = true;
                    self.push_release(packet_id, ReasonCode::SUCCESS, batch)?;
                }
                Ok(None)
            }
            Stage::Released if slot.is_on_wire() && !slot.release_waits => {
                slot.release_waits = true;
                let batch = slot.batch;
                self.push_release(packet_id, ReasonCode::SUCCESS, batch)?;
                Ok(None)
            }
            Stage::Released => Ok(None),
            _ => Err(mismatch("PUBREC does not answer a PUBLISH of QoS 2")),
        }
    }

    /// The end of a QoS 2 exchange. Returns its message if it was kept.
    pub(crate) fn handle_pubcomp(
        &mut self,
        packet_id: PacketId,
        persist: &mut impl Persist<M>,
    ) -> Result<Option<Delivery<M>>, ProtocolError> {
        let Some(slot) = self.window.get_mut(packet_id) else {
            self.count().acks_unexpected += 1;
            return Ok(None);
        };
        if slot.stage != Stage::Released {
            return Err(mismatch("PUBCOMP does not answer a PUBREL"));
        }
        Ok(self.finish(packet_id, persist))
    }

    /// Ends the exchange of a message that cannot be sent to this peer, as if it was sent
    /// [MQTT-3.1.2-25].
    pub(crate) fn abandon(&mut self, packet_id: PacketId, persist: &mut impl Persist<M>) {
        if self.window.get_mut(packet_id).is_some_and(|slot| slot.stage == Stage::Publish) {
            self.finish(packet_id, persist);
        }
    }

    /// Ends an exchange.
    #[inline]
    pub(super) fn finish(
        &mut self,
        packet_id: PacketId,
        persist: &mut impl Persist<M>,
    ) -> Option<Delivery<M>> {
        let slot = self.free(packet_id)?;
        persist.persist(Record::Acked { seq: slot.seq, packet_id });
        slot.delivery
    }

    /// Frees an identifier, and the unit of the receive maximum that its exchange uses.
    #[inline]
    pub(super) fn free(&mut self, packet_id: PacketId) -> Option<Slot<M>> {
        let slot = self.window.finish(packet_id)?;
        if slot.progress == Progress::Published {
            self.credit_used -= 1;
        }
        Some(slot)
    }

    fn push_release(
        &mut self,
        packet_id: PacketId,
        reason: ReasonCode,
        batch: BatchSeq,
    ) -> Result<(), ProtocolError> {
        let releases = self.releases.get_or_default();
        if releases.len() >= RELEASES_LEN_MAX {
            return Err(mismatch("the peer sends PUBREC without reading PUBREL"));
        }
        releases.push_back(Release { packet_id, reason, batch });
        Ok(())
    }
}

const fn mismatch(sentence: &'static str) -> ProtocolError {
    ProtocolError::new(ReasonCode::PROTOCOL_ERROR, sentence)
}
