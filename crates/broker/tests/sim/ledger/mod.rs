//! What was promised and what came: the broker's contracts, checked message by message.
//!
//! The ledger knows only what clients know: when they sent something and when the answer came.
//! Between the two it is open whether the broker has acted, so that every statement has two sides:
//! what *must* have been the case and what *may* have been.

mod spans;
#[cfg(test)]
mod tests;
mod verdict;
mod wills;

use std::collections::{HashMap, HashSet};

use tacho_codec::{QoS, Version};

use crate::setup::{TOPICS, Wish, is_shared, matches};
use crate::wire::Received;

pub(crate) use spans::{Span, Subscribing};
pub(crate) use verdict::Audit;
pub(crate) use wills::{Accepted, Ending, Wills};

/// Counts what clients do and see. Of two moments the earlier one has the smaller number.
pub(crate) type Moment = u64;

pub(crate) const NEVER: Moment = Moment::MAX;

/// A message as its publisher knows it.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) publisher: usize,
    /// The publisher's session.
    pub(crate) epoch: u32,
    pub(crate) topic: usize,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    /// Bytes of its payload; a retained message without any deletes.
    pub(crate) len: usize,
    pub(crate) expiry_s: Option<u32>,
    pub(crate) is_will: bool,
    pub(crate) first_sent: Moment,
    /// The broker's acknowledgement came.
    pub(crate) done: Moment,
    pub(crate) refused: bool,
    /// How often the PUBLISH was written.
    pub(crate) sends: u32,
    /// How many messages the broker had refused for a limit when the PUBLISH was first written.
    pub(crate) refusals_before: u64,
    /// It was written again after the broker had refused some more: perhaps this one, and the
    /// answer was lost. Then what is taken is the repetition, behind newer ones that there was room
    /// for.
    pub(crate) comes_late: bool,
}

impl Message {
    /// How many messages the broker may have taken this for: QoS 1 may be taken twice.
    fn times(&self) -> u32 {
        if self.qos == QoS::AtLeastOnce { self.sends.max(1) } else { 1 }
    }

    fn is_promised(&self) -> bool {
        self.qos != QoS::AtMostOnce
            && self.done != NEVER
            && !self.refused
            && !self.is_will
            && self.len > 0
            && self.expiry_s.is_none()
    }
}

/// A client as the ledger sees it at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Viewer {
    pub(crate) client: usize,
    pub(crate) epoch: u32,
    pub(crate) version: Version,
}

/// Copies of one message that one session got, repetitions on a resume not counted.
#[derive(Clone, Copy, Debug, Default)]
struct Copies {
    all: u32,
    /// Those of QoS 1 and 2.
    assured: u32,
    /// Those of QoS 2.
    once: u32,
}

/// One publisher's messages of one QoS to one topic, as one session gets them.
type Stream = (usize, u32, usize, usize, QoS, QoS);

#[derive(Default)]
pub(crate) struct Ledger {
    now: Moment,
    /// Full queues of sessions may drop messages.
    queues_drop: bool,
    pub(crate) messages: Vec<Message>,
    spans: Vec<Span>,
    copies: HashMap<(usize, u32, u32), Copies>,
    /// Copies of a message for members of a shared subscription.
    shared_copies: HashMap<u32, u32>,
    newest: HashMap<Stream, u32>,
    /// When a member of a shared subscription lost its connection, its session or its membership.
    leaves: Vec<(Moment, usize)>,
    /// When the session or the membership of one may have ended.
    ends: Vec<(Moment, usize)>,
    /// When the broker died.
    crashes: Vec<Moment>,
    /// Sessions that the broker has in memory only.
    passing: HashSet<(usize, u32)>,
    pub(crate) wills: Wills,
}

impl Ledger {
    /// Whether full queues of sessions may drop messages.
    pub(crate) fn new(queues_drop: bool) -> Self {
        Self { queues_drop, ..Self::default() }
    }

    /// Something happens: a new moment.
    pub(crate) fn tick(&mut self) -> Moment {
        self.now += 1;
        self.now
    }

    /// The number of the next message.
    pub(crate) fn next_id(&self) -> u32 {
        self.messages.len() as u32
    }

    pub(crate) fn published(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// A PUBLISH was written after the broker had refused this number of messages.
    pub(crate) fn sent(&mut self, id: u32, refusals: u64) {
        let now = self.tick();
        let message = &mut self.messages[id as usize];
        message.first_sent = message.first_sent.min(now);
        if message.sends == 0 {
            message.refusals_before = refusals;
        }
        message.comes_late |= refusals > message.refusals_before;
        message.sends += 1;
    }

    /// PUBACK or PUBREC came.
    pub(crate) fn acknowledged(&mut self, id: u32, refused: bool) {
        let now = self.tick();
        let message = &mut self.messages[id as usize];
        message.done = message.done.min(now);
        message.refused |= refused;
    }

    /// A session gets a message, not as a repetition on a resume.
    pub(crate) fn delivered(&mut self, viewer: Viewer, id: u32, topic: &str, got: &Received) {
        let now = self.tick();
        if let Some(message) = self.messages.get_mut(id as usize).filter(|m| m.is_will) {
            // A will is not acknowledged; a delivery proves that it was published.
            message.done = message.done.min(now);
        }
        let Some(message) = self.messages.get(id as usize).cloned() else {
            panic!("{viewer:?} got a message that was never published: {got:?}");
        };
        let said = || {
            format!(
                "client {} epoch {} got message {id} {message:?}: {got:?}",
                viewer.client, viewer.epoch
            )
        };
        assert_eq!(topic, TOPICS[message.topic], "another topic: {}", said());
        assert_eq!(got.payload.len(), message.len, "another payload: {}", said());
        assert!(message.first_sent != NEVER, "it was never sent: {}", said());
        assert!(
            got.expiry_s.is_none_or(|s| message.expiry_s.is_some_and(|max| s <= max)),
            "it lives longer than it was to: {}",
            said()
        );
        let spans: Vec<Span> = self.may_match(viewer, &message).cloned().collect();
        assert!(!spans.is_empty(), "no subscription matches: {}", said());
        check_flags(viewer, &message, &spans, got, &said);
        self.check_must_flags(viewer, &message, &spans, got, &said);
        // Else it may come because its publisher repeats it, behind newer ones: the subscription
        // was not there the first time, or subscribed with QoS 0, which reached no receiver, or not
        // at all; or the broker refused it the first time, a full queue dropped it, or it expired
        // before it came.
        let was_there = spans.iter().any(|span| {
            let own = message.publisher == viewer.client;
            let wants = |wish: Wish| wish.qos != QoS::AtMostOnce && !(wish.no_local && own);
            let assured = || span.wishes(0).all(wants);
            let wanted = span.must_from < message.first_sent && message.first_sent < span.must_to;
            let lasts = || message.expiry_s.is_none() && !self.queues_drop && assured();
            wanted && !message.comes_late && (message.sends == 1 || lasts())
        });
        let copies = self.copies.entry((viewer.client, viewer.epoch, id)).or_default();
        copies.all += 1;
        copies.assured += u32::from(got.qos != QoS::AtMostOnce);
        copies.once += u32::from(got.qos == QoS::ExactlyOnce);
        let Copies { all: count, once, .. } = *copies;
        // What came before a crash may come again: each message that this one was taken for.
        let again = self.crashes_since(&message) * message.times();
        let allowed = match got.qos {
            QoS::AtMostOnce if message.qos == QoS::AtMostOnce => {
                // A will may be published again if that it was is not kept (DURABILITY.md, "What is
                // not promised").
                copies_allowed(&message, &spans) + if message.is_will { again } else { 0 }
            }
            // Those of less were sent before a crash, and before it wanted them with QoS 2.
            QoS::ExactlyOnce => copies_allowed(&message, &spans) + again.min(count - once),
            _ => copies_allowed(&message, &spans) + again,
        };
        assert!(count <= allowed, "copy {count}, {allowed} allowed: {}", said());
        if spans.iter().any(|span| is_shared(span.filter)) {
            *self.shared_copies.entry(id).or_default() += 1;
        } else if count == 1 && !got.retain && !message.is_will && was_there {
            let Viewer { client, epoch, .. } = viewer;
            let key = (client, epoch, message.publisher, message.topic, message.qos, got.qos);
            let newest = self.newest.entry(key).or_default();
            assert!(id >= *newest, "it came after {newest}: {}", said());
            *newest = id;
        }
    }

    /// The broker dies, and comes back with what it has kept.
    pub(crate) fn crashed(&mut self) {
        let now = self.tick();
        self.crashes.push(now);
        self.wills.crashed();
        for span in &mut self.spans {
            // Of a replay that was under way the rest may not come.
            span.replay_granted = false;
        }
    }

    /// A session is made that ends with its connection, or with the broker.
    pub(crate) fn passes(&mut self, client: usize, epoch: u32) {
        self.passing.insert((client, epoch));
    }

    fn crashes_since(&self, message: &Message) -> u32 {
        self.crashes.iter().filter(|crash| **crash > message.first_sent).count() as u32
    }

    /// The subscriptions of a session through which a message may come.
    fn may_match<'a>(
        &'a self,
        viewer: Viewer,
        message: &Message,
    ) -> impl Iterator<Item = &'a Span> {
        let (client, epoch) = (viewer.client, viewer.epoch);
        let (topic, first_sent) = (message.topic, message.first_sent);
        self.spans.iter().filter(move |span| {
            (span.client, span.epoch) == (client, epoch)
                && matches(span.filter, topic)
                && span.may_to > first_sent
        })
    }

    /// What follows from subscriptions that were certainly there.
    fn check_must_flags(
        &self,
        viewer: Viewer,
        message: &Message,
        spans: &[Span],
        got: &Received,
        said: &impl Fn() -> String,
    ) {
        let certain = |span: &&Span| span.covers(message.first_sent, self.now);
        let is_plain = spans.iter().all(|span| !is_shared(span.filter));
        if got.retain || message.is_will || !is_plain {
            return;
        }
        for span in spans.iter().filter(certain) {
            let wishes = || span.wishes(message.first_sent);
            let own = message.publisher == viewer.client;
            if own && wishes().any(|wish| wish.no_local) {
                continue;
            }
            let least = wishes().map(|wish| message.qos.min(wish.qos)).min();
            assert!(Some(got.qos) >= least, "below {least:?} of {span:?}: {}", said());
            assert!(
                viewer.version != Version::V5
                    || wishes().any(|w| w.id == 0 || got.subscription_ids.contains(&w.id)),
                "the identifier of {span:?} is missing: {}",
                said()
            );
        }
    }
}

/// What follows from all subscriptions that may have been there.
fn check_flags(
    viewer: Viewer,
    message: &Message,
    spans: &[Span],
    got: &Received,
    said: &impl Fn() -> String,
) {
    let wishes = || spans.iter().flat_map(|span| span.wishes(message.first_sent));
    assert!(
        wishes().any(|wish| got.qos == message.qos.min(wish.qos)),
        "a QoS that was not requested: {}",
        said()
    );
    let own = (message.publisher, message.epoch) == (viewer.client, viewer.epoch);
    assert!(
        got.retain || message.is_will || !own || wishes().any(|wish| !wish.no_local),
        "its own message in spite of No Local: {}",
        said()
    );
    let known = |id: &u32| wishes().any(|wish| wish.id == *id);
    assert!(got.subscription_ids.iter().all(known), "a foreign identifier: {}", said());
    let replayed = spans.iter().any(|span| span.replays > 0);
    let may_keep = wishes().any(|wish| wish.retain_as_published);
    if got.retain {
        assert!(message.retain && (replayed || may_keep), "RETAIN is set: {}", said());
        assert!(message.len > 0 || !replayed || may_keep, "{}", said());
    } else {
        let must = message.retain && wishes().all(|wish| wish.retain_as_published);
        assert!(!must, "RETAIN is not set: {}", said());
    }
}

/// How many copies of a message a session may get.
fn copies_allowed(message: &Message, spans: &[Span]) -> u32 {
    let plain = || spans.iter().filter(|span| !is_shared(span.filter));
    let replays: u32 = plain().map(|span| span.replays).sum();
    let subscribes: u32 = plain().map(Span::subscribes).sum();
    let by_plain = match plain().next() {
        None => 0,
        // Each SUBSCRIBE brings a retained message at most once, be it live or stored.
        Some(_) if message.retain => subscribes.min(1 + replays),
        Some(_) => 1,
    };
    let mut shared: Vec<usize> =
        spans.iter().map(|span| span.filter).filter(|&filter| is_shared(filter)).collect();
    shared.sort_unstable();
    shared.dedup();
    let again = message.times() - 1;
    // A message that a member gave back may come to it once more.
    let shared = shared.len() as u32 * if message.qos == QoS::AtLeastOnce { 3 } else { 1 };
    by_plain + u32::from(by_plain > 0) * again + shared * (1 + again)
}
