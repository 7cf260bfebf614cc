//! `latency.hlog`: HdrHistogram's interval log, version 1.3.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use crate::timestamp::Timestamp;

/// Writes one line per histogram: tag, start and length in seconds since the log's start time,
/// largest value, and the compressed histogram. Values are microseconds; the log's reader divides
/// the largest value by 1000, as the format has it, so that column shows milliseconds.
pub struct HistogramLog<W> {
    out: W,
    serializer: V2DeflateSerializer,
    buffer: Vec<u8>,
}

impl<W: Write> HistogramLog<W> {
    /// Begins a log of a run that started at `started`.
    ///
    /// # Errors
    /// When the head cannot be written.
    pub fn new(mut out: W, started: Timestamp) -> io::Result<Self> {
        let seconds = started.seconds();
        writeln!(
            out,
            "#[Logged with tacho {}; values in microseconds]",
            env!("CARGO_PKG_VERSION")
        )?;
        writeln!(out, "#[Histogram log format version 1.3]")?;
        writeln!(out, "#[StartTime: {seconds:.3} (seconds since epoch), {}]", started.rfc3339())?;
        writeln!(
            out,
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
        )?;
        Ok(Self { out, serializer: V2DeflateSerializer::new(), buffer: Vec::new() })
    }

    /// Appends the histogram of one interval; empty ones are left out.
    ///
    /// # Errors
    /// When the line cannot be written.
    pub fn write(
        &mut self,
        tag: &str,
        start_s: f64,
        length_s: f64,
        histogram: &Histogram<u64>,
    ) -> io::Result<()> {
        if histogram.is_empty() {
            return Ok(());
        }
        self.buffer.clear();
        self.serializer
            .serialize(histogram, &mut self.buffer)
            .map_err(|error| io::Error::other(format!("{error:?}")))?;
        let max_ms = histogram.max() as f64 / 1000.0;
        let encoded = STANDARD.encode(&self.buffer);
        writeln!(self.out, "Tag={tag},{start_s:.3},{length_s:.3},{max_ms:.3},{encoded}")
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// When the rest cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W> std::fmt::Debug for HistogramLog<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HistogramLog").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry, Tag};

    use super::*;

    #[test]
    fn an_independent_reader_gets_the_histograms_back() {
        let mut histogram = Histogram::<u64>::new(3).expect("three digits");
        for value in [100, 200, 70_000] {
            histogram.record(value).expect("grows");
        }
        let mut bytes = Vec::new();
        let mut log = HistogramLog::new(&mut bytes, Timestamp::now()).expect("head");
        log.write("e2e", 1.5, 1.0, &histogram).expect("line");
        log.write("service", 1.5, 1.0, &Histogram::new(3).expect("three digits")).expect("none");
        log.flush().expect("flush");
        let intervals: Vec<_> = IntervalLogIterator::new(&bytes)
            .filter_map(|entry| match entry.expect("is a log") {
                LogEntry::Interval(interval) => Some(interval),
                _ => None,
            })
            .collect();
        let [interval] = &intervals[..] else { panic!("{} intervals", intervals.len()) };
        assert_eq!(interval.tag(), Tag::new("e2e"));
        assert_eq!(interval.start_timestamp().as_millis(), 1500);
        assert!((interval.max() - 70.0).abs() < 0.1);
        let bytes = STANDARD.decode(interval.encoded_histogram()).expect("base64");
        let back: Histogram<u64> =
            Deserializer::new().deserialize(&mut &bytes[..]).expect("a histogram");
        assert_eq!(back, histogram);
    }
}
