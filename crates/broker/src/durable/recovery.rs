//! Collects the sessions, retained messages and queues of shared subscriptions from the journal, in
//! one pass before any client is served. Messages stay on disk, except retained messages, wills and
//! messages in the queues of shared subscriptions.

use std::collections::BTreeMap;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_codec::PacketId;
use tacho_journal::{MessageId, QueueId, Visitor};
use tacho_session::WillState;
use tacho_session::server::{ExchangeStage, Restored, RestoredExchange};
use tacho_topic::{Filter, SharedFilter};

use super::entry::{EntryMeta, EntryStage};
use super::keys::{self, Connectedness, Key, SessionRecord, WillRecord};
use super::open;
use super::{WallClock, body, first_seq};
use crate::delivery::{Body, Copy, GroupRef, NO_GROUP};
use crate::message::Message;
use crate::subscription::SubscriptionOptions;

/// What the journal contains, by queue.
#[derive(Default)]
pub(crate) struct Found {
    /// Number of earlier starts.
    pub(crate) starts: u64,
    queues: BTreeMap<QueueId, FoundQueue>,
    groups: HashMap<QueueId, SharedFilter, RandomState>,
    pub(crate) retained: Vec<Message>,
    pub(crate) open: Vec<OpenMessage>,
    /// Records of an unknown format, or that refer to missing ones.
    pub(crate) lost: u64,
}

/// The content of a queue: of a session, or of a shared subscription.
#[derive(Default)]
struct FoundQueue {
    session: Option<SessionRecord>,
    subscriptions: Vec<(Filter, SubscriptionOptions)>,
    inbound: Vec<PacketId>,
    will: Option<(WillRecord, Message)>,
    entries: Vec<FoundEntry>,
}

struct FoundEntry {
    seq: u64,
    /// `None` once its message is no longer needed.
    message: Option<MessageId>,
    stage: EntryStage,
    meta: EntryMeta,
}

/// A message whose distribution is not finished.
pub(crate) struct OpenMessage {
    pub(crate) message: Message,
    /// For a retained message: the version of the route map that it was routed with. Subscriptions
    /// that became visible later get it from a replay.
    pub(crate) routed: Option<u64>,
    /// Queues of sessions and of shared subscriptions that have or had it.
    pub(crate) served: Vec<QueueId>,
}

/// A session to restore.
pub(crate) struct FoundSession {
    pub(crate) record: SessionRecord,
    pub(crate) queue: QueueId,
    /// The record of its will; the message is in `restored`.
    pub(crate) will: Option<WillRecord>,
    pub(crate) subscriptions: Vec<(Filter, SubscriptionOptions)>,
    pub(crate) restored: Restored<Copy>,
}

/// A shared subscription and its queued messages.
pub(crate) struct FoundGroup {
    pub(crate) filter: SharedFilter,
    pub(crate) queue: QueueId,
    /// In order, with their sequence numbers.
    pub(crate) waiting: Vec<(u64, MessageId)>,
    /// The next sequence number.
    pub(crate) next_seq: u64,
}

impl FoundGroup {
    fn new(
        filter: SharedFilter,
        queue: QueueId,
        first_seq: u64,
        waiting: Vec<(u64, MessageId)>,
    ) -> Self {
        let next_seq = waiting.last().map_or(first_seq, |(last, _)| first_seq.max(last + 1));
        Self { filter, queue, waiting, next_seq }
    }
}

/// Collects the records of the journal.
pub(crate) struct Collector {
    pub(crate) found: Found,
    pub(crate) wall: WallClock,
}

impl Collector {
    pub(crate) fn new(wall: WallClock) -> Self {
        Self { found: Found::default(), wall }
    }

    fn take_key(
        &mut self,
        queue: QueueId,
        key: &[u8],
        value: &[u8],
        message: Option<(MessageId, &[u8])>,
    ) -> Option<()> {
        let wall = self.wall;
        let message = || {
            let (id, bytes) = message?;
            body::decode(bytes, wall, id)
        };
        let found = &mut self.found;
        match Key::parse(key)? {
            Key::Starts => found.starts = keys::decode_starts(value)?,
            Key::Retained(_) => found.retained.push(message()?),
            Key::Group(text) => {
                let Ok(Filter::Shared(filter)) = Filter::parse(text) else { return None };
                found.groups.insert(keys::decode_queue(value)?, filter);
            }
            Key::Session => {
                let record = SessionRecord::decode(value)?;
                found.queues.entry(queue).or_default().session = Some(record);
            }
            Key::Subscription(text) => {
                let subscription = (Filter::parse(text).ok()?, keys::decode_options(value)?);
                found.queues.entry(queue).or_default().subscriptions.push(subscription);
            }
            Key::Inbound(id) => found.queues.entry(queue).or_default().inbound.push(id),
            Key::Will => {
                let will = (WillRecord::decode(value)?, message()?);
                found.queues.entry(queue).or_default().will = Some(will);
            }
        }
        Some(())
    }

    fn take_entry(
        &mut self,
        queue: QueueId,
        seq: u64,
        message: Option<MessageId>,
        state: u32,
        meta: &[u8],
    ) -> Option<()> {
        let entry = FoundEntry {
            seq,
            message,
            stage: EntryStage::decode(state)?,
            meta: EntryMeta::decode(meta, self.wall)?,
        };
        self.found.queues.entry(queue).or_default().entries.push(entry);
        Some(())
    }
}

impl Visitor for Collector {
    fn key(
        &mut self,
        queue: QueueId,
        key: &[u8],
        _version: u64,
        value: &[u8],
        message: Option<(MessageId, &[u8])>,
    ) {
        if self.take_key(queue, key, value, message).is_none() {
            self.found.lost += 1;
        }
    }

    fn entry(
        &mut self,
        queue: QueueId,
        seq: u64,
        message: Option<MessageId>,
        state: u32,
        meta: &[u8],
    ) {
        if self.take_entry(queue, seq, message, state, meta).is_none() {
            self.found.lost += 1;
        }
    }

    fn open(&mut self, id: MessageId, bytes: &[u8], meta: &[u8], served: &[QueueId]) {
        match body::decode(bytes, self.wall, id).zip(open::decode(meta)) {
            Some((message, routed)) => {
                self.found.open.push(OpenMessage { message, routed, served: served.to_vec() });
            }
            None => self.found.lost += 1,
        }
    }
}

/// Sessions and groups made of the collected queues.
pub(crate) struct Sorted {
    pub(crate) sessions: Vec<FoundSession>,
    pub(crate) groups: Vec<FoundGroup>,
    /// Queues without a session or group.
    pub(crate) orphans: Vec<QueueId>,
}

impl Found {
    /// Makes sessions and groups of the queues. The group of a message is the queue of its shared
    /// subscription.
    pub(crate) fn sort(&mut self, now_ns: u64, wall: WallClock) -> Sorted {
        let first_seq = first_seq(self.starts + 1);
        let mut sorted = Sorted { sessions: Vec::new(), groups: Vec::new(), orphans: Vec::new() };
        let mut by_client: HashMap<_, usize, RandomState> = HashMap::default();
        for (queue, mut found) in std::mem::take(&mut self.queues) {
            found.entries.sort_by_key(|entry| entry.seq);
            if let Some(filter) = self.groups.remove(&queue) {
                let waiting = found.entries.iter();
                let waiting = waiting.filter_map(|entry| Some((entry.seq, entry.message?)));
                let waiting = waiting.collect();
                sorted.groups.push(FoundGroup::new(filter, queue, first_seq, waiting));
                continue;
            }
            let Some(record) = found.session.take() else {
                sorted.orphans.push(queue);
                continue;
            };
            let client = record.key.clone();
            let session = found.into_session(record, (queue, first_seq), now_ns, wall);
            // Queues are visited in the order of their creation. Of two sessions of one client, the
            // older one was about to be removed.
            match by_client.get(&client) {
                Some(&index) => {
                    let older = std::mem::replace(&mut sorted.sessions[index], session);
                    sorted.orphans.push(older.queue);
                }
                None => {
                    by_client.insert(client, sorted.sessions.len());
                    sorted.sessions.push(session);
                }
            }
        }
        // Shared subscriptions without queued messages, in an order that is always the same.
        let mut groups: Vec<_> = self.groups.drain().collect();
        groups.sort_unstable_by_key(|(queue, _)| *queue);
        for (queue, filter) in groups {
            let waiting = Vec::new();
            sorted.groups.push(FoundGroup::new(filter, queue, first_seq, waiting));
        }
        sorted
    }
}

impl FoundQueue {
    fn into_session(
        self,
        record: SessionRecord,
        (queue, first_seq): (QueueId, u64),
        now_ns: u64,
        wall: WallClock,
    ) -> FoundSession {
        let ends_at_ns = match record.state {
            // The expiry interval starts now: how long the broker was down is unknown.
            Connectedness::Connected => None,
            Connectedness::EndsAt { unix_ns } => Some(wall.from_unix(unix_ns)),
        };
        let will_record = self.will.as_ref().map(|(record, _)| *record);
        let will_at_ns = will_record.and_then(|will| will.due_unix_ns);
        let will = self.will.map(|(will, message)| WillState {
            message: Copy { message: Body::Here(message), group: NO_GROUP },
            delay_s: will.delay_s,
        });
        let mut restored = Restored {
            now_ns,
            expiry_s: record.expiry_s,
            ends_at_ns,
            will,
            will_at_ns: will_at_ns.map(|unix_ns| wall.from_unix(unix_ns)),
            next_seq: self.entries.last().map_or(first_seq, |last| first_seq.max(last.seq + 1)),
            exchanges: Vec::new(),
            queued: Vec::new(),
            inbound: self.inbound,
        };
        for FoundEntry { seq, message, stage, meta } in self.entries {
            let group = meta.group.map_or(NO_GROUP, |queue| GroupRef(queue.get()));
            let delivery =
                message.map(|id| meta.delivery(Copy { message: Body::Stored(id), group }));
            let (packet_id, stage) = match stage {
                EntryStage::Queued => {
                    restored.queued.extend(delivery.map(|delivery| (seq, delivery)));
                    continue;
                }
                EntryStage::Sent(packet_id) => (packet_id, ExchangeStage::Sent),
                EntryStage::Released(packet_id) => (packet_id, ExchangeStage::Released),
            };
            restored.exchanges.push(RestoredExchange { seq, packet_id, stage, delivery });
        }
        let subscriptions = self.subscriptions;
        FoundSession { record, queue, will: will_record, subscriptions, restored }
    }
}
