//! Latency statistics out of histograms.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use tacho_scenario::threshold::Statistic;

/// Samples needed beyond a percentile before it is printed: with fewer, a single message decides.
const SAMPLES_BEYOND: f64 = 10.0;

/// The statistics of one latency in microseconds. Absent (`null`) where there are too few samples:
/// a percentile q needs at least 10 / (1 - q) of them, mean and maximum at least one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyStats {
    /// Number of samples.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 95th percentile.
    pub p95: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p999: Option<u64>,
    /// 99.99th percentile.
    pub p9999: Option<u64>,
    /// Largest.
    pub max: Option<u64>,
}

/// A point of a percentile curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Share of samples at or below the value, 0 to 1.
    pub quantile: f64,
    /// The value in microseconds.
    pub value_us: u64,
}

/// The value of `quantile` in microseconds, or `None` with fewer than 10 / (1 - q) samples.
pub fn percentile(histogram: &Histogram<u64>, quantile: f64) -> Option<u64> {
    // A little slack, since 1 - q is not exact: 0.1 % of 10,000 must count as 10.
    let beyond = histogram.len() as f64 * (1.0 - quantile);
    (beyond >= SAMPLES_BEYOND - 1e-6).then(|| histogram.value_at_quantile(quantile))
}

impl LatencyStats {
    /// The statistics of `histogram`, which holds microseconds.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let any = !histogram.is_empty();
        Self {
            count: histogram.len(),
            mean: any.then(|| (histogram.mean() * 10.0).round() / 10.0),
            p50: percentile(histogram, 0.5),
            p90: percentile(histogram, 0.9),
            p95: percentile(histogram, 0.95),
            p99: percentile(histogram, 0.99),
            p999: percentile(histogram, 0.999),
            p9999: percentile(histogram, 0.9999),
            max: any.then(|| histogram.max()),
        }
    }

    /// One of the statistics in microseconds.
    pub fn get(&self, statistic: Statistic) -> Option<f64> {
        let whole = |value: Option<u64>| value.map(|value| value as f64);
        match statistic {
            Statistic::Mean => self.mean,
            Statistic::P50 => whole(self.p50),
            Statistic::P90 => whole(self.p90),
            Statistic::P95 => whole(self.p95),
            Statistic::P99 => whole(self.p99),
            Statistic::P999 => whole(self.p999),
            Statistic::Max => whole(self.max),
        }
    }
}

/// The percentile curve of `histogram`: denser towards 1, up to the last percentile that has
/// enough samples, and the maximum.
pub fn curve(histogram: &Histogram<u64>) -> Vec<CurvePoint> {
    /// Points per factor of ten of 1 / (1 - q).
    const STEPS_PER_DECADE: u32 = 20;
    let mut points = Vec::new();
    for step in 0..=6 * STEPS_PER_DECADE {
        let quantile = 1.0 - 10_f64.powf(-f64::from(step) / f64::from(STEPS_PER_DECADE));
        match percentile(histogram, quantile) {
            Some(value_us) => points.push(CurvePoint { quantile, value_us }),
            None => break,
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(samples: u64) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).expect("three digits");
        for value in 1..=samples {
            histogram.record(value).expect("grows");
        }
        histogram
    }

    #[test]
    fn percentiles_need_enough_samples() {
        let stats = LatencyStats::of(&histogram(0));
        assert_eq!(stats, LatencyStats::default());
        let stats = LatencyStats::of(&histogram(19));
        assert_eq!((stats.p50, stats.max), (None, Some(19)));
        let stats = LatencyStats::of(&histogram(20));
        assert_eq!((stats.p50, stats.p90), (Some(10), None));
        let stats = LatencyStats::of(&histogram(999));
        assert_eq!((stats.p95.is_some(), stats.p99), (true, None));
        let stats = LatencyStats::of(&histogram(1000));
        assert_eq!((stats.p99, stats.p999), (Some(990), None));
        let stats = LatencyStats::of(&histogram(10_000));
        assert!(stats.p999.is_some() && stats.p9999.is_none());
        assert_eq!(stats.mean.map(f64::round), Some(5001.0));
    }

    #[test]
    fn the_curve_ends_where_samples_do() {
        let points = curve(&histogram(1000));
        assert_eq!(points.first().map(|point| point.quantile), Some(0.0));
        let last = points.last().expect("has points");
        assert!((last.quantile - 0.99).abs() < 1e-9, "{last:?}");
        assert!(points.windows(2).all(|pair| pair[0].value_us <= pair[1].value_us));
        assert!(curve(&histogram(0)).is_empty());
    }
}
