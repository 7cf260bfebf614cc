//! Latency histograms: microseconds, three significant digits.

/// A latency histogram: microseconds, three significant digits, resized automatically.
pub type Histogram = hdrhistogram::Histogram<u64>;

/// An empty [`Histogram`].
pub fn histogram() -> Histogram {
    // Invariant: 3 is within the 0..=5 that the constructor accepts.
    Histogram::new(3).expect("three significant digits are supported")
}

/// A histogram that implements `Default` (empty).
#[derive(Debug, Clone)]
pub(crate) struct Spread(pub(crate) Histogram);

impl Default for Spread {
    fn default() -> Self {
        Self(histogram())
    }
}

/// Merges histograms without loss.
pub(crate) fn add(sum: &mut Histogram, part: &Histogram) {
    // Invariant: all histograms resize automatically and have the same precision.
    sum.add(part).expect("histograms of the same precision add up");
}

/// Records one value, in nanoseconds.
#[inline]
pub(crate) fn record(histogram: &mut Histogram, value_ns: u64) {
    // Invariant: the histogram resizes to any value.
    histogram.record(value_ns / 1_000).expect("an automatically resized histogram takes any value");
}
