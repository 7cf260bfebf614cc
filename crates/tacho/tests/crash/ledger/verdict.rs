//! The messages that must have arrived once the system is idle.

use tacho_codec::QoS;

use super::{Kind, Ledger, Message, Span, Viewer};
use crate::cast::{FILTERS, is_shared, matches};

/// A missing acknowledged message: its number, and the session or group that should have it.
type Missing = (u64, Misses);

#[derive(Clone, Copy, Debug)]
enum Misses {
    Session(Viewer),
    Group(usize),
}

impl Ledger {
    /// Number of acknowledged messages that have not arrived.
    pub(crate) fn missing(&self) -> usize {
        self.missing_for(None).count()
    }

    /// Reports all missing messages as lost, and drops messages settled before the last audit.
    pub(crate) fn settle(&mut self) {
        let lost: Vec<Missing> = self.missing_for(None).collect();
        self.lose(lost);
        self.totals.audits += 1;
        let keep_from = self.settled;
        self.settled = self.next_id();
        self.forget(keep_from);
    }

    /// Reports a lost session, and its missing messages.
    pub(crate) fn session_lost(&mut self, viewer: Viewer) {
        let text = format!("{} has lost its session", self.name(viewer.client));
        self.findings.add(Kind::Session, text);
        let lost: Vec<Missing> = self.missing_for(Some(viewer)).collect();
        self.lose(lost);
        self.session_ended(viewer);
    }

    fn lose(&mut self, lost: Vec<Missing>) {
        for (id, misses) in lost {
            let text = match misses {
                Misses::Session(viewer) => {
                    let last = self.last_seen(viewer, id);
                    format!("{} for {}; {last}", self.describe(id), self.name(viewer.client))
                }
                Misses::Group(filter) => {
                    format!("{} for any member of {}", self.describe(id), FILTERS[filter])
                }
            };
            self.findings.add(Kind::Lost, text);
        }
    }

    /// The last message that a session received from the same publisher to the same topic.
    fn last_seen(&self, viewer: Viewer, id: u64) -> String {
        let Some(message) = self.message(id) else { return String::new() };
        let is_same_stream =
            |other: &Message| (other.publisher, other.topic) == (message.publisher, message.topic);
        let got = self.copies.iter().filter(|((receiver, _), _)| *receiver == viewer);
        let got = got.filter(|((_, id), _)| self.message(*id).is_some_and(is_same_stream));
        match got.max_by_key(|(_, copies)| copies.last_ms) {
            Some(((_, id), copies)) => {
                format!("last received: {id}, {}", self.moment(copies.last_ms))
            }
            None => "none received since the last audit".to_owned(),
        }
    }

    fn missing_for(&self, only: Option<Viewer>) -> impl Iterator<Item = Missing> {
        let first = self.settled.max(self.first_id);
        let promised = (first..self.next_id()).filter_map(move |id| {
            let message = self.message(id)?;
            (message.is_promised() && message.qos != QoS::AtMostOnce).then_some((id, message))
        });
        promised.flat_map(move |(id, message)| {
            let plain = self.spans.values().filter(move |span| {
                !is_shared(span.filter)
                    && only.is_none_or(|viewer| viewer == span.viewer)
                    && self.must_deliver(span, message)
                    && !self.copies.contains_key(&(span.viewer, id))
            });
            let plain = plain.map(move |span| (id, Misses::Session(span.viewer)));
            let by_group = (0..FILTERS.len()).filter(move |&filter| {
                only.is_none()
                    && is_shared(filter)
                    && matches(filter, message.topic)
                    && !self.shared_copies.contains_key(&id)
                    && self
                        .spans
                        .values()
                        .any(|s| s.filter == filter && self.must_deliver(s, message))
            });
            plain.chain(by_group.map(move |filter| (id, Misses::Group(filter))))
        })
    }

    /// The subscription certainly existed before the message was sent, and still does.
    fn must_deliver(&self, span: &Span, message: &Message) -> bool {
        span.lasts() && span.must_from < message.first_sent && matches(span.filter, message.topic)
    }

    fn forget(&mut self, below: u64) {
        while self.first_id < below && self.messages.pop_front().is_some() {
            self.first_id += 1;
        }
        self.copies.retain(|(_, id), _| *id >= below);
        self.shared_copies.retain(|id, _| *id >= below);
        let oldest = self.messages.front().map_or(0, |message| message.first_sent);
        self.forget_wills(below);
        self.spans.retain(|_, span| span.may_to > oldest);
    }
}
