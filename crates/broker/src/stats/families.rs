//! Counters with a label, and histograms.

use tacho_codec::{QoS, ReasonCode};

use super::Counter;

/// A counter for each QoS.
#[derive(Debug, Default)]
pub struct ByQos([Counter; 3]);

impl ByQos {
    #[inline]
    pub(crate) fn increment(&self, qos: QoS) {
        self.0[qos as usize].increment();
    }

    /// The values of QoS 0, 1 and 2.
    pub fn values(&self) -> [u64; 3] {
        std::array::from_fn(|qos| self.0[qos].value())
    }

    /// Their sum.
    pub fn total(&self) -> u64 {
        self.values().iter().sum()
    }
}

/// A counter for each reason code.
#[derive(Debug)]
pub struct ByReason(Box<[Counter; 256]>);

impl Default for ByReason {
    fn default() -> Self {
        Self(Box::new(std::array::from_fn(|_| Counter::default())))
    }
}

impl ByReason {
    pub(crate) fn increment(&self, reason: ReasonCode) {
        self.0[usize::from(reason.value())].increment();
    }

    /// The present value for one reason.
    pub fn value(&self, reason: ReasonCode) -> u64 {
        self.0[usize::from(reason.value())].value()
    }

    /// The sum over all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().map(Counter::value).sum()
    }
}

/// A histogram whose bucket bounds grow by a factor of four, beginning with 2^`FIRST`. An
/// observation costs two plain additions.
#[derive(Debug, Default)]
pub struct Histogram<const FIRST: u32> {
    /// The last bucket is for values above all bounds.
    buckets: [Counter; BOUNDS + 1],
    sum: Counter,
}

/// Number of finite bounds.
const BOUNDS: usize = 10;

impl<const FIRST: u32> Histogram<FIRST> {
    #[inline]
    pub(crate) fn observe(&self, value: u64) {
        self.buckets[Self::bucket(value)].increment();
        self.sum.add(value);
    }

    /// The first bucket whose bound is `value` or more.
    #[inline]
    fn bucket(value: u64) -> usize {
        let bits = u64::BITS - value.saturating_sub(1).leading_zeros();
        (bits.saturating_sub(FIRST).div_ceil(2) as usize).min(BOUNDS)
    }

    /// The upper bound of each bucket except the last, which has none.
    pub fn bounds() -> [u64; BOUNDS] {
        std::array::from_fn(|bucket| 1 << (FIRST + 2 * bucket as u32))
    }

    /// Observations per bucket; one bucket more than there are bounds.
    pub fn buckets(&self) -> [u64; BOUNDS + 1] {
        std::array::from_fn(|bucket| self.buckets[bucket].value())
    }

    /// The sum of all values observed.
    pub fn sum(&self) -> u64 {
        self.sum.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_counts_in_the_first_bucket_whose_bound_reaches_it() {
        let bounds = Histogram::<4>::bounds();
        assert_eq!((bounds[0], bounds[1], bounds[9]), (16, 64, 4 << 20));
        for bound in bounds {
            for value in [bound - 1, bound, bound + 1] {
                let expected = bounds.iter().position(|bound| value <= *bound).unwrap_or(BOUNDS);
                assert_eq!(Histogram::<4>::bucket(value), expected, "{value}");
            }
        }
        assert_eq!(Histogram::<4>::bucket(0), 0);
        assert_eq!(Histogram::<4>::bucket(u64::MAX), BOUNDS);
    }

    #[test]
    fn histogram_counts_and_sums_observations() {
        let histogram = Histogram::<4>::default();
        [3, 16, 17, 5 << 20].into_iter().for_each(|value| histogram.observe(value));
        let mut expected = [0; BOUNDS + 1];
        (expected[0], expected[1], expected[BOUNDS]) = (2, 1, 1);
        assert_eq!(histogram.buckets(), expected);
        assert_eq!(histogram.sum(), 36 + (5 << 20));
    }

    #[test]
    fn plain_counters_have_unique_names_and_help_texts() {
        let names: Vec<_> = crate::ShardStats::PLAIN.iter().map(|(name, _)| *name).collect();
        assert!(names.len() > 30);
        for (at, (name, help)) in crate::ShardStats::PLAIN.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name} twice");
            assert!(help.trim().len() > 10 && help.trim_end().ends_with('.'), "{name}: {help}");
        }
    }
}
