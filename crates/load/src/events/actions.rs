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

impl ActionTotals {
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
