//! What came of actions.

use super::{Histogram, histogram};
use crate::recorder::add;

/// What one action did, and what followed.
#[derive(Debug, Clone)]
pub struct ActionTotals {
    /// Clients that it happened to. Those that were not connected are left alone.
    pub clients: u64,
    /// From what happened to a client until its next CONNACK, for those that came back.
    pub connected: Histogram,
    /// The same, until its session was there or its filters were granted too.
    pub ready: Histogram,
    /// Attempts to connect that failed meanwhile.
    pub retried: u64,
    /// Of these, attempts that the broker answered with a refusal.
    pub refused: u64,
    /// Clients that were given up.
    pub given_up: u64,
    /// First connections that the broker ended with "session taken over".
    pub told: u64,
    /// First connections that ended, told or not, and how long after the second one was begun.
    pub displaced: Histogram,
    /// Wills that the clients left to the broker: one for each receiver.
    pub wills_expected: u64,
    /// Those that came, from the action's time on.
    pub wills: Histogram,
    /// Retained messages that were due to clients that subscribed.
    pub retained_expected: u64,
    /// Of these, those that came.
    pub retained: u64,
    /// From SUBSCRIBE to the last of its retained messages, for clients that got all of them.
    pub complete: Histogram,
}

impl Default for ActionTotals {
    fn default() -> Self {
        Self {
            clients: 0,
            connected: histogram(),
            ready: histogram(),
            retried: 0,
            refused: 0,
            given_up: 0,
            told: 0,
            displaced: histogram(),
            wills_expected: 0,
            wills: histogram(),
            retained_expected: 0,
            retained: 0,
            complete: histogram(),
        }
    }
}

/// What one action did so far, in short: for whoever watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ActionCounts {
    /// Clients that it happened to.
    pub clients: u64,
    /// Clients that were connected again.
    pub connected: u64,
    /// The longest that one took, in microseconds.
    pub connected_max_us: u64,
    /// Clients that had their session or their filters.
    pub ready: u64,
    /// The longest that one took.
    pub ready_max_us: u64,
    /// Attempts to connect that failed.
    pub retried: u64,
    /// Of these, refusals.
    pub refused: u64,
    /// Clients that were given up.
    pub given_up: u64,
    /// First connections that the broker ended with "session taken over".
    pub told: u64,
    /// First connections that ended.
    pub displaced: u64,
    /// Wills that have to come.
    pub wills_expected: u64,
    /// Wills that came.
    pub wills: u64,
    /// How long after the action the last one did.
    pub wills_max_us: u64,
    /// Retained messages that came.
    pub retained: u64,
}

impl ActionCounts {
    /// Adds what another thread, or a later interval, has counted.
    pub fn add(&mut self, other: &Self) {
        self.counts(other, |mine, theirs| *mine += theirs);
        self.longest(other, |mine, theirs| *mine = (*mine).max(theirs));
    }

    /// What came since these were `before`; `None` when nothing did. The longest stay as they are.
    pub(crate) fn since(&self, before: &Self) -> Option<Self> {
        let mut news = *self;
        news.counts(before, |now, before| *now -= before);
        (self != before).then_some(news)
    }

    fn counts(&mut self, other: &Self, change: impl Fn(&mut u64, u64)) {
        for (mine, theirs) in [
            (&mut self.clients, other.clients),
            (&mut self.connected, other.connected),
            (&mut self.ready, other.ready),
            (&mut self.retried, other.retried),
            (&mut self.refused, other.refused),
            (&mut self.given_up, other.given_up),
            (&mut self.told, other.told),
            (&mut self.displaced, other.displaced),
            (&mut self.wills_expected, other.wills_expected),
            (&mut self.wills, other.wills),
            (&mut self.retained, other.retained),
        ] {
            change(mine, theirs);
        }
    }

    fn longest(&mut self, other: &Self, change: impl Fn(&mut u64, u64)) {
        for (mine, theirs) in [
            (&mut self.connected_max_us, other.connected_max_us),
            (&mut self.ready_max_us, other.ready_max_us),
            (&mut self.wills_max_us, other.wills_max_us),
        ] {
            change(mine, theirs);
        }
    }
}

impl ActionTotals {
    /// In short. Retained messages are counted elsewhere until the books are closed.
    pub(crate) fn counts(&self, retained: u64) -> ActionCounts {
        ActionCounts {
            clients: self.clients,
            connected: self.connected.len(),
            connected_max_us: self.connected.max(),
            ready: self.ready.len(),
            ready_max_us: self.ready.max(),
            retried: self.retried,
            refused: self.refused,
            given_up: self.given_up,
            told: self.told,
            displaced: self.displaced.len(),
            wills_expected: self.wills_expected,
            wills: self.wills.len(),
            wills_max_us: self.wills.max(),
            retained,
        }
    }

    /// Adds the part of another thread.
    pub(crate) fn add(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.clients, other.clients),
            (&mut self.retried, other.retried),
            (&mut self.refused, other.refused),
            (&mut self.given_up, other.given_up),
            (&mut self.told, other.told),
            (&mut self.wills_expected, other.wills_expected),
            (&mut self.retained_expected, other.retained_expected),
            (&mut self.retained, other.retained),
        ] {
            *mine += theirs;
        }
        for (mine, theirs) in [
            (&mut self.connected, &other.connected),
            (&mut self.ready, &other.ready),
            (&mut self.displaced, &other.displaced),
            (&mut self.wills, &other.wills),
            (&mut self.complete, &other.complete),
        ] {
            add(mine, theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::record;

    #[test]
    fn news_of_threads_and_intervals_add_up_to_the_totals() {
        let (mut one, mut other) = (ActionTotals::default(), ActionTotals::default());
        let (mut before, mut sum) = ([ActionCounts::default(); 2], ActionCounts::default());
        for ms in 1..=3 {
            one.clients += 2;
            other.told += 1;
            record(&mut one.connected, 100_000 * ms);
            record(&mut other.wills, 500_000);
            for (totals, before) in [&one, &other].into_iter().zip(&mut before) {
                let now = totals.counts(ms);
                sum.add(&now.since(before).expect("something came"));
                assert_eq!(now.since(&now), None);
                *before = now;
            }
        }
        one.add(&other);
        assert_eq!(sum, one.counts(6));
        assert_eq!((sum.clients, sum.connected, sum.connected_max_us), (6, 3, 300));
        assert_eq!((sum.told, sum.wills, sum.wills_max_us), (3, 3, 500));
    }
}
