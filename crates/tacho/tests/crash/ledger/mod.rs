//! What was promised and what came, message by message.
//!
//! The ledger knows only what clients know: when they sent something and when the answer came.
//! Between the two it is open whether the broker has acted, so that statements have two sides:
//! what *must* have been the case and what *may* have been. Nothing here panics: whatever breaks a
//! promise becomes a [`Finding`], and the run goes on.

mod findings;
mod retained;
mod spans;
mod verdict;
mod wills;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};

use tacho_codec::QoS;

use crate::cast::{RETAINED, TOPICS, is_shared, matches};
use crate::wire::{self, Received};

pub(crate) use findings::{Findings, Kind};
pub(crate) use retained::Retained;
pub(crate) use spans::Span;
pub(crate) use wills::{Ending, Wills};

/// Counts what clients do and see. Of two moments the earlier one has the smaller number.
pub(crate) type Moment = u64;

pub(crate) const NEVER: Moment = Moment::MAX;

/// A message as its publisher knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) publisher: usize,
    pub(crate) topic: usize,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    /// Bytes of its payload; a retained message without any deletes.
    pub(crate) len: usize,
    pub(crate) is_will: bool,
    first_sent: Moment,
    /// PUBACK or PUBREC came.
    done: Moment,
    refused: bool,
    /// How often the PUBLISH was written.
    sends: u32,
    sent_ms: u64,
    done_ms: u64,
}

impl Message {
    pub(crate) const fn new(publisher: usize, topic: usize, qos: QoS) -> Self {
        Self {
            publisher,
            topic,
            qos,
            retain: false,
            len: wire::PAYLOAD_LEN_MIN,
            is_will: false,
            first_sent: NEVER,
            done: NEVER,
            refused: false,
            sends: 0,
            sent_ms: 0,
            done_ms: 0,
        }
    }

    /// It has to arrive wherever a subscription certainly was.
    fn is_promised(&self) -> bool {
        self.done != NEVER && !self.refused && !self.is_will && self.len > 0
    }

    /// How many messages the broker may have taken this for: QoS 1 may be taken twice.
    fn times(&self) -> u32 {
        if self.qos == QoS::AtLeastOnce { self.sends.max(1) } else { 1 }
    }
}

/// One session of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Viewer {
    pub(crate) client: usize,
    pub(crate) epoch: u32,
}

/// What one session got of one message.
#[derive(Clone, Copy, Debug, Default)]
struct Copies {
    count: u32,
    last_ms: u64,
}

/// One publisher's messages of one QoS to one topic, as one session gets them.
type Stream = (Viewer, usize, usize, QoS, QoS);

/// The figures of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) published: u64,
    pub(crate) acknowledged: u64,
    pub(crate) delivered: u64,
    /// Messages that one session got again at QoS 1.
    pub(crate) again_qos_1: u64,
    pub(crate) wills_seen: u64,
    pub(crate) retained_checked: u64,
    pub(crate) audits: u64,
}

#[derive(Default)]
pub(crate) struct Ledger {
    now: Moment,
    /// Milliseconds since the run began.
    pub(crate) now_ms: u64,
    messages: VecDeque<Message>,
    /// The number of the first one that is kept.
    first_id: u64,
    /// Those below are settled: an audit has seen what became of them.
    settled: u64,
    /// By a number that clients know while a request is open.
    spans: BTreeMap<usize, Span>,
    spans_made: usize,
    copies: HashMap<(Viewer, u64), Copies>,
    shared_copies: HashMap<u64, u32>,
    newest: HashMap<Stream, u64>,
    pub(crate) wills: Wills,
    pub(crate) retained: Retained,
    pub(crate) findings: Findings,
    pub(crate) totals: Totals,
    /// Names of clients.
    pub(crate) names: Vec<String>,
    /// When the broker was killed, in milliseconds.
    pub(crate) kills_ms: Vec<u64>,
}

impl Ledger {
    /// Something happens: a new moment.
    fn tick(&mut self) -> Moment {
        self.now += 1;
        self.now
    }

    /// A message that is to be sent; returns its number.
    pub(crate) fn published(&mut self, message: Message) -> u64 {
        self.messages.push_back(message);
        self.totals.published += 1;
        self.next_id() - 1
    }

    fn next_id(&self) -> u64 {
        self.first_id + self.messages.len() as u64
    }

    pub(crate) fn message(&self, id: u64) -> Option<&Message> {
        self.messages.get(usize::try_from(id.checked_sub(self.first_id)?).ok()?)
    }

    fn message_mut(&mut self, id: u64) -> Option<&mut Message> {
        self.messages.get_mut(usize::try_from(id.checked_sub(self.first_id)?).ok()?)
    }

    /// Messages since the last audit.
    pub(crate) fn unsettled(&self) -> u64 {
        self.next_id() - self.settled
    }

    /// A PUBLISH, or the CONNECT with a will, was written.
    pub(crate) fn sent(&mut self, id: u64) {
        let (now, now_ms) = (self.tick(), self.now_ms);
        let Some(message) = self.message_mut(id) else { return };
        if message.first_sent == NEVER {
            (message.first_sent, message.sent_ms) = (now, now_ms);
        }
        message.sends += 1;
        let message = *message;
        if message.retain {
            self.retained.sent(id, message.topic, message.len, now);
        }
    }

    /// PUBACK or PUBREC came, with success or not.
    pub(crate) fn acknowledged(&mut self, id: u64, refused: bool) {
        let (now, now_ms) = (self.tick(), self.now_ms);
        let Some(message) = self.message_mut(id) else { return };
        if message.done != NEVER {
            return;
        }
        (message.done, message.done_ms, message.refused) = (now, now_ms, refused);
        let message = *message;
        if refused {
            let text = format!("{} was refused", self.tell(id));
            self.findings.add(Kind::Refused, text);
            return;
        }
        self.totals.acknowledged += 1;
        if message.retain {
            self.retained.acknowledged(id, message.topic, now);
        }
    }

    /// A session gets a message, not as a repetition that its own machine recognises.
    pub(crate) fn delivered(&mut self, viewer: Viewer, got: &Received) {
        self.tick();
        self.totals.delivered += 1;
        if got.payload.is_empty() && RETAINED.iter().any(|&topic| TOPICS[topic] == got.topic) {
            // A deletion passes by.
            return;
        }
        let Some(id) = wire::number(&got.payload) else {
            let text = format!("{} got a payload that nobody sent", self.name(viewer.client));
            return self.findings.add(Kind::Damaged, text);
        };
        if self.wills.knows(id) {
            return self.will_seen(id);
        }
        if id < self.first_id {
            return self.came_late(viewer, id, got);
        }
        let Some(message) = self.message(id).copied() else {
            let text = format!("{} got message {id} before it was", self.name(viewer.client));
            return self.findings.add(Kind::Damaged, text);
        };
        if !self.is_whole(&message, id, got) {
            let text = format!("{} got another {}", self.name(viewer.client), self.tell(id));
            return self.findings.add(Kind::Damaged, text);
        }
        if got.retain {
            // As it was stored; that is for the audit.
            return;
        }
        self.check_spans(viewer, &message, id);
        self.check_copies(viewer, &message, id, got);
    }

    fn is_whole(&self, message: &Message, id: u64, got: &Received) -> bool {
        got.topic == TOPICS[message.topic]
            && got.payload == wire::payload(id, message.len)
            && got.qos <= message.qos
            && message.first_sent != NEVER
    }

    /// A message that was settled two audits ago comes once more.
    fn came_late(&mut self, viewer: Viewer, id: u64, got: &Received) {
        if got.qos == QoS::AtLeastOnce || got.retain {
            self.totals.again_qos_1 += u64::from(!got.retain);
            return;
        }
        let who = self.name(viewer.client);
        let text = format!("{who} got message {id} ({:?}) again, long after it", got.qos);
        self.findings.add(Kind::Twice, text);
    }

    /// Was there a subscription through which it may come?
    fn check_spans(&mut self, viewer: Viewer, message: &Message, id: u64) {
        let allowed = self.spans.values().any(|span| {
            span.viewer == viewer
                && matches(span.filter, message.topic)
                && span.may_to > message.first_sent
                // What was acknowledged before can only come from a group's queue.
                && (message.done > span.may_from || is_shared(span.filter))
        });
        if !allowed {
            let who = self.name(viewer.client);
            let text = format!("{who} was not subscribed to {}", self.tell(id));
            self.findings.add(Kind::Unasked, text);
        }
    }

    fn check_copies(&mut self, viewer: Viewer, message: &Message, id: u64, got: &Received) {
        let now_ms = self.now_ms;
        let copies = self.copies.entry((viewer, id)).or_default();
        let before = *copies;
        (copies.count, copies.last_ms) = (before.count + 1, now_ms);
        if before.count > 0 {
            self.totals.again_qos_1 += u64::from(got.qos == QoS::AtLeastOnce);
        }
        let by_group = self.spans.values().any(|span| {
            span.viewer == viewer && is_shared(span.filter) && matches(span.filter, message.topic)
        });
        let count = if by_group {
            let all = self.shared_copies.entry(id).or_default();
            *all += 1;
            *all
        } else {
            before.count + 1
        };
        // With QoS 1 there may always be one more.
        if got.qos != QoS::AtLeastOnce && count > message.times() {
            let (who, tale) = (self.name(viewer.client), self.tell(id));
            let before = self.moment(before.last_ms);
            let text = format!("{who} got {tale} as {:?}: copy {count}, before {before}", got.qos);
            self.findings.add(Kind::Twice, text);
        } else if before.count == 0 && !by_group {
            self.check_order(viewer, message, id, got.qos);
        }
    }

    /// The first copies of a publisher's messages come in their order.
    fn check_order(&mut self, viewer: Viewer, message: &Message, id: u64, qos: QoS) {
        let first_sent = message.first_sent;
        // Else it may come because its publisher repeats it, behind newer ones.
        let was_there = self.spans.values().any(|span| {
            span.viewer == viewer
                && matches(span.filter, message.topic)
                && span.must_from < first_sent
                && span.may_to == NEVER
        });
        if !was_there {
            return;
        }
        let key = (viewer, message.publisher, message.topic, message.qos, qos);
        let newest = self.newest.entry(key).or_insert(id);
        let before = *newest;
        *newest = id.max(before);
        if id < before {
            let who = self.name(viewer.client);
            let text = format!("{who} got {} after {}", self.tell(id), self.tell(before));
            self.findings.add(Kind::Disorder, text);
        }
    }

    fn name(&self, client: usize) -> &str {
        self.names.get(client).map_or("a stranger", String::as_str)
    }

    /// A message and its fate, for people.
    fn tell(&self, id: u64) -> String {
        let Some(message) = self.message(id) else { return format!("message {id}") };
        let Message { publisher, topic, qos, sends, .. } = *message;
        let mut text = format!("message {id} of {} to {}", self.name(publisher), TOPICS[topic]);
        text += &format!(" ({qos:?}{}", if message.retain { ", retained" } else { "" });
        text += &format!(", sent {sends} times, first {}", self.moment(message.sent_ms));
        if message.done == NEVER {
            return text + ", never acknowledged)";
        }
        text + &format!(", acknowledged {})", self.moment(message.done_ms))
    }

    /// A time, as seconds and as a place between kills.
    fn moment(&self, ms: u64) -> String {
        let kills = self.kills_ms.iter().filter(|kill| **kill <= ms).count();
        format!("at {}.{:03} s after kill {kills}", ms / 1000, ms % 1000)
    }
}
