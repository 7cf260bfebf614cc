//! What is counted only while an operator wants to know: messages of chosen filters, and what each
//! client publishes.

use std::sync::Arc;

use crate::keys::SessionSlot;
use crate::message::Message;
use crate::query::{PublisherRow, PublisherScan, ScannedPublishers};
use crate::shard::{Net, Shard};
use crate::topic_metrics::TopicMetrics;

/// Slots that are looked at for one answer.
const SLOTS_LOOKED_AT: usize = 16_384;
/// Slots that are looked at in a microsecond.
const SLOTS_PER_UNIT: usize = 64;
/// Sessions that may come while publishes are counted; more are not counted.
const NEW_SESSIONS_MAX: usize = 65_536;

/// What each client has published since counting began, by slot.
pub(super) struct PublishCounts {
    // Zeroed memory that is not used takes none.
    messages: Vec<u64>,
    bytes: Vec<u64>,
}

impl PublishCounts {
    fn new(slots: usize) -> Self {
        let len = slots + NEW_SESSIONS_MAX;
        Self { messages: vec![0; len], bytes: vec![0; len] }
    }

    fn count(&mut self, slot: SessionSlot, payload_bytes: usize) {
        if let Some(messages) = self.messages.get_mut(slot.index()) {
            *messages += 1;
            self.bytes[slot.index()] += payload_bytes as u64;
        }
    }

    fn forget(&mut self, slot: SessionSlot) {
        if let Some(messages) = self.messages.get_mut(slot.index()) {
            (*messages, self.bytes[slot.index()]) = (0, 0);
        }
    }
}

impl Shard {
    /// The filters whose messages are counted from now on.
    pub(in crate::shard) fn count_topics(&mut self, topics: Arc<TopicMetrics>) {
        let age = topics.version.wrapping_sub(self.traces.topics.version).cast_signed();
        if age > 0 {
            self.traces.topics = topics;
            self.traces.changed();
        }
    }

    /// What each client publishes is counted from now on, or not any more.
    pub(in crate::shard) fn count_publishes(&mut self, is_wanted: bool) {
        let slots = self.sessions.slots_end();
        *self.traces.publishes.borrow_mut() = is_wanted.then(|| PublishCounts::new(slots));
        self.traces.changed();
    }

    /// A slot has a new session.
    #[inline]
    pub(in crate::shard) fn session_added(&self, slot: SessionSlot) {
        if self.traces.are_on()
            && let Some(counts) = &mut *self.traces.publishes.borrow_mut()
        {
            counts.forget(slot);
        }
    }

    /// A client has published something.
    pub(super) fn count_publish(&self, slot: SessionSlot, payload_bytes: usize) {
        if let Some(counts) = &mut *self.traces.publishes.borrow_mut() {
            counts.count(slot, payload_bytes);
        }
    }

    /// A message is taken in.
    #[inline]
    pub(in crate::shard) fn count_message_in(&self, message: &Message) {
        if self.traces.are_on() {
            self.note_message_in(message);
        }
    }

    #[cold]
    fn note_message_in(&self, message: &Message) {
        if !self.traces.topics.is_empty() {
            let (_, bits) = self.traces.of_topic(&message.header().topic);
            self.traces.topics.count_in(bits, message.payload().len());
        }
    }

    /// Some of the clients that have published since counting began, those with most messages.
    pub(in crate::shard) fn publishers(
        &self,
        net: &mut Net,
        scan: &PublisherScan,
    ) -> ScannedPublishers {
        let counts = self.traces.publishes.borrow();
        let Some(counts) = &*counts else {
            return ScannedPublishers { rows: Vec::new(), next: None };
        };
        let slots = counts.messages.len().min(self.sessions.slots_end());
        let end = scan.from.saturating_add(SLOTS_LOOKED_AT).min(slots);
        let mut found: Vec<(u64, usize)> = (scan.from..end)
            .map(|slot| (counts.messages[slot], slot))
            .filter(|(messages, _)| *messages > 0)
            .collect();
        found.sort_unstable_by_key(|(messages, slot)| (std::cmp::Reverse(*messages), *slot));
        found.truncate(scan.limit);
        let row = |(messages, slot): (u64, usize)| {
            let session = self.sessions.get(SessionSlot::new(slot as u32))?;
            let connection = session.connection();
            Some(PublisherRow {
                client_id: session.key().client_id.as_ref().into(),
                shard: self.id,
                user: session.access.user_name().map(str::to_owned),
                address: connection.and_then(|conn| net.peer_addr(conn)),
                messages,
                bytes: counts.bytes[slot],
            })
        };
        let rows: Vec<PublisherRow> = found.into_iter().filter_map(row).collect();
        net.charge(((end - scan.from.min(end)) / SLOTS_PER_UNIT + rows.len()) as u32);
        ScannedPublishers { rows, next: (end < slots).then_some(end) }
    }
}
