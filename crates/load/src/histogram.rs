//! Latency histograms: microseconds, three significant digits.

use serde::{Deserialize, Serialize};

/// A latency histogram: microseconds, three significant digits, resized automatically.
pub type Histogram = hdrhistogram::Histogram<u64>;

/// An empty [`Histogram`].
pub fn histogram() -> Histogram {
    // Invariant: 3 is within the 0..=5 that the constructor accepts.
    Histogram::new(3).expect("three significant digits are supported")
}

/// A histogram that implements `Default` (empty).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Spread(#[serde(with = "form")] pub(crate) Histogram);

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

/// Histograms as HdrHistogram's own form, V2.
pub(crate) mod form {
    use hdrhistogram::serialization::{Deserializer as V2Deserializer, Serializer as _};
    use serde::{Deserialize, Deserializer, Serializer, de, ser};

    use super::Histogram;

    pub(crate) fn serialize<S: Serializer>(value: &Histogram, to: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        let mut serializer = hdrhistogram::serialization::V2Serializer::new();
        serializer.serialize(value, &mut bytes).map_err(ser::Error::custom)?;
        to.serialize_bytes(&bytes)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Histogram, D::Error> {
        let bytes = <&[u8]>::deserialize(from)?;
        let read: Histogram =
            V2Deserializer::new().deserialize(&mut &*bytes).map_err(de::Error::custom)?;
        if read.sigfig() != 3 {
            return Err(de::Error::custom("a histogram of another precision"));
        }
        // What was read has the range of the sender; added to, it must grow like the others.
        let mut histogram = super::histogram();
        histogram.add(read).map_err(de::Error::custom)?;
        Ok(histogram)
    }
}
