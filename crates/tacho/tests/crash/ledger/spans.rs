//! Subscriptions, with the times between which each may and must have existed.

use super::{Kind, Ledger, Moment, NEVER, Viewer};
use crate::cast::FILTERS;

/// One session's subscription to one filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) viewer: Viewer,
    pub(crate) filter: usize,
    /// The first SUBSCRIBE was sent.
    pub(crate) may_from: Moment,
    /// SUBACK arrived.
    pub(crate) must_from: Moment,
    /// UNSUBSCRIBE was sent, or the session may have ended.
    pub(crate) must_to: Moment,
    /// UNSUBACK arrived, or the session has ended.
    pub(crate) may_to: Moment,
}

impl Span {
    /// It has certainly existed since SUBACK and still does.
    pub(crate) const fn lasts(&self) -> bool {
        self.must_from != NEVER && self.must_to == NEVER
    }
}

impl Ledger {
    /// SUBSCRIBE is sent. Returns the number to pass to `subscribed`.
    pub(crate) fn subscribing(&mut self, viewer: Viewer, filter: usize) -> usize {
        let may_from = self.tick();
        let open = self.spans.iter().find(|(_, span)| {
            (span.viewer, span.filter) == (viewer, filter) && span.must_to == NEVER
        });
        if let Some((&number, _)) = open {
            return number;
        }
        let (must_from, must_to, may_to) = (NEVER, NEVER, NEVER);
        let span = Span { viewer, filter, may_from, must_from, must_to, may_to };
        self.spans_made += 1;
        self.spans.insert(self.spans_made, span);
        self.spans_made
    }

    /// SUBACK arrived.
    pub(crate) fn subscribed(&mut self, span: usize) {
        let now = self.tick();
        if let Some(span) = self.spans.get_mut(&span) {
            span.must_from = span.must_from.min(now);
        }
    }

    /// SUBACK refused it.
    pub(crate) fn not_subscribed(&mut self, span: usize) {
        let now = self.tick();
        let Some(span) = self.spans.get_mut(&span) else { return };
        span.must_to = now;
        let Span { viewer, filter, .. } = *span;
        let text = format!("{} may not subscribe to {}", self.name(viewer.client), FILTERS[filter]);
        self.findings.add(Kind::Refused, text);
    }

    /// UNSUBSCRIBE is sent. Returns the spans that it ends.
    pub(crate) fn unsubscribing(&mut self, viewer: Viewer, filter: usize) -> Vec<usize> {
        let now = self.tick();
        let concerned =
            |span: &Span| (span.viewer, span.filter) == (viewer, filter) && span.may_to == NEVER;
        let mut ended = Vec::new();
        for (&number, span) in self.spans.iter_mut().filter(|(_, span)| concerned(span)) {
            span.must_to = span.must_to.min(now);
            ended.push(number);
        }
        ended
    }

    /// UNSUBACK arrived.
    pub(crate) fn unsubscribed(&mut self, spans: &[usize]) {
        let now = self.tick();
        for number in spans {
            if let Some(span) = self.spans.get_mut(number) {
                span.may_to = span.may_to.min(now);
            }
        }
    }

    /// The session may end from now on: a CONNECT with clean start was sent.
    pub(crate) fn session_may_end(&mut self, viewer: Viewer) {
        let now = self.tick();
        for span in self.spans.values_mut().filter(|span| span.viewer == viewer) {
            span.must_to = span.must_to.min(now);
        }
    }

    /// The session has ended on request of its client.
    pub(crate) fn session_ended(&mut self, viewer: Viewer) {
        self.session_may_end(viewer);
        let now = self.now;
        for span in self.spans.values_mut().filter(|span| span.viewer == viewer) {
            span.may_to = span.may_to.min(now);
        }
    }
}
