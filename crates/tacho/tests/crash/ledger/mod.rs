//! What was acknowledged and what arrived, message by message.
//!
//! The ledger knows only what clients know: when they sent something and when the answer came.
//! Between the two the state of the broker is unknown, so a statement has two sides: what *must*
//! be the case and what *may* be. Nothing here panics: a violation is recorded in [`Findings`], and
//! the run continues.

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

/// Logical time: the number of an action or observation of a client.
pub(crate) type Moment = u64;

pub(crate) const NEVER: Moment = Moment::MAX;

/// A message as its publisher knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) publisher: usize,
    pub(crate) topic: usize,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    /// Payload length; a retained message with an empty payload deletes.
    pub(crate) len: usize,
    pub(crate) is_will: bool,
    first_sent: Moment,
    /// When PUBACK or PUBREC arrived.
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

    /// It must be delivered to every subscription that certainly existed.
    fn is_promised(&self) -> bool {
        self.done != NEVER && !self.refused && !self.is_will && self.len > 0
    }

    /// Messages that the broker may have made of this one: QoS 1 is accepted again on each resend.
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

/// Deliveries of one message to one session.
#[derive(Clone, Copy, Debug, Default)]
struct Copies {
    count: u32,
    last_ms: u64,
}

/// The messages of one publisher, topic and QoS, as delivered to one session at one QoS.
type Stream = (Viewer, usize, usize, QoS, QoS);

/// The figures of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) published: u64,
    pub(crate) acknowledged: u64,
    pub(crate) delivered: u64,
    /// Duplicates at QoS 1.
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
    /// The number of the first message kept.
    first_id: u64,
    /// Messages below this number were settled by an audit.
    settled: u64,
    /// By a number that clients hold while a request is open.
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
    /// Advances the logical time.
    fn tick(&mut self) -> Moment {
        self.now += 1;
        self.now
    }

    /// Registers a message to be sent; returns its number.
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

    /// PUBACK or PUBREC arrived, with success or an error.
    pub(crate) fn acknowledged(&mut self, id: u64, refused: bool) {
        let (now, now_ms) = (self.tick(), self.now_ms);
        let Some(message) = self.message_mut(id) else { return };
        if message.done != NEVER {
            return;
        }
        (message.done, message.done_ms, message.refused) = (now, now_ms, refused);
        let message = *message;
        if refused {
            let text = format!("{} was refused", self.describe(id));
            self.findings.add(Kind::Refused, text);
            return;
        }
        self.totals.acknowledged += 1;
        if message.retain {
            self.retained.acknowledged(id, message.topic, now);
        }
    }

    /// A session received a message that its state machine does not recognise as a duplicate.
    pub(crate) fn delivered(&mut self, viewer: Viewer, got: &Received) {
        self.tick();
        self.totals.delivered += 1;
        if got.payload.is_empty() && RETAINED.iter().any(|&topic| TOPICS[topic] == got.topic) {
            // The deletion of a retained message.
            return;
        }
        let Some(id) = wire::number(&got.payload) else {
            let text =
                format!("{} received a payload that was never sent", self.name(viewer.client));
            return self.findings.add(Kind::Damaged, text);
        };
        if self.wills.knows(id) {
            return self.will_seen(id);
        }
        if id < self.first_id {
            return self.came_late(viewer, id, got);
        }
        let Some(message) = self.message(id).copied() else {
            let text = format!(
                "{} received message {id} before it was published",
                self.name(viewer.client)
            );
            return self.findings.add(Kind::Damaged, text);
        };
        if !self.is_whole(&message, id, got) {
            let text = format!(
                "{} received an altered copy of {}",
                self.name(viewer.client),
                self.describe(id)
            );
            return self.findings.add(Kind::Damaged, text);
        }
        if got.retain {
            // A stored message; the audit checks these.
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

    /// A message that was settled two audits ago arrived again.
    fn came_late(&mut self, viewer: Viewer, id: u64, got: &Received) {
        if got.qos == QoS::AtLeastOnce || got.retain {
            self.totals.again_qos_1 += u64::from(!got.retain);
            return;
        }
        let client = self.name(viewer.client);
        let text =
            format!("{client} received message {id} ({:?}) again, after two audits", got.qos);
        self.findings.add(Kind::Twice, text);
    }

    /// Checks that a subscription may have caused the delivery.
    fn check_spans(&mut self, viewer: Viewer, message: &Message, id: u64) {
        let allowed = self.spans.values().any(|span| {
            span.viewer == viewer
                && matches(span.filter, message.topic)
                && span.may_to > message.first_sent
                // A message acknowledged earlier can only come from the queue of a shared group.
                && (message.done > span.may_from || is_shared(span.filter))
        });
        if !allowed {
            let client = self.name(viewer.client);
            let text = format!("{client} was not subscribed to {}", self.describe(id));
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
        // QoS 1 allows any number of copies.
        if got.qos != QoS::AtLeastOnce && count > message.times() {
            let (client, message) = (self.name(viewer.client), self.describe(id));
            let before = self.moment(before.last_ms);
            let text = format!(
                "{client} received copy {count} of {message} at {:?}, the last {before}",
                got.qos
            );
            self.findings.add(Kind::Twice, text);
        } else if before.count == 0 && !by_group {
            self.check_order(viewer, message, id, got.qos);
        }
    }

    /// Checks that the first copies of a publisher's messages arrive in order.
    fn check_order(&mut self, viewer: Viewer, message: &Message, id: u64, qos: QoS) {
        let first_sent = message.first_sent;
        // Otherwise a resend by the publisher may be delivered after newer messages.
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
            let client = self.name(viewer.client);
            let text =
                format!("{client} received {} after {}", self.describe(id), self.describe(before));
            self.findings.add(Kind::Disorder, text);
        }
    }

    fn name(&self, client: usize) -> &str {
        self.names.get(client).map_or("an unknown client", String::as_str)
    }

    /// A message and its state, as text.
    fn describe(&self, id: u64) -> String {
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

    /// A time in seconds, with the number of kills before it.
    fn moment(&self, ms: u64) -> String {
        let kills = self.kills_ms.iter().filter(|kill| **kill <= ms).count();
        format!("at {}.{:03} s after kill {kills}", ms / 1000, ms % 1000)
    }
}
