//! The monotonic clock, and the offset of another machine's clock from it.

use std::collections::VecDeque;
use std::time::Duration;

/// Limit on remembered exchanges.
const EXCHANGES_MAX: usize = 32;

/// Age limit of remembered exchanges: drift is constant over minutes, not over hours.
const AGE_NS_MAX: u64 = 600_000_000_000;

/// Bound of the relative drift between two machines' clocks: crystals are accurate to 50 ppm each.
const DRIFT: f64 = 100e-6;

/// Bound of the change of the drift since it was measured: crystals depend on temperature.
const WANDER: f64 = 1e-6;

/// CLOCK_MONOTONIC in nanoseconds.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The next time after `now_ns` on the grid `last_ns + n * interval`; missed ones are skipped.
pub(crate) fn next_tick_ns(last_ns: u64, interval: Duration, now_ns: u64) -> u64 {
    let interval_ns = (interval.as_nanos() as u64).max(1);
    let missed = now_ns.saturating_sub(last_ns) / interval_ns;
    last_ns + (missed + 1) * interval_ns
}

/// Four time stamps of one request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Request sent, local clock.
    pub asked_ns: u64,
    /// Request received, remote clock.
    pub received_ns: u64,
    /// Response sent, remote clock.
    pub answered_ns: u64,
    /// Response received, local clock.
    pub done_ns: u64,
}

/// Maps another machine's monotonic clock onto the local one.
///
/// Every exchange bounds the offset: neither request nor response can arrive before it was sent.
/// The midpoint of these bounds is off by at most half the round trip. Two exchanges bound the
/// drift between them in the same way; the longer the time between them, the tighter the bound.
/// The bound of an exchange widens with its age by the uncertainty of the drift; the exchange with
/// the tightest bound now is used.
#[derive(Clone, Debug, Default)]
pub struct ClockMap {
    exchanges: VecDeque<Exchange>,
    drift: Drift,
}

/// How much faster the remote clock runs, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Drift {
    middle: f64,
    /// Bound of the error, in either direction.
    error: f64,
}

impl Default for Drift {
    /// The drift before it has been measured.
    fn default() -> Self {
        Self { middle: 0.0, error: DRIFT }
    }
}

/// A time on the local clock and its error bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedTime {
    /// CLOCK_MONOTONIC of this machine.
    pub at_ns: u64,
    /// Bound of the error, in either direction.
    pub error_ns: u64,
}

impl Exchange {
    /// Time on the network, without the processing time of the remote side.
    pub fn round_trip_ns(&self) -> u64 {
        let whole_ns = self.done_ns.saturating_sub(self.asked_ns);
        whole_ns.saturating_sub(self.answered_ns.saturating_sub(self.received_ns))
    }

    /// Remote clock minus local clock, doubled to keep half nanoseconds.
    fn offset_doubled_ns(&self) -> i128 {
        let there = i128::from(self.received_ns) + i128::from(self.answered_ns);
        there - i128::from(self.asked_ns) - i128::from(self.done_ns)
    }

    /// Error bound of the offset at `now_ns` of the local clock.
    fn error_ns(&self, now_ns: u64, drift: Drift) -> u64 {
        let age_ns = now_ns.abs_diff(self.done_ns) as f64;
        let length_ns = self.done_ns.saturating_sub(self.asked_ns) as f64;
        self.round_trip_ns() / 2 + 1 + (age_ns * drift.error + length_ns * DRIFT) as u64
    }

    /// Upper bound of the drift between `earlier` and this exchange.
    fn drift_max_since(&self, earlier: &Self) -> Option<f64> {
        let apart_ns = self.asked_ns.checked_sub(earlier.done_ns).filter(|apart| *apart > 0)?;
        // The largest possible offset now against the smallest possible one then.
        let now = i128::from(self.received_ns) - i128::from(self.asked_ns);
        let then = i128::from(earlier.answered_ns) - i128::from(earlier.done_ns);
        Some((now - then) as f64 / apart_ns as f64)
    }

    /// Lower bound of the drift between `earlier` and this exchange.
    fn drift_min_since(&self, earlier: &Self) -> Option<f64> {
        let apart_ns = self.done_ns.checked_sub(earlier.asked_ns).filter(|apart| *apart > 0)?;
        let now = i128::from(self.answered_ns) - i128::from(self.done_ns);
        let then = i128::from(earlier.received_ns) - i128::from(earlier.asked_ns);
        Some((now - then) as f64 / apart_ns as f64)
    }
}

impl Drift {
    /// The range that satisfies the bounds of all pairs of exchanges.
    fn from_exchanges(exchanges: &VecDeque<Exchange>) -> Self {
        let (mut least, mut most) = (-DRIFT, DRIFT);
        for (at, later) in exchanges.iter().enumerate() {
            for earlier in exchanges.iter().take(at) {
                most = later.drift_max_since(earlier).map_or(most, |max| most.min(max));
                least = later.drift_min_since(earlier).map_or(least, |min| least.max(min));
            }
        }
        match least <= most {
            true => Self {
                middle: f64::midpoint(least, most),
                error: ((most - least) / 2.0 + WANDER).min(DRIFT),
            },
            // Contradicting bounds: one of the clocks is being slewed.
            false => Self::default(),
        }
    }
}

impl ClockMap {
    /// Adds an exchange. One whose times run backwards is ignored.
    pub fn add(&mut self, exchange: Exchange) {
        if exchange.done_ns < exchange.asked_ns || exchange.answered_ns < exchange.received_ns {
            return;
        }
        let now_ns = exchange.done_ns;
        self.exchanges.retain(|known| now_ns.saturating_sub(known.done_ns) <= AGE_NS_MAX);
        if self.exchanges.len() == EXCHANGES_MAX {
            let errors = self.exchanges.iter().map(|known| known.error_ns(now_ns, self.drift));
            let worst = errors.enumerate().max_by_key(|(_, error_ns)| *error_ns);
            worst.map(|(at, _)| self.exchanges.remove(at));
        }
        self.exchanges.push_back(exchange);
        self.drift = Drift::from_exchanges(&self.exchanges);
    }

    /// Number of remembered exchanges.
    pub fn exchanges(&self) -> usize {
        self.exchanges.len()
    }

    /// How much faster the remote clock runs, as a fraction, and the bound of that figure's error.
    pub const fn drift(&self) -> (f64, f64) {
        (self.drift.middle, self.drift.error)
    }

    /// Maps `there_ns` of the remote clock to the local one; `None` before the first exchange.
    pub fn map(&self, there_ns: u64) -> Option<MappedTime> {
        let newest_ns = self.exchanges.back()?.done_ns;
        let error_ns = |exchange: &Exchange, at_ns| exchange.error_ns(at_ns, self.drift);
        let best = self.exchanges.iter().min_by_key(|exchange| error_ns(exchange, newest_ns))?;
        let undrifted_ns = (2 * i128::from(there_ns) - best.offset_doubled_ns()) / 2;
        let age_ns = undrifted_ns - i128::from(best.done_ns);
        let at_ns = undrifted_ns - (age_ns as f64 * self.drift.middle) as i128;
        let at_ns = u64::try_from(at_ns.max(0)).unwrap_or(u64::MAX);
        Some(MappedTime { at_ns, error_ns: error_ns(best, at_ns.max(newest_ns)) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An exchange with a clock that is `offset_ns` ahead, with the given network and processing
    /// times.
    fn exchange(
        at_ns: u64,
        offset_ns: u64,
        there_ns: u64,
        thinking_ns: u64,
        back_ns: u64,
    ) -> Exchange {
        let received_ns = at_ns + there_ns + offset_ns;
        let answered_ns = received_ns + thinking_ns;
        Exchange {
            asked_ns: at_ns,
            received_ns,
            answered_ns,
            done_ns: at_ns + there_ns + thinking_ns + back_ns,
        }
    }

    #[test]
    fn the_exchange_with_the_tightest_bound_is_used() {
        let mut map = ClockMap::default();
        assert_eq!(map.map(0), None);
        let offset_ns = 1_000_000_000_000;
        map.add(exchange(1_000_000, offset_ns, 9_000_000, 5_000_000, 1_000_000));
        map.add(exchange(20_000_000, offset_ns, 50_000, 7_000_000, 50_000));
        map.add(exchange(40_000_000, offset_ns, 1_000_000, 0, 9_000_000));
        let mapped = map.map(offset_ns + 60_000_000).expect("has exchanges");
        assert_eq!(mapped.at_ns, 60_000_000);
        assert!((50_000..60_000).contains(&mapped.error_ns), "{mapped:?}");
    }

    #[test]
    fn bounds_widen_with_age() {
        let mut map = ClockMap::default();
        map.add(exchange(0, 0, 10_000, 0, 10_000));
        // A minute later the first one may be off by 6 ms, more than this one's 2 ms.
        map.add(exchange(60_000_000_000, 3_000_000, 2_000_000, 0, 2_000_000));
        let mapped = map.map(60_010_000_000).expect("has exchanges");
        assert!(mapped.at_ns.abs_diff(60_007_000_000) < 100_000, "{mapped:?}");
        for _ in 0..2 * EXCHANGES_MAX {
            map.add(exchange(61_000_000_000, 0, 1, 0, 1));
        }
        assert_eq!(map.exchanges.len(), EXCHANGES_MAX);
    }

    /// The reading of a clock with this offset and drift.
    fn there_ns(at_ns: u64, offset_ns: u64, drift: f64) -> u64 {
        offset_ns + at_ns.saturating_add_signed((at_ns as f64 * drift) as i64)
    }

    /// An exchange with such a clock.
    fn drifting(at_ns: u64, drift: f64, (there, back): (u64, u64)) -> Exchange {
        let received_ns = there_ns(at_ns + there, 1 << 40, drift);
        Exchange {
            asked_ns: at_ns,
            received_ns,
            answered_ns: received_ns + 1,
            done_ns: at_ns + there + back + 1,
        }
    }

    #[test]
    fn a_constant_drift_is_measured() {
        let mut map = ClockMap::default();
        for second in 0..60 {
            map.add(drifting(second * 1_000_000_000, 60e-6, (40_000, 60_000)));
        }
        // The network becomes slow: the measured drift must keep the bound tight.
        for second in 60..100 {
            map.add(drifting(second * 1_000_000_000, 60e-6, (20_000_000, 80_000_000)));
        }
        let at_ns = 100_000_000_000;
        let mapped = map.map(there_ns(at_ns, 1 << 40, 60e-6)).expect("has exchanges");
        assert!(mapped.at_ns.abs_diff(at_ns) <= mapped.error_ns, "{mapped:?}");
        // Without a measured drift, 40 s would add 4 ms.
        assert!(mapped.error_ns < 500_000, "{mapped:?}");
    }

    #[test]
    fn a_slewed_clock_resets_the_drift() {
        let mut map = ClockMap::default();
        for second in 0..10 {
            map.add(drifting(second * 1_000_000_000, 50e-6, (10_000, 10_000)));
        }
        map.add(drifting(10_000_000_000, 400e-6, (10_000, 10_000)));
        assert_eq!(map.drift, Drift::default());
    }

    #[test]
    fn ticks_skip_missed_ones() {
        let second = Duration::from_secs(1);
        assert_eq!(next_tick_ns(10_000_000_000, second, 10_000_000_001), 11_000_000_000);
        assert_eq!(next_tick_ns(10_000_000_000, second, 13_500_000_000), 14_000_000_000);
        assert_eq!(next_tick_ns(10_000_000_000, second, 0), 11_000_000_000);
    }

    #[test]
    fn times_that_run_backwards_are_ignored() {
        let mut map = ClockMap::default();
        map.add(Exchange { asked_ns: 5, received_ns: 1, answered_ns: 2, done_ns: 4 });
        map.add(Exchange { asked_ns: 5, received_ns: 3, answered_ns: 2, done_ns: 9 });
        assert_eq!(map.map(1), None);
    }

    proptest! {
        #[test]
        fn the_true_time_is_within_the_bound_under_drift(
            drift in -90e-6_f64..90e-6,
            ways in proptest::collection::vec((0_u64..1 << 27, 0_u64..1 << 27), 1..80),
            later_ns in 0_u64..10_000_000_000,
        ) {
            let mut map = ClockMap::default();
            let mut at_ns = 0;
            for way in ways {
                let exchange = drifting(at_ns, drift, way);
                at_ns = exchange.done_ns + 500_000_000;
                map.add(exchange);
            }
            let true_ns = at_ns + later_ns;
            let mapped = map.map(there_ns(true_ns, 1 << 40, drift)).expect("has exchanges");
            prop_assert!(mapped.at_ns.abs_diff(true_ns) <= mapped.error_ns, "{:?}", mapped);
        }

        #[test]
        fn the_true_time_is_within_the_bound(
            offset_ns in 0_u64..1 << 50,
            ways in proptest::collection::vec(
                (0_u64..1 << 30, 0_u64..1 << 20, 0_u64..1 << 30),
                1..40,
            ),
            later_ns in 0_u64..10_000_000_000,
        ) {
            let mut map = ClockMap::default();
            let mut at_ns = 0;
            for (there_ns, thinking_ns, back_ns) in ways {
                let exchange = exchange(at_ns, offset_ns, there_ns, thinking_ns, back_ns);
                at_ns = exchange.done_ns + 1_000_000_000;
                map.add(exchange);
            }
            let true_ns = at_ns + later_ns;
            let mapped = map.map(true_ns + offset_ns).expect("has exchanges");
            prop_assert!(mapped.at_ns.abs_diff(true_ns) <= mapped.error_ns);
        }
    }
}
