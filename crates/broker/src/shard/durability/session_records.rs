//! Session records: that a session exists and until when, its subscriptions, its will.

use std::sync::Arc;

use tacho_codec::Version;
use tacho_journal::{MessageId, QueueId, Record, Urgency};
use tacho_session::{BatchSeq, WillState};
use tacho_topic::Filter;

use crate::config::Level;
use crate::delivery::{Body, Copy};
use crate::durable::body::encode_head_of_will;
use crate::durable::keys::{self, Connectedness, SessionRecord, WillRecord};
use crate::keys::SessionSlot;
use crate::message::Message;
use crate::shard::Shard;
use crate::subscription::SubscriptionOptions;

/// A durable session's place in the journal, from its creation to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournaledSession {
    pub(crate) queue: QueueId,
    pub(crate) level: Level,
    /// Whether the journal has a will of the session.
    pub(crate) has_will: bool,
}

/// What a CONNECT makes of a session, once it is accepted.
pub(in crate::shard) struct OpenedSession<'a> {
    pub(in crate::shard) version: Version,
    pub(in crate::shard) expiry_s: u32,
    pub(in crate::shard) will: Option<&'a WillState<Copy>>,
    /// Whether its client is told when that is committed.
    pub(in crate::shard) waits: bool,
}

impl Shard {
    /// The place of a session that is made now, if it is to be durable.
    pub(in crate::shard) fn place_in_journal(&self, level: Level) -> Option<JournaledSession> {
        let durable = self.shared.durable.as_ref()?;
        level.journal_level()?;
        Some(JournaledSession { queue: durable.journal.new_queue_id(), level, has_will: false })
    }

    /// Records that a session is about to be connected.
    pub(in crate::shard) fn record_opened(
        &mut self,
        slot: SessionSlot,
        opened: &OpenedSession<'_>,
    ) -> BatchSeq {
        let session = &self.sessions[slot];
        let Some(journaled) = session.journal.place else { return BatchSeq::DONE };
        let record = SessionRecord {
            key: session.key().clone(),
            user: session.access.user().map(|user| Arc::clone(&user.name)),
            version: opened.version,
            level: journaled.level,
            queue_policy: session.queue_policy(),
            expiry_s: opened.expiry_s,
            state: Connectedness::Connected,
        };
        let urgency = if opened.waits { Urgency::Forces } else { Urgency::Rides };
        let batch = self.put(journaled, keys::SESSION, &record.encode(), urgency);
        let will = opened.will.map(|will| (will.clone(), None));
        batch.max(self.record_will(slot, will, urgency))
    }

    /// Records the state of a session without a connection, and what became of its will.
    pub(in crate::shard) fn record_closed(&mut self, slot: SessionSlot) {
        let Some(durable) = &self.shared.durable else { return };
        let wall = durable.wall;
        let session = &self.sessions[slot];
        let Some(journaled) = session.journal.place else { return };
        let is_awaited =
            session.journal.confirmations.as_ref().is_some_and(|c| c.has_pending_connect());
        if is_awaited {
            return; // What is written down is how it will be.
        }
        let record = SessionRecord {
            key: session.key().clone(),
            user: session.access.user().map(|user| Arc::clone(&user.name)),
            version: session.version(),
            level: journaled.level,
            queue_policy: session.queue_policy(),
            expiry_s: session.machine.expiry_s(),
            state: Connectedness::EndsAt { unix_ns: wall.to_unix(session.machine.ends_at_ns()) },
        };
        let will = session.machine.will().map(|(will, at_ns)| (will.clone(), Some(at_ns)));
        self.put(journaled, keys::SESSION, &record.encode(), Urgency::Rides);
        self.record_will(slot, will, Urgency::Rides);
    }

    /// Records a session's will, with its due time if that is known, or that it has none.
    fn record_will(
        &mut self,
        slot: SessionSlot,
        will: Option<(WillState<Copy>, Option<u64>)>,
        urgency: Urgency,
    ) -> BatchSeq {
        let (Some(durable), Some(journaled)) =
            (&self.shared.durable, self.sessions[slot].journal.place)
        else {
            return BatchSeq::DONE;
        };
        let wall = durable.wall;
        let has_will = will.is_some();
        let batch = match will {
            Some((WillState { message, delay_s }, due_ns)) => {
                let Body::Here(message) = &message.message else { return BatchSeq::DONE };
                let due_unix_ns = due_ns.map(|due_ns| wall.to_unix(due_ns));
                let token_says = self.word_of_token(slot, message);
                let id = self.will_id(message, journaled.level);
                let record = Record::Put {
                    queue: journaled.queue,
                    key: keys::WILL,
                    version: 0,
                    value: &WillRecord { delay_s, due_unix_ns, token_says }.encode(),
                    message: id,
                };
                self.append(record, journaled.level, urgency)
            }
            None if journaled.has_will => self.delete(journaled, keys::WILL, urgency),
            None => BatchSeq::DONE,
        };
        if let Some(journaled) = &mut self.sessions[slot].journal.place {
            journaled.has_will = has_will;
        }
        batch
    }

    /// The client of a session has another token, whose rules may say something else of its will.
    pub(in crate::shard) fn record_word_of_token(&mut self, slot: SessionSlot) {
        if let Some((will, _)) = self.sessions[slot].machine.will() {
            let will = (will.clone(), None);
            self.record_will(slot, Some(will), Urgency::Rides);
        }
    }

    /// The number of a will's message, whose expiry has not begun.
    fn will_id(&mut self, message: &Message, level: Level) -> Option<MessageId> {
        if let Some(id) = message.stored() {
            return Some(id);
        }
        let id = self.shared.durable.as_ref()?.journal.new_message_id();
        let mut head = Vec::new();
        encode_head_of_will(message, &mut head);
        let record = Record::Message { id, body: &[&head, message.payload()] };
        self.append(record, level, Urgency::Rides);
        message.set_stored(id);
        Some(id)
    }

    /// Records a subscription, new or with other options.
    pub(in crate::shard) fn record_subscription(
        &mut self,
        slot: SessionSlot,
        filter: &Filter,
        mut options: SubscriptionOptions,
    ) -> BatchSeq {
        let (Some(durable), Some(journaled)) =
            (&self.shared.durable, self.sessions[slot].journal.place)
        else {
            return BatchSeq::DONE;
        };
        if options.since > 0 {
            options.since = durable.route_version(options.since);
        }
        let value = keys::encode_options(&options);
        self.put(journaled, &keys::subscription(filter), &value, Urgency::Forces)
    }

    /// Records the end of a subscription.
    pub(in crate::shard) fn record_unsubscribed(
        &mut self,
        slot: SessionSlot,
        filter: &Filter,
    ) -> BatchSeq {
        let Some(journaled) = self.sessions[slot].journal.place else { return BatchSeq::DONE };
        self.delete(journaled, &keys::subscription(filter), Urgency::Forces)
    }

    fn put(
        &mut self,
        journaled: JournaledSession,
        key: &[u8],
        value: &[u8],
        urgency: Urgency,
    ) -> BatchSeq {
        let queue = journaled.queue;
        // One shard writes them, in order: of equal versions the later one counts.
        let record = Record::Put { queue, key, version: 0, value, message: None };
        self.append(record, journaled.level, urgency)
    }

    fn delete(&mut self, journaled: JournaledSession, key: &[u8], urgency: Urgency) -> BatchSeq {
        let record = Record::Delete { queue: journaled.queue, key, version: 0 };
        self.append(record, journaled.level, urgency)
    }
}
