//! What the responder itself knows about the messages that went through it.

use serde::{Deserialize, Serialize};

/// Hold times that are kept; further ones are only counted.
const HOLDS_MAX: usize = 4_000_000;

/// Messages, faults and hold times, on the way.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) messages: u64,
    pub(super) lost: u64,
    pub(super) doubled: u64,
    pub(super) reordered: u64,
    holds_ns: Vec<u64>,
}

/// The end of a ledger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Testimony {
    pub(crate) messages: u64,
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) reordered: u64,
    /// Messages with a recorded time from read to written.
    pub(crate) held: u64,
    pub(crate) hold_us_p50: f64,
    pub(crate) hold_us_p99: f64,
    pub(crate) hold_us_p999: f64,
    pub(crate) hold_us_max: f64,
}

impl Ledger {
    pub(super) fn note_hold(&mut self, ns: u64) {
        if self.holds_ns.len() < HOLDS_MAX {
            self.holds_ns.push(ns);
        }
    }

    pub(super) fn close(mut self) -> Testimony {
        self.holds_ns.sort_unstable();
        let holds = &self.holds_ns;
        let at = |share: f64| -> f64 {
            let rank = (share * holds.len() as f64).ceil() as usize;
            let value = holds.get(rank.saturating_sub(1)).or_else(|| holds.last());
            value.map_or(0.0, |ns| *ns as f64 / 1e3)
        };
        Testimony {
            messages: self.messages,
            lost: self.lost,
            doubled: self.doubled,
            reordered: self.reordered,
            held: holds.len() as u64,
            hold_us_p50: at(0.5),
            hold_us_p99: at(0.99),
            hold_us_p999: at(0.999),
            hold_us_max: at(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_recorded_holds() {
        let mut ledger = Ledger { messages: 1_000, lost: 2, ..Ledger::default() };
        for number in (1..=1_000_u64).rev() {
            ledger.note_hold(number * 1_000);
        }
        let closed = ledger.close();
        assert_eq!((closed.messages, closed.lost, closed.held), (1_000, 2, 1_000));
        assert_eq!((closed.hold_us_p50, closed.hold_us_p99), (500.0, 990.0));
        assert_eq!((closed.hold_us_p999, closed.hold_us_max), (999.0, 1_000.0));
        assert_eq!(Ledger::default().close(), Testimony::default());
    }
}
