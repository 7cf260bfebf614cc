//! Hand-offs: messages of shared groups with durable members that a session in memory received.
//!
//! Such a message keeps its place in the group's queue of the journal until the session's client
//! has acknowledged it, so that it survives if the broker dies before. What the session leaves
//! unacknowledged goes to another member together with its place. A message of QoS 2 leaves its
//! place before it is sent: from then on no other member may get it [MQTT-4.8.2-5].

use tacho_codec::QoS;
use tacho_journal::Urgency;
use tacho_session::{BatchSeq, Persist, Record};

use super::hand_off_places::HandOffs;
use crate::delivery::{Copy, Place};
use crate::keys::SessionSlot;
use crate::shard::Shard;
use crate::shard::durability::{SessionJournal, ShardJournal};

/// Takes the records of one session that has such messages, or had some.
pub(in crate::shard) struct HandOffRecorder<'a> {
    journal: &'a mut ShardJournal,
    hand_offs: u32,
    /// Of messages that were taken out, in their order: each with its place, if it has one.
    taken: Vec<Option<Place>>,
    /// The last of what the session itself waits for.
    waits_for: BatchSeq,
}

impl<'a> HandOffRecorder<'a> {
    pub(in crate::shard) fn new(journal: &'a mut ShardJournal, hand_offs: u32) -> Self {
        Self { journal, hand_offs, taken: Vec::new(), waits_for: BatchSeq::DONE }
    }

    pub(in crate::shard) fn waits_for(&self) -> BatchSeq {
        self.waits_for
    }

    pub(in crate::shard) fn take_places(&mut self) -> Vec<Option<Place>> {
        std::mem::take(&mut self.taken)
    }

    fn hand_offs(&mut self) -> &mut HandOffs {
        &mut self.journal.hand_offs[self.hand_offs as usize]
    }

    /// The message leaves the group's queue, before it leaves for the client.
    fn leave(&mut self, place: Place) -> BatchSeq {
        let batch = self.journal.remove(place, Urgency::Forces);
        self.waits_for = self.waits_for.max(batch);
        batch
    }
}

impl Persist<Copy> for HandOffRecorder<'_> {
    fn persist(&mut self, record: Record<'_, Copy>) -> BatchSeq {
        match record {
            Record::Enqueued { seq, delivery } if delivery.qos != QoS::AtMostOnce => {
                let hand_offs = self.hand_offs();
                if let Some(place) = hand_offs.offered.take() {
                    hand_offs.places.insert(seq, place);
                }
                BatchSeq::DONE
            }
            Record::Sent { seq, delivery, from_queue, .. } => {
                let is_exact = delivery.qos == QoS::ExactlyOnce;
                let hand_offs = self.hand_offs();
                let place = match (from_queue, is_exact) {
                    (true, false) => None,
                    (true, true) => hand_offs.places.remove(&seq),
                    (false, _) => hand_offs.offered.take(),
                };
                match place {
                    Some(place) if is_exact => self.leave(place),
                    Some(place) => {
                        hand_offs.places.insert(seq, place);
                        BatchSeq::DONE
                    }
                    None => BatchSeq::DONE,
                }
            }
            Record::Removed { seq, .. } => {
                let place = self.hand_offs().places.remove(&seq);
                self.taken.push(place);
                BatchSeq::DONE
            }
            Record::Acked { seq, .. }
            | Record::Lapsed { seq, .. }
            | Record::Expired { seq, .. }
            | Record::Discarded { seq, .. } => match self.hand_offs().places.remove(&seq) {
                Some(place) => self.journal.remove(place, Urgency::Rides),
                None => BatchSeq::DONE,
            },
            _ => BatchSeq::DONE,
        }
    }
}

impl Shard {
    /// A session is about to be offered a message that has this place.
    pub(in crate::shard) fn hand_off(&mut self, slot: SessionSlot, place: Place) {
        let Some(journal) = &mut self.durability.journal else { return };
        let session = &mut self.sessions[slot];
        let hand_offs = *session
            .journal
            .hand_offs
            .get_or_insert_with(|| journal.hand_offs.insert(HandOffs::default()) as u32);
        journal.hand_offs[hand_offs as usize].offered = Some(place);
    }

    /// The place of a message that was offered, if the session has not taken it.
    pub(in crate::shard) fn take_back_offer(&mut self, slot: SessionSlot) -> Option<Place> {
        let hand_offs = self.sessions[slot].journal.hand_offs?;
        self.durability.journal.as_mut()?.hand_offs[hand_offs as usize].offered.take()
    }

    /// A session is over, and has given back what it had.
    pub(in crate::shard) fn end_hand_offs(&mut self, session: &SessionJournal) {
        if let (Some(hand_offs), Some(journal)) = (session.hand_offs, &mut self.durability.journal)
        {
            let hand_offs = journal.hand_offs.remove(hand_offs as usize);
            debug_assert!(hand_offs.places.is_empty(), "each message ended with a record");
        }
    }
}
