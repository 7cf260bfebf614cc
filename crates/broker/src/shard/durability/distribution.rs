//! Messages whose way to durable queues does not end within one event: other shards take part in
//! it, or a fan-out goes on in later turns.
//!
//! Such a message is noted as open in the journal, together with its record and before any of its
//! places in queues, and as done once every part of it is where it belongs. So a broker that dies
//! in between knows that it has to go on, and no entry refers to a message that is gone. Each
//! part ends with a receipt that goes back to the publisher's shard: when all are in, the publisher
//! is acknowledged, after the last commit that any of them named.
//!
//! A message for one member of a shared group ([`Owed`]) may have a place in a queue instead. The
//! shard that finds the next place for it gives up the former one in the same event, so that one
//! replaces the other in one commit.

use std::sync::Arc;

use tacho_codec::{PacketId, QoS, ReasonCode};
use tacho_journal::{CommitSeq, MessageId, Record, Urgency};
use tacho_session::BatchSeq;
use tacho_topic::{Group, ShardSet};

use crate::durable::{Durable, open};
use crate::keys::SessionSlot;
use crate::message::Message;
use crate::shard::{Net, Shard};

use crate::delivery::{Owed, Receipt};

/// The acknowledgement a publisher gets once its message has been handed to every receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledge {
    pub(crate) slot: SessionSlot,
    pub(crate) generation: u32,
    pub(crate) qos: QoS,
    pub(crate) packet_id: PacketId,
}

/// A receipt that waits for the commit of its group to be known.
#[derive(Clone, Copy, Debug)]
pub(in crate::shard) struct OutgoingReceipt {
    pub(in crate::shard) receipt: Receipt,
    pub(in crate::shard) batch: BatchSeq,
}

/// A message on its way.
#[derive(Debug)]
pub(in crate::shard) struct Distribution {
    message: MessageId,
    /// Receipts that have not come.
    missing: u32,
    batch: BatchSeq,
    acknowledge: Option<Acknowledge>,
}

/// A message that is being sent everywhere it belongs.
pub(in crate::shard) struct Sending {
    pub(in crate::shard) acknowledge: Option<Acknowledge>,
    /// Of what was written for it so far.
    pub(in crate::shard) batch: BatchSeq,
    distribution: Option<u32>,
}

impl Sending {
    pub(in crate::shard) fn new(acknowledge: Option<Acknowledge>) -> Self {
        Self { acknowledge, batch: BatchSeq::DONE, distribution: None }
    }
}

impl Shard {
    /// What comes back from a shard that gets a message, if its receivers there may be durable:
    /// `durable` are the shards of such receivers.
    pub(in crate::shard) fn receipt_of(
        &mut self,
        (shard, durable): (usize, ShardSet),
        sending: &mut Sending,
        message: &Message,
    ) -> Option<Receipt> {
        let is_assured = message.header().qos != QoS::AtMostOnce;
        let is_wanted = is_assured && self.shared.durable.as_ref()?.has_receivers(shard, durable);
        if is_wanted { self.receipt(sending, message) } else { None }
    }

    /// What comes back from the shard that finds a place for a group's message, if its members may
    /// be durable.
    pub(in crate::shard) fn owed_to_group(
        &mut self,
        group: &Group,
        sending: &mut Sending,
        message: &Message,
    ) -> Owed {
        let is_wanted = message.header().qos != QoS::AtMostOnce && group.durable_members() > 0;
        let receipt = if is_wanted { self.receipt(sending, message) } else { None };
        receipt.map_or(Owed::Nothing, Owed::Receipt)
    }

    /// A receipt for one more part of a message's distribution, which is noted as open with the
    /// first one. The sender itself has a part too.
    fn receipt(&mut self, sending: &mut Sending, message: &Message) -> Option<Receipt> {
        let index = self.open_distribution(sending, message)?;
        let journal = self.durability.journal.as_mut()?;
        journal.distributions[index as usize].missing += 1;
        Some(Receipt { shard: self.id as u16, distribution: index })
    }

    /// The same for a group that gets the message in a later turn: `own` is the receipt of the
    /// sender's own part, which is not ended yet.
    pub(in crate::shard) fn owed_of_distribution(
        &mut self,
        group: &Group,
        own: Receipt,
        message: &Message,
    ) -> Owed {
        let is_wanted = message.header().qos != QoS::AtMostOnce && group.durable_members() > 0;
        let journal = self.durability.journal.as_mut().filter(|_| is_wanted);
        let open = journal.and_then(|j| j.distributions.get_mut(own.distribution as usize));
        open.map_or(Owed::Nothing, |open| {
            open.missing += 1;
            Owed::Receipt(own)
        })
    }

    /// The fan-out of a message goes on in later turns: it is noted as open if its receivers may be
    /// durable. `durable` are the shards of such receivers, `groups` the groups among these.
    pub(in crate::shard) fn open_for_later(
        &mut self,
        (durable, groups): (ShardSet, Option<&[Arc<Group>]>),
        sending: &mut Sending,
        message: &Message,
    ) {
        let is_group_durable = || groups.is_some_and(|g| g.iter().any(|g| g.durable_members() > 0));
        if message.header().qos != QoS::AtMostOnce
            && (self.has_durable_receivers(durable) || is_group_durable())
        {
            self.open_distribution(sending, message);
        }
    }

    /// The sender's own part, if there is a distribution at all; it then acknowledges.
    pub(in crate::shard) fn own_receipt(&self, sending: &mut Sending) -> Option<Receipt> {
        let distribution = sending.distribution?;
        sending.acknowledge = None;
        Some(Receipt { shard: self.id as u16, distribution })
    }

    fn open_distribution(&mut self, sending: &mut Sending, message: &Message) -> Option<u32> {
        if sending.distribution.is_some() {
            return sending.distribution;
        }
        let id = self.note_open(message)?;
        let mut batch = BatchSeq::DONE;
        if let Some(publisher) = sending.acknowledge
            && publisher.qos == QoS::ExactlyOnce
        {
            // From now on its repetition would be a second message.
            batch = self.act(publisher.slot, |machine, recorder| {
                machine.record_publish(publisher.packet_id, recorder);
                // All receipts may be in before this is safe.
                recorder.promised()
            });
        }
        let distribution =
            Distribution { message: id, missing: 1, batch, acknowledge: sending.acknowledge };
        let index = self.durability.journal.as_mut()?.distributions.insert(distribution) as u32;
        sending.distribution = Some(index);
        Some(index)
    }

    /// Notes a message as open; its record is written if that has not happened.
    fn note_open(&mut self, message: &Message) -> Option<MessageId> {
        let durable = self.shared.durable.as_ref()?;
        let level = durable.sessions_level();
        let journal = self.durability.journal.as_mut()?;
        let id = journal.message_id(message, level);
        self.stats.journal_open_total.increment();
        let header = message.header();
        let routed = header.retain.then(|| durable.route_version(header.routed_version));
        let (meta, len) = open::encode(routed);
        let record = Record::Open { message: id, meta: &meta[..len] };
        journal.append(record, level, Urgency::Rides);
        Some(id)
    }

    /// A part of a distribution is where it belongs, and safe with `batch`.
    pub(in crate::shard) fn part_ended(
        &mut self,
        net: &mut Net,
        receipt: Receipt,
        batch: BatchSeq,
    ) {
        if usize::from(receipt.shard) == self.id {
            self.receipt_came(net, receipt, batch);
        } else if let Some(journal) = &mut self.durability.journal {
            journal.receipts_out.push(OutgoingReceipt { receipt, batch });
        }
    }

    /// Another shard says which commit its part of a distribution is safe with.
    pub(in crate::shard) fn stored_elsewhere(
        &mut self,
        net: &mut Net,
        receipt: Receipt,
        commit: CommitSeq,
    ) {
        let Some(journal) = &mut self.durability.journal else { return };
        let complete = journal.journal.committed();
        let batch = journal.commits.elsewhere(commit, complete);
        self.receipt_came(net, receipt, batch);
    }

    fn receipt_came(&mut self, net: &mut Net, receipt: Receipt, batch: BatchSeq) {
        let Some(journal) = &mut self.durability.journal else { return };
        let index = receipt.distribution as usize;
        let Some(distribution) = journal.distributions.get_mut(index) else { return };
        distribution.batch = distribution.batch.max(batch);
        distribution.missing -= 1;
        if distribution.missing > 0 {
            return;
        }
        let Distribution { message, batch, acknowledge, .. } = journal.distributions.remove(index);
        self.note_done(message);
        if let Some(publisher) = acknowledge
            && self.is_session(publisher)
        {
            self.accept_from(publisher, batch);
            self.pump(net, publisher.slot);
        }
    }

    /// A message that was noted as open is where it belongs.
    fn note_done(&mut self, message: MessageId) {
        let Some(durable) = &self.shared.durable else { return };
        let level = durable.sessions_level();
        self.append(Record::Done { message }, level, Urgency::Rides);
    }

    /// A message for one member has found its place, or is given up: what kept it lets go of it.
    pub(in crate::shard) fn settle(&mut self, net: &mut Net, owed: Owed, batch: BatchSeq) {
        match owed {
            Owed::Nothing => {}
            Owed::Receipt(receipt) => self.part_ended(net, receipt, batch),
            Owed::Place(place) => {
                if let Some(journal) = &mut self.durability.journal {
                    journal.remove(place, Urgency::Rides);
                }
            }
        }
    }

    /// A message that arrived without a receipt, for sessions that may be durable: the shards that
    /// have a record of it may be finished with it, so these sessions get a record of their own.
    /// `durable` are the shards of such sessions.
    pub(in crate::shard) fn with_own_record(&self, message: Message, durable: ShardSet) -> Message {
        let keeps = |d: &Durable| d.settings.keeps(message.header().qos);
        let is_journaled = self.shared.durable.as_ref().is_some_and(keeps);
        if is_journaled && self.has_durable_receivers(durable) { message.copied() } else { message }
    }

    fn has_durable_receivers(&self, durable: ShardSet) -> bool {
        self.shared.durable.as_ref().is_some_and(|d| d.has_receivers(self.id, durable))
    }

    /// Accepts a publisher's message: it is acknowledged once `batch` is committed.
    pub(in crate::shard) fn accept_from(&mut self, publisher: Acknowledge, batch: BatchSeq) {
        let Acknowledge { slot, qos, packet_id, .. } = publisher;
        let reason = ReasonCode::SUCCESS;
        self.act(slot, |machine, recorder| {
            machine.accept_publish(qos, Some(packet_id), reason, batch, recorder);
            recorder.awaits(batch);
        });
    }

    /// Whether a publisher's session is still the one that published.
    pub(in crate::shard) fn is_session(&self, a: Acknowledge) -> bool {
        self.sessions.is_current(a.slot, a.generation)
    }
}
