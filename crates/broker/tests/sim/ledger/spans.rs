//! Subscriptions, from when to when they may have been there and must have been there.

use super::{Ledger, Moment, NEVER};
use crate::setup::{Wish, is_shared};

/// One session's subscription to one filter.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) client: usize,
    pub(crate) epoch: u32,
    pub(crate) filter: usize,
    /// SUBACK came.
    pub(crate) must_from: Moment,
    /// UNSUBSCRIBE was sent, or the session may have ended.
    pub(crate) must_to: Moment,
    /// UNSUBACK came, or the session has ended.
    pub(crate) may_to: Moment,
    /// What each SUBSCRIBE for it asked for.
    pub(crate) asked: Vec<Asked>,
    /// Those that want the retained messages.
    pub(crate) replays: u32,
    /// One of these was acknowledged.
    pub(crate) replay_granted: bool,
    /// Its session ends with the broker.
    pub(crate) passing: bool,
}

/// What a SUBSCRIBE asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) wish: Wish,
    /// SUBACK of a later one came.
    until: Moment,
}

/// One SUBSCRIBE for one filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscribing {
    span: usize,
    asked: usize,
    /// It wants the retained messages for certain.
    replay: bool,
}

impl Span {
    pub(crate) fn subscribes(&self) -> u32 {
        self.asked.len() as u32
    }

    /// What may have held at some time since then.
    pub(crate) fn wishes(&self, since: Moment) -> impl Iterator<Item = Wish> {
        self.asked.iter().filter(move |asked| asked.until > since).map(|asked| asked.wish)
    }

    /// It was certainly there all the time between two moments.
    pub(crate) const fn covers(&self, from: Moment, to: Moment) -> bool {
        self.must_from < from && to < self.must_to
    }
}

impl Ledger {
    /// SUBSCRIBE is sent: it may bring retained messages, or has to.
    pub(crate) fn subscribing(
        &mut self,
        (client, epoch): (usize, u32),
        filter: usize,
        wish: Wish,
        (may_replay, must_replay): (bool, bool),
    ) -> Subscribing {
        self.tick();
        let open = self.spans.iter().position(|span| {
            (span.client, span.epoch, span.filter) == (client, epoch, filter)
                && span.must_to == NEVER
        });
        let index = open.unwrap_or(self.spans.len());
        if open.is_none() {
            self.spans.push(Span {
                client,
                epoch,
                filter,
                must_from: NEVER,
                must_to: NEVER,
                may_to: NEVER,
                asked: Vec::new(),
                replays: 0,
                replay_granted: false,
                passing: self.passing.contains(&(client, epoch)),
            });
        }
        let span = &mut self.spans[index];
        span.asked.push(Asked { wish, until: NEVER });
        span.replays += u32::from(may_replay && !is_shared(filter));
        Subscribing { span: index, asked: span.asked.len() - 1, replay: must_replay }
    }

    /// SUBACK came.
    pub(crate) fn subscribed(&mut self, subscribing: Subscribing) {
        let now = self.tick();
        let span = &mut self.spans[subscribing.span];
        span.must_from = span.must_from.min(now);
        span.replay_granted |= subscribing.replay;
        for before in &mut span.asked[..subscribing.asked] {
            before.until = before.until.min(now);
        }
    }

    /// SUBACK refused it.
    pub(crate) fn not_subscribed(&mut self, subscribing: Subscribing) {
        self.spans[subscribing.span].must_to = 0;
    }

    /// Whether a client was granted all of these subscriptions and has them.
    pub(crate) fn has_all(&self, client: usize, filters: &[usize]) -> bool {
        filters.iter().all(|&filter| {
            let granted = |s: &Span| s.must_from != NEVER && s.must_to == NEVER;
            self.spans.iter().any(|s| (s.client, s.filter) == (client, filter) && granted(s))
        })
    }

    /// UNSUBSCRIBE is sent. Returns the spans that it ends.
    pub(crate) fn unsubscribing(&mut self, client: usize, epoch: u32, filter: usize) -> Vec<usize> {
        let now = self.tick();
        let concerned = |span: &Span| {
            (span.client, span.epoch, span.filter) == (client, epoch, filter)
                && span.may_to == NEVER
        };
        let all = self.spans.iter().enumerate().filter(|(_, span)| concerned(span));
        let all: Vec<usize> = all.map(|(index, _)| index).collect();
        for &index in &all {
            let span = &mut self.spans[index];
            span.must_to = span.must_to.min(now);
        }
        if is_shared(filter) {
            self.leaves.push((now, filter));
            self.ends.push((now, filter));
        }
        all
    }

    /// UNSUBACK came.
    pub(crate) fn unsubscribed(&mut self, spans: &[usize]) {
        let now = self.tick();
        for &span in spans {
            self.spans[span].may_to = now;
        }
        self.note_leave(spans);
    }

    /// A session may end from now on.
    pub(crate) fn session_may_end(&mut self, client: usize, epoch: u32) {
        let now = self.tick();
        for span in &mut self.spans {
            if (span.client, span.epoch) == (client, epoch) {
                span.must_to = span.must_to.min(now);
                if is_shared(span.filter) {
                    self.ends.push((now, span.filter));
                }
            }
        }
    }

    /// A session has ended.
    pub(crate) fn session_ended(&mut self, client: usize, epoch: u32) {
        self.session_may_end(client, epoch);
        self.left(client, epoch);
        let now = self.now;
        for span in &mut self.spans {
            if (span.client, span.epoch) == (client, epoch) {
                span.may_to = span.may_to.min(now);
            }
        }
    }

    /// A session lost its connection: its shared messages may go to others.
    pub(crate) fn left(&mut self, client: usize, epoch: u32) {
        let of_session = |span: &Span| (span.client, span.epoch) == (client, epoch);
        let spans = self.spans.iter().enumerate().filter(|(_, span)| of_session(span));
        let spans: Vec<usize> = spans.map(|(index, _)| index).collect();
        self.note_leave(&spans);
    }

    fn note_leave(&mut self, spans: &[usize]) {
        let now = self.tick();
        for &index in spans {
            let filter = self.spans[index].filter;
            if is_shared(filter) {
                self.leaves.push((now, filter));
            }
        }
    }
}
