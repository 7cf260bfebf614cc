//! What must have arrived once everything is calm.

use std::collections::{BTreeMap, BTreeSet};

use tacho_codec::QoS;

use super::{Ledger, Message, NEVER, Span};
use crate::setup::{FILTERS, RETAINED, WILL, is_shared, matches};

/// The expected deliveries, each once.
type Missing = BTreeSet<String>;

/// What the run knows at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audit {
    /// Each client's present session.
    pub(crate) epochs: Vec<u32>,
    /// The client that sees all wills.
    pub(crate) warden: usize,
    /// The retained messages as a new subscriber gets them: topic to message.
    pub(crate) retained: BTreeMap<usize, u32>,
    /// Messages of QoS 1 and 2 that the broker says it has dropped at a limit.
    pub(crate) dropped: u64,
    /// Messages of QoS 0 that it has dropped.
    pub(crate) dropped_qos_0: u64,
    /// Some messages were not retained for a limit.
    pub(crate) retained_refused: bool,
}

impl Ledger {
    /// Panics if a promise was broken.
    pub(crate) fn check(&self, audit: &Audit) {
        let mut missing = Missing::default();
        self.check_plain(audit, &mut missing);
        self.check_shared(audit, &mut missing);
        self.check_retained(audit, &mut missing);
        let count = missing.len() as u64;
        assert!(
            count <= audit.dropped,
            "{count} messages are missing, {} were dropped and counted: {}",
            audit.dropped,
            missing.into_iter().collect::<Vec<_>>().join("\n")
        );
        let warden = (audit.warden, audit.epochs[audit.warden]);
        let copies = |id| self.copies.get(&(warden.0, warden.1, id)).map_or(0, |c| c.all);
        let wills = self.wills.verdict(copies, self.now);
        let dropped = audit.dropped + audit.dropped_qos_0;
        assert!(wills <= dropped, "{wills} wills are missing, {dropped} messages were dropped");
    }

    fn promised(&self) -> impl Iterator<Item = (u32, &Message)> {
        let messages = self.messages.iter().enumerate();
        messages.filter(|(_, message)| message.is_promised()).map(|(id, m)| (id as u32, m))
    }

    /// The sessions that live still: those subscriptions that were never put in question.
    fn lasting<'a>(&'a self, audit: &'a Audit) -> impl Iterator<Item = &'a Span> {
        self.spans.iter().filter(|span| {
            span.must_to == NEVER
                && span.must_from != NEVER
                && audit.epochs.get(span.client) == Some(&span.epoch)
        })
    }

    fn check_plain(&self, audit: &Audit, missing: &mut Missing) {
        for span in self.lasting(audit).filter(|span| !is_shared(span.filter)) {
            for (id, message) in self.promised() {
                let wanted = matches(span.filter, message.topic)
                    && span.must_from < message.first_sent
                    && is_wanted(span, message);
                let key = (span.client, span.epoch, id);
                if wanted && self.copies.get(&key).is_none_or(|copies| copies.assured == 0) {
                    missing.insert(format!("{id} {message:?} for client {}", span.client));
                }
            }
        }
    }

    fn check_shared(&self, audit: &Audit, missing: &mut Missing) {
        for (id, message) in self.messages.iter().enumerate() {
            let id = id as u32;
            let filter = (0..FILTERS.len()).find(|&f| is_shared(f) && matches(f, message.topic));
            let Some(filter) = filter else { continue };
            let qos = |wanted: fn(QoS) -> bool| {
                move |span: &&Span| span.wishes(0).all(|wish| wanted(wish.qos))
            };
            let members: Vec<&Span> = self.spans.iter().filter(|s| s.filter == filter).collect();
            let copies = self.shared_copies.get(&id).copied().unwrap_or(0);
            let left = |l: &&(u64, usize)| l.1 == filter && l.0 > message.first_sent;
            let leaves = self.leaves.iter().filter(left).count() as u32;
            let exact = message.qos == QoS::ExactlyOnce
                && members.iter().all(qos(|qos| qos == QoS::ExactlyOnce));
            let allowed = match (message.qos, exact) {
                (QoS::AtMostOnce, _) | (_, true) => message.times(),
                _ => message.times() + leaves + self.crashes_since(message),
            };
            assert!(
                copies <= allowed,
                "{id} {message:?} came to {copies} members, {leaves} left meanwhile"
            );
            let stays = self
                .lasting(audit)
                .any(|span| span.filter == filter && span.must_from < message.first_sent);
            let assured = members.iter().all(qos(|qos| qos != QoS::AtMostOnce));
            // What a session of QoS 2 had begun to get ends with it [MQTT-4.8.2-5].
            let ended = |end: &(u64, usize)| end.1 == filter && end.0 > message.first_sent;
            // One in memory ends with the broker.
            let is_begun = |span: &Span| span.passing && !qos(|qos| qos != QoS::ExactlyOnce)(&span);
            let died = self.crashes_since(message) > 0 && members.iter().copied().any(is_begun);
            let may_end = message.qos == QoS::ExactlyOnce && (died || self.ends.iter().any(ended));
            if message.is_promised() && stays && assured && !may_end && copies == 0 {
                missing.insert(format!("{id} {message:?} for a member of {}", FILTERS[filter]));
            }
        }
    }

    /// The last retained message of a topic wins, and every subscriber has it.
    fn check_retained(&self, audit: &Audit, missing: &mut Missing) {
        for topic in RETAINED.into_iter().chain([WILL]) {
            let of_topic = |m: &&Message| m.topic == topic && m.retain && m.first_sent != NEVER;
            let all: Vec<&Message> = self.messages.iter().filter(of_topic).collect();
            if all.iter().any(|m| m.expiry_s.is_some()) {
                continue;
            }
            // What came with QoS 0 is not safe from a crash. No client waits for the commit of a
            // will: that a client has seen it does not mean that it is safe.
            let is_safe = |m: &Message| match m.is_will {
                true => self.crashes_since(m) == 0,
                false => m.qos != QoS::AtMostOnce || self.crashes.is_empty(),
            };
            let is_certain = |m: &&&Message| m.done != NEVER && !m.refused && is_safe(m);
            let certain = || all.iter().filter(is_certain);
            // A will below QoS 2 may come again after a crash, behind newer ones.
            let comes_again =
                |m: &Message| m.is_will && m.qos != QoS::ExactlyOnce && self.crashes_since(m) > 0;
            let is_past =
                |m: &Message| !comes_again(m) && certain().any(|later| m.done < later.first_sent);
            let Some(&id) = audit.retained.get(&topic) else {
                let must = !audit.retained_refused
                    && certain().next().is_some()
                    && all.iter().filter(|m| !is_past(m)).all(|m| m.len > 0);
                assert!(!must, "nothing is retained for topic {topic}, but should be: {all:?}");
                continue;
            };
            let message = &self.messages[id as usize];
            assert!(message.topic == topic && message.retain && message.len > 0);
            assert!(
                !is_past(message),
                "{id} {message:?} is retained, but is not the last: {all:?}"
            );
            for span in self.lasting(audit).filter(|s| !is_shared(s.filter) && s.replay_granted) {
                let wanted = matches(span.filter, topic) && is_wanted(span, message);
                let key = (span.client, span.epoch, id);
                if wanted && !self.copies.contains_key(&key) {
                    missing.insert(format!("{id} {message:?} for client {}", span.client));
                }
            }
        }
    }
}

/// Whether the subscription has to bring the message with a QoS that promises it, whatever it asked
/// for since the message was sent.
fn is_wanted(span: &Span, message: &Message) -> bool {
    let own = message.publisher == span.client;
    span.wishes(message.first_sent)
        .all(|wish| message.qos.min(wish.qos) != QoS::AtMostOnce && !(wish.no_local && own))
}
