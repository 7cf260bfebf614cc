//! Prometheus' remote write 1.0.
//!
//! Counters and native histograms since the start of their series, gauges as they are; percentiles
//! of each window are gauges, too. A new series begins with 0 at the start of its first window, so
//! that `increase` covers that window. A gauge that stops, and every series at the end, gets a
//! stale marker: no line continues over a gap.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message as _;

use super::exponential::{Exponential, SCHEMA};
use super::remote_write::{
    BucketSpan, FloatSample, LabelPair, MetadataType, MetricMetadata, NativeHistogram, TimeSeries,
    WriteRequest,
};
use super::totals::{SeriesKey, SeriesKind, SeriesTotals, SubjectTotals};
use super::{Encode, OutputBody};
use crate::point::{OutputItem, PointSeries};

/// The value that ends a series.
const STALE: u64 = 0x7ff0_0000_0000_0002;

/// Below it a value counts as 0: what Prometheus' client libraries use.
const ZERO_THRESHOLD: f64 = 2.938_735_877_055_719e-39;

/// Encodes points as requests of remote write.
#[derive(Debug)]
pub(super) struct Prometheus {
    /// Are native histograms sent, which the receiver may not know?
    histograms: bool,
    totals: SeriesTotals,
    /// Samples for the next request.
    series: BTreeMap<SeriesKey, TimeSeries>,
    samples: u64,
    /// Families whose kind was told.
    told: BTreeSet<String>,
    metadata: Vec<MetricMetadata>,
}

impl Prometheus {
    pub(super) fn new(histograms: bool) -> Self {
        Self {
            histograms,
            totals: SeriesTotals::default(),
            series: BTreeMap::new(),
            samples: 0,
            told: BTreeSet::new(),
            metadata: Vec::new(),
        }
    }
}

impl Encode for Prometheus {
    fn take(&mut self, item: &OutputItem) {
        let mut out = Outgoing {
            series: &mut self.series,
            samples: &mut self.samples,
            told: &mut self.told,
            metadata: &mut self.metadata,
            histograms: self.histograms,
        };
        match item {
            OutputItem::Point(point) => {
                if let Some(subject) = self.totals.take(point) {
                    out.subject(subject);
                }
            }
            OutputItem::Note(_) => {}
            // What was measured stays visible for the receiver's look-back time.
            OutputItem::End => self
                .totals
                .end()
                .filter(|(series, _)| *series != PointSeries::Step)
                .for_each(|(_, subject)| out.end(&subject)),
        }
    }

    fn pending(&self) -> u64 {
        self.samples
    }

    fn body(&mut self) -> Option<OutputBody> {
        let records = std::mem::take(&mut self.samples);
        let series = std::mem::take(&mut self.series);
        let request = WriteRequest {
            timeseries: series.into_values().collect(),
            metadata: std::mem::take(&mut self.metadata),
        };
        (records > 0).then(|| OutputBody { bytes: request.encode_to_vec(), records })
    }

    fn left_out(&mut self) -> u64 {
        self.totals.left_out()
    }
}

/// Appends samples to the next request.
struct Outgoing<'a> {
    series: &'a mut BTreeMap<SeriesKey, TimeSeries>,
    samples: &'a mut u64,
    told: &'a mut BTreeSet<String>,
    metadata: &'a mut Vec<MetricMetadata>,
    histograms: bool,
}

impl Outgoing<'_> {
    /// What a subject has at the end of its last point.
    fn subject(&mut self, subject: &SubjectTotals) {
        let at_ms = subject.end_ms;
        for (key, total) in &subject.counters {
            if total.is_new {
                self.number(key, total.start_ms, 0.0);
            }
            self.number(key, at_ms, total.value);
        }
        for (key, total) in &subject.histograms {
            if total.is_new {
                self.histogram(key, native(&Exponential::default(), total.start_ms));
            }
            self.histogram(key, native(&total.value, at_ms));
        }
        for (key, value) in &subject.gauges {
            self.number(key, at_ms, *value);
        }
        for key in &subject.gone {
            self.number(key, at_ms, f64::from_bits(STALE));
        }
    }

    /// The end of a subject's series.
    fn end(&mut self, subject: &SubjectTotals) {
        let (at_ms, stale) = (subject.end_ms + 1, f64::from_bits(STALE));
        for key in subject.counters.keys() {
            self.number(key, at_ms, stale);
        }
        for key in subject.histograms.keys() {
            let empty = native(&Exponential::default(), at_ms);
            self.histogram(key, NativeHistogram { sum: stale, ..empty });
        }
        for key in subject.gauges.keys() {
            self.number(key, at_ms, stale);
        }
    }

    fn number(&mut self, key: &SeriesKey, at_ms: u64, value: f64) {
        let timestamp = i64::try_from(at_ms).unwrap_or(i64::MAX);
        self.of(key).samples.push(FloatSample { value, timestamp });
    }

    fn histogram(&mut self, key: &SeriesKey, histogram: NativeHistogram) {
        if self.histograms {
            self.of(key).histograms.push(histogram);
        }
    }

    /// The series that gets one more sample.
    fn of(&mut self, key: &SeriesKey) -> &mut TimeSeries {
        let (kind, ending) = type_and_ending(key.kind);
        let name = format!("{}{ending}", key.name);
        *self.samples += 1;
        if !self.told.contains(&name) {
            self.told.insert(name.clone());
            let metadata = MetricMetadata { r#type: kind.into(), metric_family_name: name.clone() };
            self.metadata.push(metadata);
        }
        self.series.entry(key.clone()).or_insert_with(|| {
            let pair = |name: &str, value: String| LabelPair { name: name.to_owned(), value };
            let labels = key.labels.iter().map(|(name, value)| pair(name, value.clone()));
            // `_` sorts before all letters.
            let labels = std::iter::once(pair("__name__", name)).chain(labels).collect();
            TimeSeries { labels, ..TimeSeries::default() }
        })
    }
}

/// What a series is called there, and the end of its name.
fn type_and_ending(kind: SeriesKind) -> (MetadataType, &'static str) {
    match kind {
        // Of a histogram whose buckets are not sent: its name has an ending.
        SeriesKind::Counter { of_histogram: true, .. } => (MetadataType::Counter, ""),
        SeriesKind::Counter { .. } => (MetadataType::Counter, "_total"),
        SeriesKind::Gauge => (MetadataType::Gauge, ""),
        SeriesKind::Percentile => (MetadataType::Gauge, "_seconds"),
        SeriesKind::Latency => (MetadataType::Histogram, "_seconds"),
    }
}

/// A native histogram: spans of buckets that follow each other, counts as differences.
fn native(histogram: &Exponential, at_ms: u64) -> NativeHistogram {
    let mut spans: Vec<BucketSpan> = Vec::new();
    let (mut deltas, mut last) = (Vec::with_capacity(histogram.counts.len()), 0_i64);
    let mut next = 0;
    for (index, count) in &histogram.counts {
        match spans.last_mut() {
            Some(span) if *index == next => span.length += 1,
            _ => spans.push(BucketSpan { offset: index - next, length: 1 }),
        }
        next = index + 1;
        let count = i64::try_from(*count).unwrap_or(i64::MAX);
        deltas.push(count - last);
        last = count;
    }
    NativeHistogram {
        count_int: Some(histogram.count),
        sum: histogram.sum_s,
        schema: SCHEMA,
        zero_threshold: ZERO_THRESHOLD,
        zero_count_int: Some(histogram.zero),
        positive_spans: spans,
        positive_deltas: deltas,
        timestamp: i64::try_from(at_ms).unwrap_or(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{misnamed, point};
    use super::*;

    fn request(prometheus: &mut Prometheus) -> WriteRequest {
        let body = prometheus.body().expect("samples");
        let request = WriteRequest::decode(&body.bytes[..]).expect("decodes");
        let samples = |series: &TimeSeries| series.samples.len() + series.histograms.len();
        let count = request.timeseries.iter().map(samples).sum::<usize>();
        assert_eq!(body.records, count as u64);
        request
    }

    fn labels(series: &TimeSeries) -> String {
        let labels = series.labels.iter().map(|label| format!("{}={}", label.name, label.value));
        labels.collect::<Vec<_>>().join(",")
    }

    fn by_labels<'r>(request: &'r WriteRequest, wanted: &str) -> &'r TimeSeries {
        let all: Vec<String> = request.timeseries.iter().map(labels).collect();
        let found = request.timeseries.iter().find(|series| labels(series) == wanted);
        found.unwrap_or_else(|| panic!("no {wanted} in {all:#?}"))
    }

    #[test]
    fn series_begin_with_zero_grow_and_end_with_stale_markers() {
        let mut prometheus = Prometheus::new(true);
        prometheus.take(&point(1, &[100, 100, 150]));
        prometheus.take(&point(2, &[100]));
        let first = request(&mut prometheus);
        let rest = "measured=true,run=r,scenario=s";
        let counter = by_labels(&first, &format!("__name__=mqtt_load_published_total,{rest}"));
        let samples = |series: &TimeSeries| -> Vec<(i64, f64)> {
            series.samples.iter().map(|sample| (sample.timestamp, sample.value)).collect()
        };
        assert_eq!(samples(counter), [(1_000, 0.0), (2_000, 5.0), (3_000, 10.0)]);
        let gauge = by_labels(&first, &format!("__name__=mqtt_load_connected,{rest}"));
        assert_eq!(samples(gauge), [(2_000, 2.0), (3_000, 2.0)]);
        let latency = by_labels(&first, &format!("__name__=mqtt_load_e2e_latency_seconds,{rest}"));
        let counts: Vec<_> = latency.histograms.iter().map(|one| one.count_int).collect();
        assert_eq!(counts, [Some(0), Some(3), Some(4)]);
        let kinds: Vec<i32> = first.metadata.iter().map(|one| one.r#type).collect();
        assert_eq!(kinds.len(), 3, "{:?}", first.metadata);

        prometheus.take(&OutputItem::End);
        let last = request(&mut prometheus);
        assert!(last.metadata.is_empty(), "kinds are told once");
        assert_eq!(last.timeseries.len(), 3);
        for series in &last.timeseries {
            let (at_ms, bits) = match (&series.samples[..], &series.histograms[..]) {
                ([sample], []) => (sample.timestamp, sample.value.to_bits()),
                ([], [histogram]) => (histogram.timestamp, histogram.sum.to_bits()),
                other => panic!("{other:?}"),
            };
            assert_eq!((at_ms, bits), (3_001, STALE), "{}", labels(series));
        }
        prometheus.take(&OutputItem::End);
        assert!(prometheus.body().is_none(), "they end once");
    }

    #[test]
    fn native_histograms_are_spans_of_differences() {
        let counts = [(-3, 2), (-2, 5), (1, 4), (2, 4)];
        let histogram = Exponential {
            counts: counts.into_iter().collect(),
            zero: 1,
            count: 16,
            sum_s: 2.5,
            ..Exponential::default()
        };
        let native = native(&histogram, 7);
        let spans: Vec<_> =
            native.positive_spans.iter().map(|span| (span.offset, span.length)).collect();
        assert_eq!(spans, [(-3, 2), (2, 2)]);
        assert_eq!(native.positive_deltas, [2, 3, -1, 0]);
        assert_eq!((native.count_int, native.zero_count_int), (Some(16), Some(1)));
    }

    #[test]
    fn names_end_as_their_kinds_say() {
        let mut prometheus = Prometheus::new(true);
        prometheus.take(&misnamed());
        let request = request(&mut prometheus);
        let shown: Vec<(&str, i32)> = request
            .metadata
            .iter()
            .map(|one| (one.metric_family_name.as_str(), one.r#type))
            .collect();
        let (counter, gauge) = (MetadataType::Counter.into(), MetadataType::Gauge.into());
        let expected = [
            ("mqtt_load_energy_joules_total", counter),
            ("mqtt_load_retries_after_seconds_count_total", counter),
            ("mqtt_load_turn_seconds_count", counter),
            ("mqtt_load_turn_seconds_sum", counter),
            ("mqtt_load_window_total", gauge),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn percentiles_are_gauges_of_their_window_also_without_histograms() {
        let mut prometheus = Prometheus::new(false);
        prometheus.take(&point(1, &[100; 1000]));
        prometheus.take(&point(2, &[100; 19]));
        let request = request(&mut prometheus);
        let rest = "measured=true,run=r,scenario=s,window=1s";
        let p99 =
            by_labels(&request, &format!("__name__=mqtt_load_e2e_latency_p99_seconds,{rest}"));
        assert_eq!(p99.samples.len(), 2);
        assert_eq!(p99.samples[0].value, 100e-6);
        assert_eq!(p99.samples[1].value.to_bits(), STALE, "too few samples end the line");
        assert!(request.timeseries.iter().all(|series| series.histograms.is_empty()));
    }
}
