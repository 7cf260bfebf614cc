//! Exchanges with a peer that is a server, which may have lost them or not support QoS 2.

use tacho_codec::{PacketId, QoS};

use super::Outgoing;
use super::slot::{Progress, Slot, Stage};
use crate::{Delivery, Payload, Persist};

impl<M: Payload> Outgoing<M> {
    /// The peer has lost the session: PUBLISH is sent as if for the first time, and exchanges with
    /// a PUBREC are complete.
    pub(crate) fn forgotten_by_peer(&mut self, persist: &mut impl Persist<M>) {
        self.releases.clear();
        let released: Vec<PacketId> = self
            .window
            .slots_mut()
            .filter_map(|(packet_id, slot)| {
                // Its progress belongs to a connection that is closed.
                slot.progress = Progress::Unsent;
                if slot.stage == Stage::Publish {
                    slot.sent = false;
                }
                (slot.stage == Stage::Released).then_some(packet_id)
            })
            .collect();
        for packet_id in released {
            self.finish(packet_id, persist);
        }
    }

    /// Lowers the QoS of all messages to send. A peer that does not support a higher QoS cannot
    /// have started an exchange with one.
    pub(crate) fn limit_qos(&mut self, qos_max: QoS) {
        let lower = |delivery: &mut Delivery<M>| delivery.qos = delivery.qos.min(qos_max);
        let is_publish = |slot: &&mut Slot<M>| slot.stage == Stage::Publish;
        let slots = self.window.slots_mut().map(|(_, slot)| slot).filter(is_publish);
        slots.filter_map(|slot| slot.delivery.as_mut()).for_each(lower);
        self.queue.iter_mut(0).for_each(|entry| lower(&mut entry.delivery));
    }
}
