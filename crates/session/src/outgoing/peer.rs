//! What a peer that is a server can do to exchanges: forget them, or take no QoS 2.

use std::collections::VecDeque;

use tacho_codec::{PacketId, QoS};

use super::Outgoing;
use super::slot::{Slot, Stage};
use crate::{Delivery, Payload, Persist};

impl<M: Payload> Outgoing<M> {
    /// The peer has forgotten the session: PUBLISH is sent again as if for the first time, and
    /// whatever was answered with PUBREC is complete.
    pub(crate) fn forgotten_by_peer(&mut self, persist: &mut impl Persist<M>) {
        self.releases = VecDeque::new();
        let released: Vec<PacketId> = self
            .window
            .slots_mut()
            .filter_map(|(packet_id, slot)| {
                // That of a connection which is over.
                slot.uses_credit = false;
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

    /// Lowers the QoS of all that is to be sent. What a peer takes that has no higher one cannot
    /// have begun there with a higher one.
    pub(crate) fn limit_qos(&mut self, qos_max: QoS) {
        let lower = |delivery: &mut Delivery<M>| delivery.qos = delivery.qos.min(qos_max);
        let is_publish = |slot: &&mut Slot<M>| slot.stage == Stage::Publish;
        let slots = self.window.slots_mut().map(|(_, slot)| slot).filter(is_publish);
        slots.filter_map(|slot| slot.delivery.as_mut()).for_each(lower);
        self.queue.iter_mut(0).for_each(|entry| lower(&mut entry.delivery));
    }
}
