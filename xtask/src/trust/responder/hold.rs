//! When a message may leave the responder, and what is done wrong with it on purpose.

use std::collections::HashMap;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

const SECOND_NS: u64 = 1_000_000_000;
/// How far a limited forwarder may catch up after it was kept from its core.
pub(crate) const CATCH_UP_NS: u64 = 20_000_000;

/// How long messages are held. All of them leave in the order in which they arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Hold {
    #[default]
    Nothing,
    /// Each message for the same time.
    Fixed { ns: u64 },
    /// Everything, at the beginning of each period.
    Stall { every_ns: u64, length_ns: u64 },
    /// So many messages per second leave; others wait.
    Rate { interval_ns: u64 },
}

impl Hold {
    pub(super) fn rate(per_second: u64) -> Self {
        Self::Rate { interval_ns: SECOND_NS / per_second.max(1) }
    }
}

/// The release times of a queue.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    hold: Hold,
    /// Arrival of the first message.
    start_ns: Option<u64>,
    /// Scheduled release of the message before.
    released_ns: u64,
}

impl Schedule {
    pub(super) fn new(hold: Hold) -> Self {
        Self { hold, ..Self::default() }
    }

    /// When the oldest message, which arrived at `arrived_ns`, may leave.
    pub(super) fn release_ns(&mut self, arrived_ns: u64) -> u64 {
        let start_ns = *self.start_ns.get_or_insert(arrived_ns);
        match self.hold {
            Hold::Nothing => arrived_ns,
            Hold::Fixed { ns } => arrived_ns + ns,
            Hold::Stall { every_ns, length_ns } => {
                let since_ns = (arrived_ns - start_ns) % every_ns.max(1);
                // The first period begins without a stall.
                let from_ns = every_ns - length_ns;
                arrived_ns + if since_ns >= from_ns { every_ns - since_ns } else { 0 }
            }
            Hold::Rate { interval_ns } => {
                let next_ns = self.released_ns + interval_ns;
                next_ns.max(arrived_ns.saturating_sub(CATCH_UP_NS))
            }
        }
    }

    /// The oldest message has left.
    pub(super) fn note_release(&mut self, arrived_ns: u64) {
        self.released_ns = self.release_ns(arrived_ns);
    }
}

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// Acknowledged, and not delivered
    Lose,
    /// Delivered twice
    Double,
    /// Delivered after the next message of the same publisher
    Reorder,
}

/// Which messages are treated wrongly: every n-th.
#[derive(Debug)]
pub(super) struct Faults<T> {
    fault: Option<Fault>,
    every: u64,
    count: u64,
    /// Messages that wait for the next of their publisher, with the time.
    late: HashMap<u64, (u64, T)>,
}

/// What to do with a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Treatment<T> {
    Deliver(T),
    Lose,
    Double(T),
    /// Deliver neither now: it was kept for later.
    Kept,
    /// Deliver both, in this order.
    Swapped(T, T),
}

impl<T> Faults<T> {
    pub(super) fn new(fault: Option<Fault>, every: u64) -> Self {
        Self { fault, every: every.max(1), count: 0, late: HashMap::new() }
    }

    pub(super) fn treat(&mut self, publisher: u64, now_ns: u64, message: T) -> Treatment<T> {
        self.count += 1;
        if let Some((_, before)) = self.late.remove(&publisher) {
            return Treatment::Swapped(message, before);
        }
        match self.fault.filter(|_| self.count.is_multiple_of(self.every)) {
            None => Treatment::Deliver(message),
            Some(Fault::Lose) => Treatment::Lose,
            Some(Fault::Double) => Treatment::Double(message),
            Some(Fault::Reorder) => {
                self.late.insert(publisher, (now_ns, message));
                Treatment::Kept
            }
        }
    }

    /// Messages that have waited in vain: their publishers send no more.
    pub(super) fn overdue(&mut self, before_ns: u64) -> Vec<T> {
        let found = self.late.iter().filter(|(_, (at_ns, _))| *at_ns < before_ns);
        let keys: Vec<u64> = found.map(|(key, _)| *key).collect();
        keys.iter().filter_map(|key| self.late.remove(key)).map(|(_, message)| message).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_fixed_hold_is_the_same_for_every_message() {
        let mut schedule = Schedule::new(Hold::Fixed { ns: 5 * MS });
        for arrived_ns in [10, 11, 900 * MS] {
            assert_eq!(schedule.release_ns(arrived_ns), arrived_ns + 5 * MS);
            schedule.note_release(arrived_ns);
        }
        assert_eq!(Schedule::new(Hold::Nothing).release_ns(17), 17);
    }

    #[test]
    fn a_stall_holds_everything_until_its_end() {
        let hold = Hold::Stall { every_ns: 5_000 * MS, length_ns: 300 * MS };
        let mut schedule = Schedule::new(hold);
        let start_ns = 77 * MS;
        let release = |schedule: &mut Schedule, at_ms: u64| {
            (schedule.release_ns(start_ns + at_ms * MS) - start_ns) / MS
        };
        assert_eq!(release(&mut schedule, 0), 0);
        assert_eq!(release(&mut schedule, 4_699), 4_699);
        assert_eq!(release(&mut schedule, 4_700), 5_000);
        assert_eq!(release(&mut schedule, 4_999), 5_000);
        assert_eq!(release(&mut schedule, 5_000), 5_000);
        assert_eq!(release(&mut schedule, 9_850), 10_000);
    }

    /// Messages that leave within a time, of such that arrive at a constant rate.
    fn leave(per_second: u64, offered_per_second: u64, seconds: u64) -> u64 {
        let mut schedule = Schedule::new(Hold::rate(per_second));
        // The clock is far from 0, as in reality.
        let start_ns = 1_000 * SECOND_NS;
        let end_ns = start_ns + seconds * SECOND_NS;
        let mut count = 0;
        for number in 0..offered_per_second * seconds {
            let arrived_ns = start_ns + number * SECOND_NS / offered_per_second;
            if schedule.release_ns(arrived_ns) >= end_ns {
                break;
            }
            schedule.note_release(arrived_ns);
            count += 1;
        }
        count
    }

    #[test]
    fn a_limited_forwarder_passes_its_rate_and_no_more() {
        assert_eq!(leave(4_000, 3_900, 10), 39_000);
        let passed = leave(4_000, 8_000, 10);
        // 20 ms more at the beginning.
        assert!((40_000..=40_082).contains(&passed), "{passed}");
    }

    #[test]
    fn every_nth_message_is_treated_wrongly() {
        let treatments = |fault: Fault| -> Vec<Treatment<u64>> {
            let mut faults = Faults::new(Some(fault), 3);
            (1..=6).map(|number| faults.treat(number % 2, 0, number)).collect()
        };
        use Treatment::{Deliver, Double, Kept, Lose, Swapped};
        assert_eq!(
            treatments(Fault::Lose),
            [Deliver(1), Deliver(2), Lose, Deliver(4), Deliver(5), Lose]
        );
        assert_eq!(treatments(Fault::Double)[2], Double(3));
        assert_eq!(treatments(Fault::Reorder)[2..5], [Kept, Deliver(4), Swapped(5, 3)]);
    }

    #[test]
    fn a_kept_message_without_a_successor_is_delivered_in_the_end() {
        let mut faults = Faults::new(Some(Fault::Reorder), 1);
        assert_eq!(faults.treat(1, 100, 'a'), Treatment::Kept);
        assert!(faults.overdue(100).is_empty());
        assert_eq!(faults.overdue(101), ['a']);
        assert!(faults.overdue(101).is_empty());
    }
}
