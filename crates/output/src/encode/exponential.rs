//! Exponential histograms: Prometheus' native histograms and those of OpenTelemetry.

use std::collections::BTreeMap;

use crate::buckets::Buckets;

/// The finest resolution that both know: a bucket's upper bound is 2^(1/256) times its lower bound,
/// so that its middle is within 0.14 % of each value in it.
pub(super) const SCHEMA: i32 = 8;

/// Buckets per factor of two.
const PER_DOUBLING: f64 = (1 << SCHEMA) as f64;

/// Durations in seconds. The bucket `i` holds values above 2^((i - 1) / 256) s and up to
/// 2^(i / 256) s.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Exponential {
    pub(super) counts: BTreeMap<i32, u64>,
    /// Samples of less than a microsecond, which a histogram of microseconds has as 0.
    pub(super) zero: u64,
    pub(super) count: u64,
    pub(super) sum_s: f64,
    pub(super) min_s: Option<f64>,
    pub(super) max_s: Option<f64>,
}

impl Exponential {
    /// Adds samples.
    pub(super) fn add(&mut self, buckets: &Buckets) {
        for (value_us, count) in buckets.values() {
            match value_us {
                0 => self.zero += count,
                _ => *self.counts.entry(index(*value_us as f64 / 1e6)).or_default() += count,
            }
        }
        self.count += buckets.count();
        self.sum_s += buckets.sum_us() / 1e6;
        let seconds = |us: u64| us as f64 / 1e6;
        if let Some(least) = buckets.min_us().map(seconds) {
            self.min_s = Some(self.min_s.map_or(least, |known| known.min(least)));
        }
        if let Some(most) = buckets.max_us().map(seconds) {
            self.max_s = Some(self.max_s.map_or(most, |known| known.max(most)));
        }
    }
}

/// The bucket of a value above 0.
fn index(value_s: f64) -> i32 {
    // Invariant: microseconds from 1 to 2^64 have logarithms from -20 to 44.
    (value_s.log2() * PER_DOUBLING).ceil() as i32
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    use super::*;

    fn middle_s(index: i32) -> f64 {
        let upper = 2_f64.powf(f64::from(index) / PER_DOUBLING);
        let lower = 2_f64.powf(f64::from(index - 1) / PER_DOUBLING);
        // The harmonic mean is as far from both, relative to the value.
        2.0 * upper * lower / (upper + lower)
    }

    proptest! {
        #[test]
        fn the_middle_of_a_bucket_is_within_its_error(value_us in 1_u64..100_000_000) {
            let value_s = value_us as f64 / 1e6;
            let error = (middle_s(index(value_s)) - value_s).abs() / value_s;
            prop_assert!(error < 0.0014, "{error}");
        }
    }

    #[test]
    fn powers_of_two_are_upper_bounds() {
        assert_eq!((index(1.0), index(0.5), index(2.0)), (0, -256, 256));
        assert_eq!(index(1.000_001), 1);
    }

    #[test]
    fn histograms_add_up() {
        let mut histogram = Histogram::new(3).expect("three digits");
        for value in [0, 0, 100, 100, 2_000_000] {
            histogram.record(value).expect("grows");
        }
        let mut sum = Exponential::default();
        sum.add(&Buckets::of(&histogram));
        sum.add(&Buckets::of(&histogram));
        sum.add(&Buckets::default());
        assert_eq!((sum.count, sum.zero), (10, 4));
        assert_eq!(sum.counts.values().sum::<u64>(), 6);
        assert_eq!(sum.counts.get(&index(100e-6)), Some(&4));
        assert!((sum.sum_s - 4.0004).abs() < 0.002, "{}", sum.sum_s);
        assert_eq!(sum.min_s, Some(0.0));
        assert!(sum.max_s.is_some_and(|most| (most - 2.0).abs() < 0.001), "{sum:?}");
    }
}
