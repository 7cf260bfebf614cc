//! Taking messages out of a session, to give them to another one.

use tacho_codec::{PacketId, QoS};

use super::Outgoing;
use super::slot::{Slot, Stage};
use crate::queue::Queued;
use crate::{Delivery, Payload, Persist, Record};

impl<M: Payload> Outgoing<M> {
    /// Every message, those in flight first.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &M> {
        let in_flight = self.window.slots().filter_map(|slot| slot.delivery.as_ref());
        let queued = self.queue.iter().map(|entry| &entry.delivery);
        in_flight.chain(queued).map(|delivery| &delivery.message)
    }

    /// Takes messages out of the queue, oldest first.
    pub(crate) fn take_queued(
        &mut self,
        wanted: impl Fn(&M) -> bool,
        persist: &mut impl Persist<M>,
    ) -> Vec<Delivery<M>> {
        let taken = self.queue.take_where(wanted).into_iter();
        taken.map(|entry| removed(entry, persist)).collect()
    }

    /// Takes out every message that the peer has not acknowledged, oldest first.
    pub(crate) fn drain(&mut self, persist: &mut impl Persist<M>) -> Vec<Delivery<M>> {
        self.drain_where(|_| true, persist)
    }

    /// Takes out the messages that may go to another receiver instead, oldest first: not those of
    /// QoS 2 that this one may already have [MQTT-4.8.2-5].
    pub(crate) fn drain_for_others(&mut self, persist: &mut impl Persist<M>) -> Vec<Delivery<M>> {
        self.drain_where(|slot| !slot.sent || slot.qos() != Some(QoS::ExactlyOnce), persist)
    }

    /// Takes a message out that was yielded to be sent and is not, for another receiver; `None` if
    /// it is not in flight.
    pub(crate) fn give_back(
        &mut self,
        packet_id: PacketId,
        persist: &mut impl Persist<M>,
    ) -> Option<Delivery<M>> {
        let slot = self.window.get_mut(packet_id)?;
        if slot.stage != Stage::Publish || slot.delivery.is_none() {
            return None;
        }
        let slot = self.free(packet_id)?;
        let delivery = slot.delivery?;
        Some(removed(Queued { seq: slot.seq, delivery }, persist))
    }

    fn drain_where(
        &mut self,
        wanted: impl Fn(&Slot<M>) -> bool,
        persist: &mut impl Persist<M>,
    ) -> Vec<Delivery<M>> {
        let mut deliveries = Vec::new();
        for (packet_id, slot) in self.window.drain().filter(|(_, slot)| slot.is_live()) {
            let seq = slot.seq;
            let is_wanted = slot.stage == Stage::Publish && wanted(&slot);
            match slot.delivery {
                Some(delivery) if is_wanted => {
                    deliveries.push(removed(Queued { seq, delivery }, persist));
                }
                _ => {
                    persist.persist(Record::Acked { seq, packet_id });
                }
            }
        }
        while self.queue.is_departing() {
            self.queue.pop();
        }
        deliveries.extend(std::iter::from_fn(|| Some(removed(self.queue.pop()?, persist))));
        self.releases.clear();
        self.credit_used = 0;
        deliveries
    }
}

fn removed<M>(entry: Queued<M>, persist: &mut impl Persist<M>) -> Delivery<M> {
    persist.persist(Record::Removed { seq: entry.seq, delivery: &entry.delivery });
    entry.delivery
}
