//! The values of a histogram and how often each occurred.

use hdrhistogram::Histogram;

/// Samples needed beyond a percentile before it is sent: with fewer, a single sample decides. The
/// run record has the same rule.
const SAMPLES_BEYOND: f64 = 10.0;

/// A percentile that outputs send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedPercentile {
    /// Name, such as `p99`.
    pub name: &'static str,
    /// Name of its value in microseconds, such as `p99_us`.
    pub name_us: &'static str,
    /// Its share of the samples, in units of 1/10,000.
    ten_thousandths: u32,
}

impl NamedPercentile {
    /// All that are sent.
    pub const ALL: [Self; 6] = [
        Self { name: "p50", name_us: "p50_us", ten_thousandths: 5_000 },
        Self { name: "p90", name_us: "p90_us", ten_thousandths: 9_000 },
        Self { name: "p95", name_us: "p95_us", ten_thousandths: 9_500 },
        Self { name: "p99", name_us: "p99_us", ten_thousandths: 9_900 },
        Self { name: "p999", name_us: "p999_us", ten_thousandths: 9_990 },
        Self { name: "p9999", name_us: "p9999_us", ten_thousandths: 9_999 },
    ];

    /// The share of the samples at or below it, 0 to 1.
    pub fn quantile(self) -> f64 {
        f64::from(self.ten_thousandths) / 10_000.0
    }
}

/// Statistics of the durations of one window, in microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyStatistics {
    /// Number of samples.
    pub count: u64,
    /// Their mean.
    pub mean_us: Option<f64>,
    /// The least.
    pub min_us: Option<u64>,
    /// The largest.
    pub max_us: Option<u64>,
    /// Percentiles that enough samples determine.
    pub percentiles: Vec<(NamedPercentile, u64)>,
}

/// Durations in microseconds, in ascending order, with the number of samples of each.
///
/// Holds what a histogram recorded and nothing for values that did not occur, so that a second of
/// latencies is some kilobytes; the precision is that of the histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buckets {
    values: Vec<(u64, u64)>,
    count: u64,
    sum_us: f64,
    /// Exact, where `values` has them to three digits.
    min_us: u64,
    max_us: u64,
}

impl Buckets {
    /// The contents of a histogram of microseconds.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        let values: Vec<(u64, u64)> = histogram
            .iter_recorded()
            .map(|step| {
                (histogram.highest_equivalent(step.value_iterated_to()), step.count_at_value())
            })
            .collect();
        let sum_us = values
            .iter()
            .map(|(value, count)| histogram.median_equivalent(*value) as f64 * *count as f64)
            .sum();
        let (min_us, max_us) = (histogram.min(), histogram.max());
        Self { values, count: histogram.len(), sum_us, min_us, max_us }
    }

    /// Values in microseconds, ascending, with their counts; a value stands for those of its bucket
    /// of the histogram and is the largest of these.
    pub fn values(&self) -> &[(u64, u64)] {
        &self.values
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Are there no samples?
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Sum of the samples in microseconds.
    pub fn sum_us(&self) -> f64 {
        self.sum_us
    }

    /// Mean in microseconds, if there are samples.
    pub fn mean_us(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_us / self.count as f64)
    }

    /// The least in microseconds, if there are samples.
    pub fn min_us(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_us)
    }

    /// The largest in microseconds, if there are samples.
    pub fn max_us(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_us)
    }

    /// A percentile in microseconds, or `None` with fewer than 10 / (1 - q) samples.
    pub fn percentile(&self, percentile: NamedPercentile) -> Option<u64> {
        let quantile = percentile.quantile();
        // A little slack, since 1 - q is not exact: 0.1 % of 10,000 must count as 10.
        let beyond = self.count as f64 * (1.0 - quantile);
        (beyond >= SAMPLES_BEYOND - 1e-6).then(|| self.at(quantile))
    }

    /// The statistics that are sent.
    pub fn statistics(&self) -> LatencyStatistics {
        let known = |one| self.percentile(one).map(|value| (one, value));
        LatencyStatistics {
            count: self.count,
            mean_us: self.mean_us(),
            min_us: self.min_us(),
            max_us: self.max_us(),
            percentiles: NamedPercentile::ALL.into_iter().filter_map(known).collect(),
        }
    }

    /// The smallest value that has this share of the samples at or below it; 0 without samples.
    pub fn at(&self, quantile: f64) -> u64 {
        let rank = (quantile * self.count as f64).ceil().max(1.0) as u64;
        let mut so_far = 0;
        for (value, count) in &self.values {
            so_far += count;
            if so_far >= rank {
                return *value;
            }
        }
        self.max_us
    }

    /// Adds the samples of `other`.
    pub fn add(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        let mut merged = Vec::with_capacity(self.values.len().max(other.values.len()));
        let mut ours = self.values.iter().peekable();
        let mut theirs = other.values.iter().peekable();
        loop {
            merged.push(match (ours.peek(), theirs.peek()) {
                (Some(own), Some(other)) if own.0 == other.0 => (own.0, own.1 + other.1),
                (Some(own), Some(other)) if own.0 < other.0 => **own,
                (_, Some(other)) => **other,
                (Some(own), None) => **own,
                (None, None) => break,
            });
            // Invariant: both sides ascend and the smaller head was taken, or both equal heads.
            let taken = merged.last().map_or(0, |(value, _)| *value);
            ours.next_if(|(value, _)| *value == taken);
            theirs.next_if(|(value, _)| *value == taken);
        }
        self.min_us = if self.is_empty() { other.min_us } else { self.min_us.min(other.min_us) };
        self.max_us = self.max_us.max(other.max_us);
        self.values = merged;
        self.count += other.count;
        self.sum_us += other.sum_us;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).expect("three digits");
        for value in values {
            histogram.record(*value).expect("grows");
        }
        histogram
    }

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let values = |count| Buckets::of(&histogram(&(1..=count).collect::<Vec<_>>()));
        let [p50, p90, ..] = NamedPercentile::ALL;
        assert_eq!((values(19).percentile(p50), values(20).percentile(p50)), (None, Some(10)));
        assert_eq!((values(99).percentile(p90), values(100).percentile(p90)), (None, Some(90)));
        assert_eq!(values(0).max_us(), None);
    }

    proptest! {
        #[test]
        fn percentiles_and_sums_are_those_of_the_histogram(
            values in prop::collection::vec(0_u64..100_000_000, 1..400)
        ) {
            let histogram = histogram(&values);
            let buckets = Buckets::of(&histogram);
            prop_assert_eq!(buckets.count(), values.len() as u64);
            prop_assert_eq!(buckets.max_us(), Some(histogram.max()));
            prop_assert_eq!(buckets.min_us(), Some(histogram.min()));
            let mean = buckets.mean_us().expect("has samples");
            prop_assert!((mean - histogram.mean()).abs() <= 1e-6 * mean.max(1.0));
            for quantile in [0.1, 0.5, 0.9, 0.99, 1.0] {
                prop_assert_eq!(buckets.at(quantile), histogram.value_at_quantile(quantile));
            }
        }

        #[test]
        fn merged_buckets_are_those_of_the_merged_histogram(
            left in prop::collection::vec(0_u64..10_000_000, 0..200),
            right in prop::collection::vec(0_u64..10_000_000, 0..200),
        ) {
            let mut merged = Buckets::of(&histogram(&left));
            merged.add(&Buckets::of(&histogram(&right)));
            let all: Vec<u64> = left.into_iter().chain(right).collect();
            let expected = Buckets::of(&histogram(&all));
            prop_assert_eq!(merged.values(), expected.values());
            prop_assert_eq!(merged.count(), expected.count());
            prop_assert_eq!(merged.min_us(), expected.min_us());
            prop_assert_eq!(merged.max_us(), expected.max_us());
            prop_assert!((merged.sum_us() - expected.sum_us()).abs() <= 1e-6 * expected.sum_us());
        }
    }
}
