//! Retained messages: a topic has the last acknowledged one, or any that was sent later.

use std::collections::BTreeMap;

use super::{Kind, Ledger, Moment, NEVER};
use crate::cast::{RETAINED, TOPICS};

/// A retained PUBLISH as its publisher knows it.
#[derive(Clone, Copy, Debug)]
struct Write {
    id: u64,
    len: usize,
    first_sent: Moment,
    /// When its acknowledgement arrived.
    done: Moment,
}

/// By topic, the writes that no later one has certainly replaced.
#[derive(Clone, Debug, Default)]
pub(crate) struct Retained {
    writes: BTreeMap<usize, Vec<Write>>,
}

impl Retained {
    pub(super) fn sent(&mut self, id: u64, topic: usize, len: usize, now: Moment) {
        let writes = self.writes.entry(topic).or_default();
        if writes.iter().all(|write| write.id != id) {
            writes.push(Write { id, len, first_sent: now, done: NEVER });
        }
    }

    pub(super) fn acknowledged(&mut self, id: u64, topic: usize, now: Moment) {
        let writes = self.writes.entry(topic).or_default();
        if let Some(write) = writes.iter_mut().find(|write| write.id == id) {
            write.done = now;
        }
        let all = writes.clone();
        writes.retain(|write| !all.iter().any(|later| later.replaces(write)));
    }

    /// The messages that may be retained for a topic; `None` means no message.
    fn allowed(&self, topic: usize) -> Vec<Option<u64>> {
        let writes = self.writes.get(&topic).map_or(&[][..], Vec::as_slice);
        let mut allowed: Vec<Option<u64>> =
            writes.iter().map(|write| (write.len > 0).then_some(write.id)).collect();
        if writes.iter().all(|write| write.done == NEVER) {
            allowed.push(None);
        }
        allowed
    }

    /// A subscriber received this while no PUBLISH was in flight: it is the retained message.
    fn seen(&mut self, topic: usize, id: Option<u64>, now: Moment) {
        let write = match id {
            Some(id) => Write { id, len: 1, first_sent: now, done: now },
            None => Write { id: u64::MAX, len: 0, first_sent: now, done: now },
        };
        self.writes.insert(topic, vec![write]);
    }
}

impl Write {
    /// This write was certainly processed after the other one.
    const fn replaces(&self, other: &Self) -> bool {
        self.done != NEVER && other.done != NEVER && other.done < self.first_sent
    }
}

impl Ledger {
    /// Whether a new subscriber has received every retained message that it must receive.
    pub(crate) fn retained_is_complete(&self, got: &BTreeMap<usize, u64>) -> bool {
        RETAINED
            .iter()
            .all(|topic| got.contains_key(topic) || self.retained.allowed(*topic).contains(&None))
    }

    /// A new subscriber has received the retained messages while no PUBLISH was in flight.
    pub(crate) fn check_retained(&mut self, got: &BTreeMap<usize, u64>) {
        let now = self.tick();
        for topic in RETAINED {
            let id = got.get(&topic).copied();
            let allowed = self.retained.allowed(topic);
            self.totals.retained_checked += 1;
            if !allowed.contains(&id) {
                let describe = |id: Option<u64>| {
                    id.map_or_else(|| "nothing".to_owned(), |id| self.describe(id))
                };
                let want: Vec<String> = allowed.into_iter().map(describe).collect();
                let name = TOPICS[topic];
                let text = format!("{name} has {}, not {}", describe(id), want.join(" or "));
                self.findings.add(Kind::Retained, text);
            }
            self.retained.seen(topic, id, now);
        }
    }
}
