//! Rates: so many per second, and a burst beyond that.

const SECOND_NS: u64 = 1_000_000_000;

/// How many things may happen per second, and how many at once after a while without any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// The time that pays for one, times 2^32.
    unit_ns_q32: u64,
    burst_ns: u64,
}

impl Rate {
    /// `per_s` and `burst` are at least 1.
    pub(crate) fn new(per_s: u32, burst: u32) -> Self {
        let unit_ns_q32 = (SECOND_NS << 32) / u64::from(per_s.max(1));
        let burst_ns = u64::from(burst.max(1)).saturating_mul(SECOND_NS);
        Self { unit_ns_q32, burst_ns: burst_ns / u64::from(per_s.max(1)) }
    }

    /// The one by which fewer may happen per second.
    pub(crate) const fn lower(self, other: Self) -> Self {
        if self.unit_ns_q32 >= other.unit_ns_q32 { self } else { other }
    }

    /// The time that pays for the burst.
    pub(crate) const fn burst_ns(&self) -> u64 {
        self.burst_ns
    }

    #[inline]
    fn cost_ns(&self, units: u64) -> u64 {
        let cost = (u128::from(units) * u128::from(self.unit_ns_q32)) >> 32;
        u64::try_from(cost).unwrap_or(u64::MAX)
    }
}

/// What is used up of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// What was taken is paid for at this time.
    paid_ns: u64,
}

impl Bucket {
    /// Takes as many units, unless that is too much now.
    pub(crate) fn try_take(&mut self, rate: &Rate, units: u64, now_ns: u64) -> bool {
        let mut taken = *self;
        let fits = taken.take(rate, units, now_ns).is_none();
        if fits {
            *self = taken;
        }
        fits
    }

    /// Takes as many units in any case. If that is too much now: when it no longer is.
    #[inline]
    pub(crate) fn take(&mut self, rate: &Rate, units: u64, now_ns: u64) -> Option<u64> {
        self.paid_ns = self.paid_ns.max(now_ns).saturating_add(rate.cost_ns(units));
        self.excess_until_ns(rate, now_ns)
    }

    /// Whether too much was taken: when it no longer is.
    pub(crate) fn excess_until_ns(&self, rate: &Rate, now_ns: u64) -> Option<u64> {
        let until_ns = self.paid_ns.saturating_sub(rate.burst_ns);
        (until_ns > now_ns).then_some(until_ns)
    }

    /// Whether all is paid for: it is as a new one.
    pub(crate) const fn is_settled(&self, now_ns: u64) -> bool {
        self.paid_ns <= now_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_lets_through_its_burst_and_then_so_many_per_second() {
        for (per_s, burst) in [(1, 1), (3, 7), (10, 10), (1_000, 1), (999_983, 500)] {
            let rate = Rate::new(per_s, burst);
            let (mut bucket, start_ns) = (Bucket::default(), 5 * SECOND_NS);
            let at_once = (0..1_000).filter(|_| bucket.try_take(&rate, 1, start_ns)).count();
            assert_eq!(at_once, burst as usize, "{per_s} {burst}");
            // Ten seconds, looked at a hundred times each.
            let mut later = 0;
            for step in 1..=1_000 {
                let now_ns = start_ns + step * SECOND_NS / 100;
                while bucket.try_take(&rate, 1, now_ns) {
                    later += 1;
                }
            }
            let expected = 10 * u64::from(per_s);
            // What a burst of one gains between two looks is lost.
            let most = expected.min(1_000 * u64::from(burst)) + 1;
            assert!(later <= most && later + 1 >= most.min(expected), "{per_s} {burst}: {later}");
        }
    }

    #[test]
    fn what_is_taken_beyond_the_burst_has_to_be_waited_for() {
        let rate = Rate::new(1_000, 500);
        let mut bucket = Bucket::default();
        assert_eq!(bucket.take(&rate, 500, SECOND_NS), None);
        // A large unit is taken whole, and paid for later.
        let until_ns = bucket.take(&rate, 2_000, SECOND_NS);
        assert_eq!(until_ns, Some(3 * SECOND_NS));
        assert_eq!(bucket.excess_until_ns(&rate, 3 * SECOND_NS - 1), Some(3 * SECOND_NS));
        assert_eq!(bucket.excess_until_ns(&rate, 3 * SECOND_NS), None);
        assert!(!bucket.is_settled(3 * SECOND_NS) && bucket.is_settled(4 * SECOND_NS));
        assert_eq!(bucket.take(&rate, u64::MAX, 4 * SECOND_NS), Some(u64::MAX - rate.burst_ns));
    }

    #[test]
    fn the_largest_rates_are_exact() {
        let rate = Rate::new(u32::MAX, u32::MAX);
        assert_eq!(rate.cost_ns(u64::from(u32::MAX)), SECOND_NS - 1);
        assert_eq!(Rate::new(1, 1).cost_ns(7), 7 * SECOND_NS);
    }
}
