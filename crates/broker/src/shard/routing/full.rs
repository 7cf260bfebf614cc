//! Full sessions in the route map: their filters are marked, so that every publisher's shard knows
//! before it takes a message in that the message would have to be refused.
//!
//! A session may have thousands of filters: a few are marked per turn. Messages that are routed
//! before are queued in spite of the limit.

use std::collections::{BTreeSet, VecDeque};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_codec::QoS;
use tacho_topic::{RouteChange, RouteMark, TopicFilter};

use super::marks::FilterMarks;
use crate::keys::SessionSlot;

/// The sessions of this shard that are full or were full a moment ago.
pub(super) struct FullSessions {
    sessions: HashMap<SessionSlot, FullSession, RandomState>,
    marks: FilterMarks,
    /// Sessions with filters that are to be marked or unmarked.
    unfinished: VecDeque<SessionSlot>,
}

/// One of them.
#[derive(Default)]
struct FullSession {
    is_full: bool,
    /// Its filters whose mark counts it.
    marked: BTreeSet<TopicFilter>,
    /// Its filters to be marked, or unmarked if it has room again.
    pending: Vec<TopicFilter>,
}

impl FullSessions {
    pub(super) fn new(shard: usize) -> Self {
        Self {
            sessions: HashMap::default(),
            marks: FilterMarks::new(RouteMark::Full, shard),
            unfinished: VecDeque::new(),
        }
    }

    /// Whether the session counts as full.
    pub(super) fn contains(&self, slot: SessionSlot) -> bool {
        self.sessions.get(&slot).is_some_and(|session| session.is_full)
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<SessionSlot> {
        let mut all: Vec<_> = self.sessions.keys().copied().collect();
        all.sort_unstable();
        all
    }

    /// A session is full. `filters` are its subscriptions with QoS 1 and 2. False if it has been
    /// among these all the time.
    pub(super) fn filled(&mut self, slot: SessionSlot, filters: Vec<TopicFilter>) -> bool {
        let is_new = !self.sessions.contains_key(&slot);
        let session = self.sessions.entry(slot).or_default();
        session.is_full = true;
        session.pending = filters;
        self.unfinished.push_back(slot);
        is_new
    }

    /// A session that was full has room.
    pub(super) fn has_room(&mut self, slot: SessionSlot) {
        let Some(session) = self.sessions.get_mut(&slot) else { return };
        session.is_full = false;
        session.pending = session.marked.iter().cloned().collect();
        self.unfinished.push_back(slot);
    }

    /// A session has subscribed to `filter`, or changed its options.
    pub(super) fn subscribed(
        &mut self,
        slot: SessionSlot,
        (filter, qos): (&TopicFilter, QoS),
        changes: &mut Vec<RouteChange>,
    ) {
        if self.sessions.is_empty() {
            return;
        }
        if qos == QoS::AtMostOnce {
            return self.unmark(slot, filter, changes);
        }
        if self.contains(slot) {
            self.mark(slot, filter, changes);
        }
    }

    /// Whether there are filters to be marked or unmarked.
    #[inline]
    pub(super) fn is_unfinished(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// Marks and unmarks up to `budget` filters: `changes` for the route map. `is_subscribed` tells
    /// whether a session still has a subscription with QoS 1 or 2. Returns the sessions that have
    /// room and no marks left.
    pub(super) fn advance(
        &mut self,
        mut budget: usize,
        is_subscribed: impl Fn(SessionSlot, &TopicFilter) -> bool,
        changes: &mut Vec<RouteChange>,
    ) -> Vec<SessionSlot> {
        let mut done = Vec::new();
        while budget > 0
            && let Some(&slot) = self.unfinished.front()
        {
            budget -= 1;
            let Some(session) = self.sessions.get_mut(&slot) else {
                self.unfinished.pop_front();
                continue;
            };
            let is_full = session.is_full;
            match session.pending.pop() {
                Some(filter) if is_full && is_subscribed(slot, &filter) => {
                    self.mark(slot, &filter, changes);
                }
                Some(_) if is_full => {}
                Some(filter) => self.unmark(slot, &filter, changes),
                None => {
                    self.unfinished.pop_front();
                    if !is_full && session.marked.is_empty() {
                        self.sessions.remove(&slot);
                        done.push(slot);
                    }
                }
            }
        }
        done
    }

    fn mark(&mut self, slot: SessionSlot, filter: &TopicFilter, changes: &mut Vec<RouteChange>) {
        let Some(session) = self.sessions.get_mut(&slot) else { return };
        if session.marked.insert(filter.clone()) {
            self.marks.add(filter, changes);
        }
    }

    /// Nothing marks a filter for this session any more: it has no subscription to it, or has room.
    pub(super) fn unmark(
        &mut self,
        slot: SessionSlot,
        filter: &TopicFilter,
        changes: &mut Vec<RouteChange>,
    ) {
        let Some(session) = self.sessions.get_mut(&slot) else { return };
        if session.marked.remove(filter) {
            self.marks.remove(filter, changes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QOS1: QoS = QoS::AtLeastOnce;

    fn filter(text: &str) -> TopicFilter {
        TopicFilter::parse(text).unwrap()
    }

    /// What the changes set and clear, as `+filter` and `-filter`.
    fn taken(changes: &mut Vec<RouteChange>) -> Vec<String> {
        let text = |change| match change {
            RouteChange::Mark { filter, shard: 1, mark: RouteMark::Full, is_set } => {
                format!("{}{filter}", if is_set { '+' } else { '-' })
            }
            other => panic!("{other:?}"),
        };
        let mut taken: Vec<String> = changes.drain(..).map(text).collect();
        taken.sort_unstable();
        taken
    }

    #[test]
    fn filters_are_marked_piece_by_piece_and_as_long_as_any_session_is_full() {
        let (mut full, mut changes) = (FullSessions::new(1), Vec::new());
        let [a, b] = [0, 1].map(SessionSlot::new);
        assert!(full.filled(a, vec![filter("x"), filter("y"), filter("z")]));
        assert!(full.filled(b, vec![filter("x")]));
        assert!(full.advance(2, |_, _| true, &mut changes).is_empty());
        assert_eq!(taken(&mut changes), ["+y", "+z"]);
        assert!(full.is_unfinished() && full.contains(a));
        assert!(full.advance(100, |_, _| true, &mut changes).is_empty());
        assert_eq!(taken(&mut changes), ["+x"]);
        assert!(!full.is_unfinished());
        full.has_room(a);
        assert!(!full.contains(a));
        assert_eq!(full.advance(100, |_, _| true, &mut changes), [a]);
        assert_eq!(taken(&mut changes), ["-y", "-z"], "the other one is full");
        full.has_room(b);
        assert_eq!(full.advance(100, |_, _| true, &mut changes), [b]);
        assert_eq!(taken(&mut changes), ["-x"]);
        assert!(full.sessions.is_empty() && full.marks.len() == 0 && full.unfinished.is_empty());
    }

    #[test]
    fn marks_follow_the_subscriptions_of_a_full_session() {
        let (mut full, mut changes) = (FullSessions::new(1), Vec::new());
        let [a, b] = [0, 1].map(SessionSlot::new);
        full.subscribed(a, (&filter("x"), QOS1), &mut changes);
        assert!(changes.is_empty(), "it is not full");
        assert!(full.filled(a, vec![filter("x"), filter("y")]));
        full.subscribed(b, (&filter("y"), QOS1), &mut changes);
        full.subscribed(a, (&filter("z"), QOS1), &mut changes);
        assert_eq!(taken(&mut changes), ["+z"]);
        full.unmark(a, &filter("y"), &mut changes);
        full.advance(100, |_, pending| *pending != filter("y"), &mut changes);
        assert_eq!(taken(&mut changes), ["+x"], "y is gone before it was marked");
        full.subscribed(a, (&filter("x"), QoS::AtMostOnce), &mut changes);
        full.unmark(a, &filter("z"), &mut changes);
        assert_eq!(taken(&mut changes), ["-x", "-z"]);
        assert!(full.marks.len() == 0);
    }

    #[test]
    fn a_session_that_fills_again_while_it_is_unmarked_is_marked_again() {
        let (mut full, mut changes) = (FullSessions::new(1), Vec::new());
        let a = SessionSlot::new(0);
        assert!(full.filled(a, vec![filter("x"), filter("y")]));
        full.advance(100, |_, _| true, &mut changes);
        full.has_room(a);
        full.advance(1, |_, _| true, &mut changes);
        changes.clear();
        assert!(!full.filled(a, vec![filter("x"), filter("y")]));
        assert!(full.advance(100, |_, _| true, &mut changes).is_empty());
        assert_eq!(changes.len(), 1, "one was still marked");
        assert_eq!(full.marks.len(), 2);
    }
}
