//! What a shard tells the journal: messages, their places in the queues of sessions, and how far
//! their delivery has come.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use slab::Slab;
use tacho_codec::QoS;
use tacho_journal::{Condition, Journal, MessageId, QueueId, Record as Entry, Urgency, Writer};
use tacho_session::{BatchSeq, Delivery, Persist, Record};
use tacho_topic::Group;

use super::commits::Commits;
use super::distribution::{Distribution, OutgoingReceipt};
use super::ended_sessions::EndedSessions;
use super::hand_off_places::HandOffs;
use super::loading::IN_MEMORY_MAX;
use crate::config::Level;
use crate::delivery::Place;
use crate::delivery::{Body, Copy, NO_GROUP};
use crate::durable::body::encode_head;
use crate::durable::entry::{self, EntryStage};
use crate::durable::{Durable, WallClock, keys};
use crate::keys::SessionSlot;
use crate::mail::Mail;
use crate::message::Message;
use crate::shard::durability::JournaledSession;
use crate::shard::{Net, Shard};
use crate::stats::ShardStats;

/// A shard's side of the journal.
pub(in crate::shard) struct ShardJournal {
    pub(in crate::shard) journal: Journal,
    writer: Writer,
    wall: WallClock,
    offline_qos0: bool,
    stats: Arc<ShardStats>,
    pub(in crate::shard) commits: Commits,
    /// Messages whose distribution other shards take part in, or that is not finished here.
    pub(in crate::shard) distributions: Slab<Distribution>,
    /// Of sessions in memory that have messages with places in queues of groups.
    pub(super) hand_offs: Slab<HandOffs>,
    /// Sessions whose end is not committed.
    pub(in crate::shard) dropped: EndedSessions,
    /// What other shards are told when the current batch is handed over.
    pub(in crate::shard) receipts_out: Vec<OutgoingReceipt>,
    /// The queues of shared subscriptions, by the number of the group.
    group_queues: HashMap<u64, QueueId, RandomState>,
    /// Reused for what is in front of a payload, and for how an entry is to be delivered.
    head: Vec<u8>,
    meta: Vec<u8>,
}

impl ShardJournal {
    pub(in crate::shard) fn new(durable: &Durable, stats: Arc<ShardStats>) -> Self {
        Self {
            journal: durable.journal.clone(),
            writer: durable.journal.writer(),
            wall: durable.wall,
            offline_qos0: durable.settings.offline_qos0,
            stats,
            commits: Commits::new(),
            distributions: Slab::new(),
            hand_offs: Slab::new(),
            dropped: EndedSessions::default(),
            receipts_out: Vec::new(),
            group_queues: HashMap::default(),
            head: Vec::new(),
            meta: Vec::new(),
        }
    }

    /// Appends a record to the current batch. At the level of memory nothing is written.
    #[inline]
    pub(in crate::shard) fn append(
        &mut self,
        record: Entry<'_>,
        level: Level,
        urgency: Urgency,
    ) -> BatchSeq {
        let Some(level) = level.journal_level() else { return BatchSeq::DONE };
        self.stats.journal_records_total.increment();
        self.writer.gather(record, level);
        self.commits.appended(urgency)
    }

    /// The number of a message, which is written now if the journal does not have it yet.
    #[inline]
    pub(in crate::shard) fn message_id(&mut self, message: &Message, level: Level) -> MessageId {
        match message.stored() {
            Some(id) => id,
            None => self.write_message(message, level),
        }
    }

    fn write_message(&mut self, message: &Message, level: Level) -> MessageId {
        let id = self.journal.new_message_id();
        let mut head = std::mem::take(&mut self.head);
        encode_head(message, self.wall, &mut head);
        self.stats.journal_messages_total.increment();
        let body = &[&head[..], message.payload()];
        self.append(Entry::Message { id, body }, level, Urgency::Rides);
        self.head = head;
        message.set_stored(id);
        id
    }

    fn id_of(&mut self, copy: &Copy, level: Level) -> MessageId {
        match &copy.message {
            Body::Here(message) => self.message_id(message, level),
            Body::Stored(id) => *id,
        }
    }

    /// Puts a message into a queue.
    pub(in crate::shard) fn enter(
        &mut self,
        place: Place,
        delivery: &Delivery<Copy>,
        stage: EntryStage,
        urgency: Urgency,
    ) -> BatchSeq {
        let message = self.id_of(&delivery.message, place.level);
        let group = delivery.message.group;
        let group = match group {
            NO_GROUP => None,
            group => self.group_queues.get(&group.0).copied(),
        };
        let mut meta = std::mem::take(&mut self.meta);
        entry::encode(delivery, group, self.wall, &mut meta);
        let Place { queue, seq, level } = place;
        let record = Entry::Entry { queue, seq, message, state: stage.encode(), meta: &meta };
        let batch = self.append(record, level, urgency);
        self.meta = meta;
        batch
    }

    pub(in crate::shard) fn remove(&mut self, place: Place, urgency: Urgency) -> BatchSeq {
        let Place { queue, seq, level } = place;
        self.append(Entry::Remove { queue, seq }, level, urgency)
    }

    /// The queue in which a group's messages wait. Each shard notes it with its first look at it:
    /// what another one has noted may be committed later than what this one is about to refer to.
    pub(in crate::shard) fn group_queue(&mut self, group: &Group, durable: &Durable) -> QueueId {
        if let Some(&queue) = self.group_queues.get(&group.id()) {
            return queue;
        }
        let queue = durable.groups.queue(group.id(), || self.journal.new_queue_id());
        let record = Entry::Put {
            queue: QueueId::COMMON,
            key: &keys::group(group.shared_filter()),
            version: durable.retained_version(group.id()),
            value: &keys::encode_queue(queue),
            message: None,
        };
        self.append(record, durable.sessions_level(), Urgency::Rides);
        self.group_queues.insert(group.id(), queue);
        queue
    }

    /// A new place in the queue in which a group's messages wait.
    pub(in crate::shard) fn place_in_group(&mut self, group: &Group, durable: &Durable) -> Place {
        let queue = self.group_queue(group, durable);
        Place { queue, seq: durable.groups.next_seq(), level: durable.sessions_level() }
    }

    /// A group is over.
    pub(in crate::shard) fn forget_group(&mut self, group: u64) {
        self.group_queues.remove(&group);
    }

    /// Records that a shared group has received its part of an open message, whose distribution
    /// may already be complete: the message enters the group's queue and leaves it at once.
    pub(in crate::shard) fn note_served(
        &mut self,
        queue: QueueId,
        message: &Message,
        level: Level,
    ) {
        let message = self.message_id(message, level);
        let (seq, state) = (SERVED_SEQ, EntryStage::Queued.encode());
        let entry = Entry::Entry { queue, seq, message, state, meta: &[] };
        self.append(entry, level, Urgency::Rides);
        self.append(Entry::Remove { queue, seq }, level, Urgency::Rides);
    }

    /// Where the records of a session go.
    #[inline]
    pub(in crate::shard) fn persist(
        &mut self,
        journaled: &JournaledSession,
        is_connected: bool,
    ) -> QueueRecorder<'_> {
        let JournaledSession { queue, level, .. } = *journaled;
        let none = BatchSeq::DONE;
        QueueRecorder { queue, level, is_connected, journal: self, written: none, waits_for: none }
    }

    /// Whether the journal takes messages at present.
    #[inline]
    pub(in crate::shard) fn is_fine(&self) -> bool {
        self.journal.condition() == Condition::Fine
    }

    /// Whether a message of QoS 0 that is going to wait in a session's queue is written down.
    fn takes_qos0(&self, is_connected: bool) -> bool {
        if is_connected || !self.offline_qos0 {
            return false;
        }
        // No publisher is held back for it, so it must not pile up in memory.
        let is_fine = self.is_fine();
        if !is_fine {
            self.stats.journal_skipped_total.increment();
        }
        is_fine
    }

    /// Whether publishers are to be held back until some of what was appended is written.
    #[inline]
    pub(in crate::shard) fn is_pressed(&self) -> bool {
        self.journal.is_pressed()
    }

    #[inline]
    pub(in crate::shard) fn hand_over(&mut self) {
        if let Some(urgency) = self.commits.urgency() {
            // The shard asks for a commit when it has nothing else to do.
            let urgency = if urgency == Urgency::Forces { Urgency::Waits } else { urgency };
            let commit = self.writer.close(urgency);
            self.commits.handed_over(commit);
        }
    }
}

/// No message waits at this place of a queue.
const SERVED_SEQ: u64 = 0;

/// Takes the records of one durable session.
pub(in crate::shard) struct QueueRecorder<'a> {
    journal: &'a mut ShardJournal,
    queue: QueueId,
    level: Level,
    is_connected: bool,
    /// Of a message that was offered.
    written: BatchSeq,
    /// The last of what the session itself waits for.
    waits_for: BatchSeq,
}

impl QueueRecorder<'_> {
    /// The batch that holds the message that was offered.
    #[inline]
    pub(in crate::shard) fn written(&self) -> BatchSeq {
        self.written
    }

    /// The newest batch that the session waits for.
    #[inline]
    pub(in crate::shard) fn waits_for(&self) -> BatchSeq {
        self.waits_for
    }

    fn place(&self, seq: u64) -> Place {
        Place { queue: self.queue, seq, level: self.level }
    }

    fn state(&mut self, seq: u64, stage: EntryStage, urgency: Urgency) -> BatchSeq {
        let keep_message = !matches!(stage, EntryStage::Released(_));
        let (queue, state) = (self.queue, stage.encode());
        let record = Entry::State { queue, seq, state, keep_message };
        self.journal.append(record, self.level, urgency)
    }

    fn remove(&mut self, seq: u64, urgency: Urgency) -> BatchSeq {
        let place = self.place(seq);
        self.journal.remove(place, urgency)
    }

    fn waited_for(&mut self, batch: BatchSeq) -> BatchSeq {
        self.waits_for = self.waits_for.max(batch);
        batch
    }

    /// Whether a message that waits in the queue has a place there in the journal too: one of QoS 0
    /// only if it came while the client was not connected, and the settings say so.
    fn is_journaled(&self, delivery: &Delivery<Copy>) -> bool {
        delivery.qos != QoS::AtMostOnce
            || self.journal.offline_qos0
                && match &delivery.message.message {
                    Body::Here(message) => message.stored().is_some(),
                    Body::Stored(_) => true,
                }
    }
}

impl Persist<Copy> for QueueRecorder<'_> {
    fn persist(&mut self, record: Record<'_, Copy>) -> BatchSeq {
        match record {
            Record::Enqueued { seq, delivery } => {
                let is_qos0 = delivery.qos == QoS::AtMostOnce;
                if is_qos0 && !self.journal.takes_qos0(self.is_connected) {
                    return BatchSeq::DONE;
                }
                let urgency = if is_qos0 { Urgency::Rides } else { Urgency::Forces };
                let place = self.place(seq);
                self.written = self.journal.enter(place, delivery, EntryStage::Queued, urgency);
                self.written
            }
            Record::Sent { seq, packet_id, delivery, from_queue } => {
                let waits = delivery.qos == QoS::ExactlyOnce;
                let batch = if from_queue {
                    // What was queued is safe; QoS 1 may come twice, with another identifier too.
                    let urgency = if waits { Urgency::Forces } else { Urgency::Rides };
                    self.state(seq, EntryStage::Sent(packet_id), urgency)
                } else {
                    let place = self.place(seq);
                    let stage = EntryStage::Sent(packet_id);
                    self.written = self.journal.enter(place, delivery, stage, Urgency::Forces);
                    self.written
                };
                if waits { self.waited_for(batch) } else { batch }
            }
            Record::Released { seq, packet_id } => {
                let batch = self.state(seq, EntryStage::Released(packet_id), Urgency::Forces);
                self.waited_for(batch)
            }
            // At most once also if the broker dies now: it leaves when it is out of the journal.
            Record::Dispatched { seq, delivery } if self.is_journaled(delivery) => {
                let batch = self.remove(seq, Urgency::Forces);
                self.waited_for(batch)
            }
            Record::Removed { seq, delivery }
            | Record::Expired { seq, delivery }
            | Record::Discarded { seq, delivery }
                if self.is_journaled(delivery) =>
            {
                self.remove(seq, Urgency::Rides)
            }
            Record::Lapsed { seq, .. } => {
                let batch = self.remove(seq, Urgency::Forces);
                self.waited_for(batch)
            }
            Record::Acked { seq, .. } => self.remove(seq, Urgency::Rides),
            Record::InboundReceived { packet_id } => {
                let (queue, key) = (self.queue, &keys::inbound(packet_id));
                let record = Entry::Put { queue, key, version: 0, value: &[], message: None };
                let batch = self.journal.append(record, self.level, Urgency::Forces);
                self.waited_for(batch)
            }
            Record::InboundReleased { packet_id } => {
                let (queue, key) = (self.queue, &keys::inbound(packet_id));
                let record = Entry::Delete { queue, key, version: 0 };
                let batch = self.journal.append(record, self.level, Urgency::Forces);
                self.waited_for(batch)
            }
            _ => BatchSeq::DONE,
        }
    }
}

impl Shard {
    /// A message that is going to wait in a durable session for long need not be in memory.
    pub(in crate::shard) fn store(
        &mut self,
        now_ns: u64,
        slot: SessionSlot,
        delivery: &mut Delivery<Copy>,
    ) {
        let session = &mut self.sessions[slot];
        let waits = session.connection().is_none() || session.machine.queue_len() >= IN_MEMORY_MAX;
        let (Some(journaled), Some(journal)) =
            (&session.journal.place, &mut self.durability.journal)
        else {
            return;
        };
        // Those of shared subscriptions go to others when the client leaves.
        let is_alone = delivery.message.group == NO_GROUP;
        let is_safe = delivery.qos != QoS::AtMostOnce
            || journal.offline_qos0 && session.connection().is_none() && journal.is_fine();
        if waits
            && is_alone
            && is_safe
            && session.machine.refusal(now_ns, delivery).is_none()
            && let Body::Here(message) = &delivery.message.message
        {
            let id = journal.message_id(message, journaled.level);
            delivery.message.message = Body::Stored(id);
            session.journal.stored.count += 1;
        }
    }

    /// Appends a record to the current batch.
    pub(in crate::shard) fn append(
        &mut self,
        record: Entry<'_>,
        level: Level,
        urgency: Urgency,
    ) -> BatchSeq {
        let journal = self.durability.journal.as_mut();
        journal.map_or(BatchSeq::DONE, |journal| journal.append(record, level, urgency))
    }

    /// Hands the records of the event that was just handled to the journal, and tells other shards
    /// what of theirs is among them.
    #[inline]
    pub(in crate::shard) fn hand_over(&mut self, net: &mut Net) {
        if let Some(journal) = &mut self.durability.journal {
            journal.hand_over();
            if !journal.receipts_out.is_empty() {
                self.send_receipts(net);
            }
        }
    }

    fn send_receipts(&mut self, net: &mut Net) {
        let Some(journal) = &mut self.durability.journal else { return };
        for OutgoingReceipt { receipt, batch } in journal.receipts_out.drain(..) {
            let commit = journal.commits.commit_of(batch);
            net.post(receipt.shard.into(), Mail::Stored(receipt, commit));
        }
    }

    /// Keeps a message as the retained one of its topic, or notes that there is none any more.
    pub(in crate::shard) fn record_retained(&mut self, message: &Message) -> BatchSeq {
        let header = message.header();
        let (Some(durable), Some(journal)) = (&self.shared.durable, &mut self.durability.journal)
        else {
            return BatchSeq::DONE;
        };
        if !is_retained_durably(durable, &header.topic) {
            return BatchSeq::DONE;
        }
        let level = durable.settings.retained_level;
        let waits = header.qos != QoS::AtMostOnce;
        if !waits && !journal.is_fine() {
            // No session is told, and it must not pile up in memory.
            self.stats.journal_skipped_total.increment();
            return BatchSeq::DONE;
        }
        let urgency = if waits { Urgency::Forces } else { Urgency::Rides };
        let version = durable.retained_version(header.retained_version);
        let (queue, key) = (QueueId::COMMON, &keys::retained(&header.topic)[..]);
        if message.payload().is_empty() {
            return journal.append(Entry::Delete { queue, key, version }, level, urgency);
        }
        let message = Some(journal.message_id(message, level));
        let record = Entry::Put { queue, key, version, value: &[], message };
        journal.append(record, level, urgency)
    }

    /// A retained message is not stored after all, or has expired.
    pub(in crate::shard) fn record_no_retained(&mut self, topic: &str, version: u64) {
        let Some(durable) = &self.shared.durable else { return };
        let (level, version) = (durable.settings.retained_level, durable.retained_version(version));
        if is_retained_durably(durable, topic) {
            let (queue, key) = (QueueId::COMMON, &keys::retained(topic)[..]);
            self.append(Entry::Delete { queue, key, version }, level, Urgency::Rides);
        }
    }
}

/// Whether the retained message of a topic is durable: not `$SYS`, the broker's own figures.
pub(in crate::shard) fn is_retained_durably(durable: &Durable, topic: &str) -> bool {
    let is_brokers = || topic.split('/').next() == Some("$SYS");
    durable.settings.retained_level != Level::Memory && !is_brokers()
}
