//! The retained messages that one shard owns.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_topic::{Progress, RetainedCursor, RetainedIndex, TopicFilter};

use super::totals::RetainedCounts;
use super::versions::Arrivals;
use crate::message::Message;

/// Topics visited per request.
const REQUEST_STEPS_MAX: usize = 256;
/// Largest number of messages in an answer.
const ANSWER_LEN_MAX: usize = 64;
/// Size in bytes at which an answer ends.
const ANSWER_BYTES: usize = 256 * 1024;
/// Number of removed topics kept before the first check which ones are still needed.
const REMOVED_KEPT: usize = 1_024;

/// Retained messages by topic. The newest version of a topic counts, in whatever order the
/// versions arrive.
pub(crate) struct RetainedStore {
    index: RetainedIndex<Message>,
    /// Counts what is in `index`.
    counts: RetainedCounts,
    arrivals: Arrivals,
    /// Tombstones: topics whose newest version retains no message, while an older one may still
    /// arrive.
    removed: HashMap<Arc<str>, u64, RandomState>,
    /// Number of tombstones at which the next check removes unneeded ones.
    removed_max: usize,
    /// Expiry times, in order.
    expiring: BTreeSet<(u64, Arc<str>)>,
}

/// The outcome of storing a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Retained,
    Removed,
    /// A newer version arrived before it.
    Outdated,
    /// The broker's limits do not allow it. The topic's previous message is removed, as it is no
    /// longer the last one published.
    Refused,
}

/// Whether the broker's limits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limited {
    Yes,
    No,
}

impl RetainedStore {
    pub(super) fn new(counts: RetainedCounts) -> Self {
        Self {
            index: RetainedIndex::default(),
            counts,
            arrivals: Arrivals::default(),
            removed: HashMap::default(),
            removed_max: 0,
            expiring: BTreeSet::new(),
        }
    }

    /// Takes in what was published with RETAIN, each version once.
    pub(super) fn arrive(&mut self, message: Message) -> Outcome {
        let version = message.header().retained_version;
        self.arrivals.note(version);
        let outcome = self.keep_newest(message, version, Limited::Yes);
        let is_complete = !self.removed.is_empty() && !self.arrivals.has_gap();
        if is_complete || self.removed.len() > self.removed_max {
            let arrived = self.arrivals.up_to();
            self.removed.retain(|_, removed| *removed > arrived);
            self.removed_max = (2 * self.removed.len()).max(REMOVED_KEPT);
        }
        outcome
    }

    /// Takes in what an earlier start of the broker retained: older than everything from now on.
    /// Limits count for what comes.
    pub(crate) fn restore(&mut self, message: Message) {
        self.keep_newest(message, 0, Limited::No);
    }

    fn keep_newest(&mut self, message: Message, version: u64, limited: Limited) -> Outcome {
        let topic = Arc::clone(&message.header().topic);
        let old = self.index.get(&topic);
        let old_version = old.map(|old| old.header().retained_version);
        let old_version = old_version.or_else(|| self.removed.get(&topic).copied());
        if old_version.is_some_and(|old_version| old_version > version) {
            return Outcome::Outdated;
        }
        if message.payload().is_empty() {
            // [MQTT-3.3.1-6], [MQTT-3.3.1-7]
            self.remove(&topic, version);
            return Outcome::Removed;
        }
        let old_bytes = old.map(|old| old.size_bytes() as u64);
        let bytes = message.size_bytes() as u64;
        if limited == Limited::No {
            self.counts.replace(old_bytes, bytes);
        } else if !self.counts.try_replace(old_bytes, bytes) {
            self.remove(&topic, version);
            return Outcome::Refused;
        }
        self.removed.remove(&topic);
        let expires_at_ns = message.header().expires_at_ns;
        // [MQTT-3.3.1-5]
        if let Some(old) = self.index.insert_shared(&topic, message) {
            self.forget_expiry(&old);
        }
        if expires_at_ns != u64::MAX {
            self.expiring.insert((expires_at_ns, topic));
        }
        Outcome::Retained
    }

    /// Nothing is retained for the topic any more, up to this version.
    fn remove(&mut self, topic: &Arc<str>, version: u64) {
        if let Some(old) = self.index.remove(topic) {
            self.counts.remove(old.size_bytes() as u64);
            self.forget_expiry(&old);
        }
        if version > self.arrivals.up_to() {
            self.removed.insert(Arc::clone(topic), version);
        }
    }

    fn forget_expiry(&mut self, old: &Message) {
        let header = old.header();
        if header.expires_at_ns != u64::MAX {
            self.expiring.remove(&(header.expires_at_ns, Arc::clone(&header.topic)));
        }
    }

    /// Removes what has expired, at most so many; returns their topics and versions.
    pub(super) fn expire(&mut self, now_ns: u64, count_max: usize) -> Vec<(Arc<str>, u64)> {
        let mut expired = Vec::new();
        while expired.len() < count_max {
            let due = self.expiring.first().filter(|(expires_at_ns, _)| *expires_at_ns <= now_ns);
            let Some((_, topic)) = due.cloned() else { break };
            let version = self.index.get(&topic).map_or(0, |m| m.header().retained_version);
            self.remove(&topic, version);
            expired.push((topic, version));
        }
        expired
    }

    /// The time of the next expiry.
    pub(super) fn next_expiry_ns(&self) -> Option<u64> {
        self.expiring.first().map(|&(expires_at_ns, _)| expires_at_ns)
    }

    /// Whether all versions up to this one have arrived.
    pub(super) fn has_arrived(&self, version: u64) -> bool {
        self.arrivals.up_to() >= version
    }

    /// The next messages for a replay, and the position at which it continues, unless it ends here.
    /// Omits messages routed with `visible_version` of the route map or later: they arrived live.
    /// Subtracts the visited topics from `budget`.
    pub(super) fn read(
        &self,
        filter: &TopicFilter,
        cursor: RetainedCursor,
        visible_version: u64,
        now_ns: u64,
        budget: &mut usize,
    ) -> (Vec<Message>, Option<RetainedCursor>) {
        let len_max = ANSWER_LEN_MAX;
        self.read_up_to(len_max, (filter, cursor), visible_version, now_ns, budget)
    }

    /// The same with another limit on the number of messages, at least 1.
    pub(super) fn read_up_to(
        &self,
        len_max: usize,
        (filter, mut cursor): (&TopicFilter, RetainedCursor),
        visible_version: u64,
        now_ns: u64,
        budget: &mut usize,
    ) -> (Vec<Message>, Option<RetainedCursor>) {
        let mut messages = Vec::new();
        let mut bytes = 0;
        let found = |_: &str, message: &Message| {
            if !message.is_expired(now_ns) && message.header().routed_version < visible_version {
                bytes += message.size_bytes();
                messages.push(message.clone());
            }
            messages.len() < len_max && bytes < ANSWER_BYTES
        };
        let mut steps = REQUEST_STEPS_MAX.min(*budget);
        let given = steps;
        let progress = self.index.next_while(filter, &mut cursor, &mut steps, found);
        *budget -= given - steps;
        (messages, (progress == Progress::More).then_some(cursor))
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.counts.bytes()
    }

    pub(super) fn get(&self, topic: &str) -> Option<&Message> {
        self.index.get(topic)
    }

    #[cfg(test)]
    pub(super) fn removed_len(&self) -> usize {
        self.removed.len()
    }
}
