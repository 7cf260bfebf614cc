//! Messages of shared subscriptions with durable members that were given to a session in memory.
//!
//! Such a message keeps its place in the group's queue of the journal until the session's client
//! has acknowledged it, so that the group has it if the broker dies before. What the session leaves
//! goes to another member together with its place. A message of QoS 2 leaves its place before it is
//! sent: from then on nobody else may get it [MQTT-4.8.2-5].

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_codec::QoS;
use tacho_journal::Urgency;
use tacho_session::{BatchSeq, Persist, Record};

use crate::delivery::Place;
use crate::keys::SessionSlot;
use crate::shard::Shard;
use crate::shard::durability::ShardJournal;
use crate::shard::sessions::{Copy, Session};

/// One session's places in queues of groups. Those of a session that lives in memory end with it.
#[derive(Debug, Default)]
pub(in crate::shard) struct Lent {
    /// By the numbers of its messages in the session.
    places: HashMap<u64, Place, RandomState>,
    /// Of the message that it is being offered.
    offered: Option<Place>,
}

/// Takes the records of one session that has such messages, or had some.
pub(in crate::shard) struct LentPersist<'a> {
    journal: &'a mut ShardJournal,
    lent: u32,
    /// Of messages that were taken out, in their order: each with its place, if it has one.
    taken: Vec<Option<Place>>,
    /// The last of what the session itself waits for.
    waits_for: BatchSeq,
}

impl<'a> LentPersist<'a> {
    pub(in crate::shard) fn new(journal: &'a mut ShardJournal, lent: u32) -> Self {
        Self { journal, lent, taken: Vec::new(), waits_for: BatchSeq::DONE }
    }

    pub(in crate::shard) fn waits_for(&self) -> BatchSeq {
        self.waits_for
    }

    pub(in crate::shard) fn take_places(&mut self) -> Vec<Option<Place>> {
        std::mem::take(&mut self.taken)
    }

    fn lent(&mut self) -> &mut Lent {
        &mut self.journal.lent[self.lent as usize]
    }

    /// The message leaves the group's queue, before it leaves for the client.
    fn leave(&mut self, place: Place) -> BatchSeq {
        let batch = self.journal.remove(place, Urgency::Forces);
        self.waits_for = self.waits_for.max(batch);
        batch
    }
}

impl Persist<Copy> for LentPersist<'_> {
    fn persist(&mut self, record: Record<'_, Copy>) -> BatchSeq {
        match record {
            Record::Enqueued { seq, delivery } if delivery.qos != QoS::AtMostOnce => {
                let lent = self.lent();
                if let Some(place) = lent.offered.take() {
                    lent.places.insert(seq, place);
                }
                BatchSeq::DONE
            }
            Record::Sent { seq, delivery, from_queue, .. } => {
                let is_exact = delivery.qos == QoS::ExactlyOnce;
                let lent = self.lent();
                let place = match (from_queue, is_exact) {
                    (true, false) => None,
                    (true, true) => lent.places.remove(&seq),
                    (false, _) => lent.offered.take(),
                };
                match place {
                    Some(place) if is_exact => self.leave(place),
                    Some(place) => {
                        lent.places.insert(seq, place);
                        BatchSeq::DONE
                    }
                    None => BatchSeq::DONE,
                }
            }
            Record::Removed { seq, .. } => {
                let place = self.lent().places.remove(&seq);
                self.taken.push(place);
                BatchSeq::DONE
            }
            Record::Acked { seq, .. }
            | Record::Lapsed { seq, .. }
            | Record::Expired { seq, .. }
            | Record::Discarded { seq, .. } => match self.lent().places.remove(&seq) {
                Some(place) => self.journal.remove(place, Urgency::Rides),
                None => BatchSeq::DONE,
            },
            _ => BatchSeq::DONE,
        }
    }
}

impl Shard {
    /// A session is about to be offered a message that has this place.
    pub(in crate::shard) fn lend(&mut self, slot: SessionSlot, place: Place) {
        let Some(journal) = &mut self.durability.journal else { return };
        let session = &mut self.sessions[slot];
        let lent = *session.lent.get_or_insert_with(|| journal.lent.insert(Lent::default()) as u32);
        journal.lent[lent as usize].offered = Some(place);
    }

    /// The place of a message that was offered, if the session has not taken it.
    pub(in crate::shard) fn not_lent(&mut self, slot: SessionSlot) -> Option<Place> {
        let lent = self.sessions[slot].lent?;
        self.durability.journal.as_mut()?.lent[lent as usize].offered.take()
    }

    /// A session is over, and has given back what it had.
    pub(in crate::shard) fn forget_lent(&mut self, session: &Session) {
        if let (Some(lent), Some(journal)) = (session.lent, &mut self.durability.journal) {
            let lent = journal.lent.remove(lent as usize);
            debug_assert!(lent.places.is_empty(), "each message ended with a record");
        }
    }
}
