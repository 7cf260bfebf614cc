//! Messages that are not in memory: which ones are needed, and which packets may overtake them.

use tacho_codec::{PacketId, QoS, ReasonCode};

use super::Outgoing;
use super::slot::{Slot, Stage};
use crate::queue::Queued;
use crate::{BatchSeq, Delivery, Payload, Persist, Record, Transmit};

impl<M: Payload> Outgoing<M> {
    /// The messages that are not loaded and their numbers, in the order of sending.
    pub(crate) fn unloaded(&self) -> impl Iterator<Item = (u64, &Delivery<M>)> {
        let in_window = |slot| {
            let Slot { seq, delivery, .. }: &Slot<M> = slot;
            delivery.as_ref().map(|delivery| (*seq, delivery))
        };
        let queued = self.queue.iter().map(|entry| (entry.seq, &entry.delivery));
        let all = self.window.unsent().filter_map(in_window).chain(queued);
        all.filter(|(_, delivery)| !delivery.message.is_loaded())
    }

    /// Whether the next message to send is not loaded.
    pub(crate) fn is_starved(&self) -> bool {
        let next = self.window.unsent().find_map(|slot| slot.delivery.as_ref());
        next.or_else(|| self.queue.front()).is_some_and(|next| !next.message.is_loaded())
    }

    /// Passes the first `len_max` messages that are not loaded to `load`.
    pub(crate) fn load(&mut self, len_max: usize, mut load: impl FnMut(u64, &mut M)) {
        let in_window = self.window.unsent_mut();
        let in_window = in_window.filter_map(|(_, slot)| Some((slot.seq, slot.delivery.as_mut()?)));
        let queued = self.queue.iter_mut(0).map(|entry| (entry.seq, &mut entry.delivery));
        let all = in_window.chain(queued).map(|(seq, delivery)| (seq, &mut delivery.message));
        let unloaded = all.filter(|(_, message)| !message.is_loaded());
        unloaded.take(len_max).for_each(|(seq, message)| load(seq, message));
    }

    /// Passes the loaded messages of QoS 1 and 2 from position `from` of the queue on to `unload`.
    pub(crate) fn unload(&mut self, from: usize, mut unload: impl FnMut(u64, &mut M)) {
        for Queued { seq, delivery } in self.queue.iter_mut(from) {
            if delivery.qos != QoS::AtMostOnce && delivery.message.is_loaded() {
                unload(*seq, &mut delivery.message);
            }
        }
    }

    /// Discards the message with this number, which cannot be loaded. False if there is none.
    ///
    /// The peer may have received a message of QoS 2 that was sent before; its exchange ends with
    /// PUBREL, so that the peer frees its identifier.
    pub(crate) fn discard(&mut self, seq: u64, persist: &mut impl Persist<M>) -> bool {
        if let Some((packet_id, slot)) = self.find_unloaded(seq) {
            if slot.sent && slot.qos() == Some(QoS::ExactlyOnce) {
                let batch = slot.release(packet_id, persist);
                slot.delivery = None;
                self.released = self.released.max(batch);
            } else {
                self.finish(packet_id, persist);
            }
            return true;
        }
        let Some(Queued { delivery, .. }) = self.queue.take_unloaded(seq) else { return false };
        persist.persist(Record::Discarded { seq, delivery: &delivery });
        true
    }

    fn find_unloaded(&mut self, seq: u64) -> Option<(PacketId, &mut Slot<M>)> {
        let is_it = |slot: &Slot<M>| slot.seq == seq && !slot.is_loaded();
        self.window.unsent_mut().find(|(_, slot)| is_it(slot))
    }

    /// PUBREL of an exchange behind a PUBLISH that is not loaded: PUBRELs wait only for each other.
    #[cold]
    pub(super) fn poll_release_behind(
        &mut self,
        now_ns: u64,
        committed: BatchSeq,
    ) -> Option<Transmit<M>> {
        let mut unsent = self.window.unsent_mut();
        let (packet_id, slot) = unsent.find(|(_, slot)| slot.stage == Stage::Released)?;
        if slot.batch > committed {
            return None;
        }
        slot.mark_resumed(now_ns);
        Some(Transmit::PubRel { packet_id, reason: ReasonCode::SUCCESS })
    }

    /// Whether `poll_release_behind` would yield something.
    #[cold]
    pub(super) fn has_release_behind(&self, committed: BatchSeq) -> bool {
        let mut released = self.window.unsent().filter(|slot| slot.stage == Stage::Released);
        released.next().is_some_and(|slot| slot.batch <= committed)
    }
}
