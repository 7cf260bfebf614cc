//! Results of actions.

use serde::{Deserialize, Serialize};

use crate::histogram::{Histogram, add, histogram};

/// The results of one action in a measured window.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ActionTotals {
    /// Affected clients. Clients that were not connected are left alone.
    pub clients: u64,
    /// From the action to the client's next CONNACK, for clients that reconnected.
    #[serde(with = "crate::histogram::form")]
    pub connected: Histogram,
    /// From the action until the client had its session, or its filters were granted.
    #[serde(with = "crate::histogram::form")]
    pub ready: Histogram,
    /// Failed attempts to reconnect.
    pub retried: u64,
    /// Of these, attempts that the broker refused.
    pub refused: u64,
    /// Clients given up.
    pub given_up: u64,
    /// Replaced connections to which the broker sent DISCONNECT with "session taken over".
    pub taken_over: u64,
    /// From the start of the second connection to the end of the replaced one.
    #[serde(with = "crate::histogram::form")]
    pub displaced: Histogram,
    /// Deliveries of wills that are due.
    pub wills_expected: u64,
    /// Deliveries of wills that arrived, from the time of the action.
    #[serde(with = "crate::histogram::form")]
    pub wills: Histogram,
    /// Retained messages due to clients that subscribed.
    pub retained_expected: u64,
    /// Of these, those that arrived.
    pub retained: u64,
    /// From SUBSCRIBE to the last retained message, for clients that received all of them.
    #[serde(with = "crate::histogram::form")]
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
            taken_over: 0,
            displaced: histogram(),
            wills_expected: 0,
            wills: histogram(),
            retained_expected: 0,
            retained: 0,
            complete: histogram(),
        }
    }
}

/// The counts of one action so far, for live displays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ActionCounts {
    /// Affected clients.
    pub clients: u64,
    /// Clients that reconnected.
    pub connected: u64,
    /// The longest time that one took, in microseconds.
    pub connected_max_us: u64,
    /// Clients that have their session or their filters.
    pub ready: u64,
    /// The longest time that one took.
    pub ready_max_us: u64,
    /// Failed attempts to reconnect.
    pub retried: u64,
    /// Of these, refusals.
    pub refused: u64,
    /// Clients given up.
    pub given_up: u64,
    /// Replaced connections to which the broker sent DISCONNECT with "session taken over".
    pub taken_over: u64,
    /// Replaced connections that ended.
    pub displaced: u64,
    /// Deliveries of wills that are due.
    pub wills_expected: u64,
    /// Deliveries of wills that arrived.
    pub wills: u64,
    /// The longest time that one took.
    pub wills_max_us: u64,
    /// Retained messages received.
    pub retained: u64,
}

impl ActionCounts {
    /// Adds the counts of another thread or of a later interval.
    pub fn add(&mut self, other: &Self) {
        self.counts(other, |mine, theirs| *mine += theirs);
        self.longest(other, |mine, theirs| *mine = (*mine).max(theirs));
    }

    /// The change since `before`; `None` without a change. Longest times are not subtracted.
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
            (&mut self.taken_over, other.taken_over),
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
    /// As counts. Retained messages are counted separately until the books are closed.
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
            taken_over: self.taken_over,
            displaced: self.displaced.len(),
            wills_expected: self.wills_expected,
            wills: self.wills.len(),
            wills_max_us: self.wills.max(),
            retained,
        }
    }

    /// Adds the totals of another thread.
    pub(crate) fn add(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.clients, other.clients),
            (&mut self.retried, other.retried),
            (&mut self.refused, other.refused),
            (&mut self.given_up, other.given_up),
            (&mut self.taken_over, other.taken_over),
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
    use crate::histogram::record;

    #[test]
    fn changes_of_threads_and_intervals_add_up_to_the_totals() {
        let (mut one, mut other) = (ActionTotals::default(), ActionTotals::default());
        let (mut before, mut sum) = ([ActionCounts::default(); 2], ActionCounts::default());
        for ms in 1..=3 {
            one.clients += 2;
            other.taken_over += 1;
            record(&mut one.connected, 100_000 * ms);
            record(&mut other.wills, 500_000);
            for (totals, before) in [&one, &other].into_iter().zip(&mut before) {
                let now = totals.counts(ms);
                sum.add(&now.since(before).expect("a change"));
                assert_eq!(now.since(&now), None);
                *before = now;
            }
        }
        one.add(&other);
        assert_eq!(sum, one.counts(6));
        assert_eq!((sum.clients, sum.connected, sum.connected_max_us), (6, 3, 300));
        assert_eq!((sum.taken_over, sum.wills, sum.wills_max_us), (3, 3, 500));
    }
}
