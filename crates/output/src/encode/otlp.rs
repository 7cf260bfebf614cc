//! OpenTelemetry's protocol over HTTP, with protobuf.
//!
//! Counts are monotonic sums, latencies exponential histograms of scale 8, and gauges and
//! percentiles of named windows are gauges. Metrics are named so that the usual translation to
//! Prometheus gives the names that remote write has.

use std::collections::BTreeMap;

use prost::Message as _;

use super::exponential::{Exponential, SCHEMA};
use super::otlp_messages::{
    AnyValue, ExportRequest, ExportResponse, HistogramBuckets, HistogramPoint,
    InstrumentationScope, KeyValue, MetricData, NumberPoint, NumberValue, OtlpGauge, OtlpHistogram,
    OtlpMetric, OtlpSum, ResourceMetrics, ScopeMetrics, TelemetryResource,
};
use super::totals::{SeriesKey, SeriesKind, SeriesTotals, key_of, key_of_figure, percentiles};
use super::{Encode, OutputBody};
use crate::point::{FigureKind, OutputItem, OutputPoint};
use crate::target::Temporality;

/// Encodes points as requests of OTLP.
#[derive(Debug)]
pub(super) struct Otlp {
    temporality: Temporality,
    totals: SeriesTotals,
    metrics: BTreeMap<String, OtlpMetric>,
    data_points: u64,
}

impl Otlp {
    pub(super) fn new(temporality: Temporality) -> Self {
        Self {
            temporality,
            totals: SeriesTotals::default(),
            metrics: BTreeMap::new(),
            data_points: 0,
        }
    }
}

impl Encode for Otlp {
    fn take(&mut self, item: &OutputItem) {
        match item {
            OutputItem::Point(point) => {
                match self.temporality {
                    Temporality::Cumulative => self.cumulative(point),
                    Temporality::Delta => self.delta(point),
                }
                self.gauges(point);
            }
            OutputItem::Note(_) => {}
            OutputItem::End => self.totals.end().for_each(drop),
        }
    }

    fn pending(&self) -> u64 {
        self.data_points
    }

    fn body(&mut self) -> Option<OutputBody> {
        let records = std::mem::take(&mut self.data_points);
        let metrics: Vec<OtlpMetric> = std::mem::take(&mut self.metrics).into_values().collect();
        let version = env!("CARGO_PKG_VERSION");
        let request = ExportRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(TelemetryResource {
                    attributes: vec![
                        attribute("service.name", "tacho"),
                        attribute("service.version", version),
                    ],
                }),
                scope_metrics: vec![ScopeMetrics {
                    scope: Some(InstrumentationScope {
                        name: "tacho".to_owned(),
                        version: version.to_owned(),
                    }),
                    metrics,
                }],
            }],
        };
        (records > 0).then(|| OutputBody { bytes: request.encode_to_vec(), records })
    }

    fn left_out(&mut self) -> u64 {
        self.totals.left_out()
    }
}

impl Otlp {
    /// Sums since the start of each series.
    fn cumulative(&mut self, point: &OutputPoint) {
        let mut totals = std::mem::take(&mut self.totals);
        if let Some(subject) = totals.take(point) {
            let end_ms = subject.end_ms;
            for (key, total) in &subject.counters {
                self.count(key, (total.start_ms, end_ms), total.value);
            }
            for (key, total) in &subject.histograms {
                self.histogram(key, (total.start_ms, end_ms), &total.value);
            }
        }
        self.totals = totals;
    }

    /// Sums of this window alone.
    fn delta(&mut self, point: &OutputPoint) {
        let window = (point.window.start_ms, point.window.end_ms);
        for figure in point.figures.iter().filter(|one| one.kind != FigureKind::Gauge) {
            self.count(&key_of_figure(point, figure), window, figure.value);
        }
        for (name, buckets) in point.latencies.iter().filter(|(_, buckets)| !buckets.is_empty()) {
            let mut histogram = Exponential::default();
            histogram.add(buckets);
            self.histogram(&key_of(point, name, SeriesKind::Latency, None), window, &histogram);
        }
    }

    fn gauges(&mut self, point: &OutputPoint) {
        let at_ms = point.window.end_ms;
        for figure in point.figures.iter().filter(|one| one.kind == FigureKind::Gauge) {
            self.gauge(&key_of_figure(point, figure), at_ms, figure.value);
        }
        for (key, value_s) in percentiles(point) {
            self.gauge(&key, at_ms, value_s);
        }
    }

    fn count(&mut self, key: &SeriesKey, window: (u64, u64), value: f64) {
        let value = match key.kind {
            SeriesKind::Counter { is_whole: true, .. } => NumberValue::Int(value as i64),
            _ => NumberValue::Double(value),
        };
        let number = number(key, window, value);
        let temporality = self.temporality.number();
        let empty = || {
            MetricData::Sum(OtlpSum {
                data_points: Vec::new(),
                aggregation_temporality: temporality,
                is_monotonic: true,
            })
        };
        if let Some(MetricData::Sum(sum)) = self.metric(key, empty) {
            sum.data_points.push(number);
        }
    }

    fn gauge(&mut self, key: &SeriesKey, at_ms: u64, value: f64) {
        let number = number(key, (0, at_ms), NumberValue::Double(value));
        let empty = || MetricData::Gauge(OtlpGauge { data_points: Vec::new() });
        if let Some(MetricData::Gauge(gauge)) = self.metric(key, empty) {
            gauge.data_points.push(number);
        }
    }

    fn histogram(&mut self, key: &SeriesKey, (start_ms, end_ms): (u64, u64), of: &Exponential) {
        let temporality = self.temporality.number();
        let point = HistogramPoint {
            attributes: attributes(key),
            start_time_unix_nano: start_ms * 1_000_000,
            time_unix_nano: end_ms * 1_000_000,
            count: of.count,
            sum: Some(of.sum_s),
            scale: SCHEMA,
            zero_count: of.zero,
            positive: Some(buckets(of)),
            min: of.min_s,
            max: of.max_s,
        };
        let empty = || {
            MetricData::ExponentialHistogram(OtlpHistogram {
                data_points: Vec::new(),
                aggregation_temporality: temporality,
            })
        };
        if let Some(MetricData::ExponentialHistogram(histogram)) = self.metric(key, empty) {
            histogram.data_points.push(point);
        }
    }

    /// The data of a metric, which gets one more data point.
    fn metric(
        &mut self,
        key: &SeriesKey,
        empty: impl FnOnce() -> MetricData,
    ) -> Option<&mut MetricData> {
        let unit = match key.kind {
            SeriesKind::Percentile | SeriesKind::Latency => "s",
            SeriesKind::Counter { .. } | SeriesKind::Gauge => "",
        };
        self.data_points += 1;
        let metric = self.metrics.entry(key.name.clone()).or_insert_with(|| OtlpMetric {
            name: key.name.clone(),
            unit: unit.to_owned(),
            data: Some(empty()),
        });
        metric.data.as_mut()
    }
}

impl Temporality {
    /// Its number in the protocol.
    const fn number(self) -> i32 {
        match self {
            Self::Delta => 1,
            Self::Cumulative => 2,
        }
    }
}

fn number(key: &SeriesKey, (start_ms, end_ms): (u64, u64), value: NumberValue) -> NumberPoint {
    NumberPoint {
        start_time_unix_nano: start_ms * 1_000_000,
        time_unix_nano: end_ms * 1_000_000,
        value: Some(value),
        attributes: attributes(key),
    }
}

fn attributes(key: &SeriesKey) -> Vec<KeyValue> {
    key.labels.iter().map(|(name, value)| attribute(name, value)).collect()
}

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { string_value: Some(value.to_owned()) });
    KeyValue { key: key.to_owned(), value }
}

/// All buckets from the first to the last, also empty ones. Bucket `i` there holds values up to
/// 2^((i + 1) / 256): its index is one less than in a native histogram.
fn buckets(histogram: &Exponential) -> HistogramBuckets {
    let mut counts = histogram.counts.iter();
    let Some((first, count)) = counts.next() else { return HistogramBuckets::default() };
    let mut all = HistogramBuckets { offset: first - 1, bucket_counts: vec![*count] };
    for (index, count) in counts {
        // Invariant: indices ascend, and lie within some 20,000 of each other.
        all.bucket_counts.resize((index - first) as usize, 0);
        all.bucket_counts.push(*count);
    }
    all
}

/// The data points that an answer refuses, and why.
pub(crate) fn refused_data_points(answer: &[u8]) -> (u64, String) {
    let partial = ExportResponse::decode(answer).ok().and_then(|answer| answer.partial_success);
    partial.map_or_else(Default::default, |partial| {
        (u64::try_from(partial.rejected_data_points).unwrap_or(0), partial.error_message)
    })
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
    use opentelemetry_proto::tonic::metrics::v1::metric::Data;
    use opentelemetry_proto::tonic::metrics::v1::{ExponentialHistogramDataPoint, Metric};

    use super::super::samples::{misnamed, point};
    use super::*;

    /// The metrics of the next request, as OpenTelemetry's own messages have them.
    fn metrics(otlp: &mut Otlp) -> Vec<Metric> {
        let body = otlp.body().expect("data points");
        let request = <ExportMetricsServiceRequest as prost::Message>::decode(&body.bytes[..]);
        let request = request.expect("decodes");
        let [resource] = &request.resource_metrics[..] else { panic!("{request:?}") };
        let attributes = &resource.resource.as_ref().expect("a resource").attributes;
        assert_eq!(attributes[0].key, "service.name");
        let [scope] = &resource.scope_metrics[..] else { panic!("{request:?}") };
        scope.metrics.clone()
    }

    fn histograms(metrics: &[Metric], name: &str) -> (i32, Vec<ExponentialHistogramDataPoint>) {
        let metric = metrics.iter().find(|metric| metric.name == name).expect("the metric");
        match &metric.data {
            Some(Data::ExponentialHistogram(histogram)) => {
                assert_eq!(metric.unit, "s");
                (histogram.aggregation_temporality, histogram.data_points.clone())
            }
            other => panic!("{other:?}"),
        }
    }

    fn sums(metrics: &[Metric], name: &str) -> (i32, Vec<(u64, u64, i64)>) {
        use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
        let metric = metrics.iter().find(|metric| metric.name == name).expect("the metric");
        let Some(Data::Sum(sum)) = &metric.data else { panic!("{metric:?}") };
        assert!(sum.is_monotonic);
        let value = |value: &Option<Value>| match value {
            Some(Value::AsInt(value)) => *value,
            other => panic!("{other:?}"),
        };
        let points = sum.data_points.iter().map(|point| {
            let ms = |nano: u64| nano / 1_000_000;
            assert_eq!(point.attributes.len(), 3, "measured, run and scenario");
            (ms(point.start_time_unix_nano), ms(point.time_unix_nano), value(&point.value))
        });
        (sum.aggregation_temporality, points.collect())
    }

    #[test]
    fn cumulative_sums_grow_from_the_start_of_their_series() {
        let mut otlp = Otlp::new(Temporality::Cumulative);
        otlp.take(&point(1, &[100; 3]));
        otlp.take(&point(2, &[100; 2]));
        assert_eq!(otlp.pending(), 6);
        let metrics = metrics(&mut otlp);
        let counted = sums(&metrics, "mqtt_load_published");
        assert_eq!(counted, (2, vec![(1_000, 2_000, 5), (1_000, 3_000, 10)]));
        let (temporality, points) = histograms(&metrics, "mqtt_load_e2e_latency");
        assert_eq!((temporality, points[0].count, points[1].count), (2, 3, 5));
    }

    #[test]
    fn deltas_are_those_of_their_window() {
        let mut otlp = Otlp::new(Temporality::Delta);
        otlp.take(&point(1, &[100; 3]));
        otlp.take(&point(2, &[100; 2]));
        let metrics = metrics(&mut otlp);
        let counted = sums(&metrics, "mqtt_load_published");
        assert_eq!(counted, (1, vec![(1_000, 2_000, 5), (2_000, 3_000, 5)]));
        let (temporality, points) = histograms(&metrics, "mqtt_load_e2e_latency");
        assert_eq!((temporality, points[0].count, points[1].count), (1, 3, 2));
    }

    #[test]
    fn exponential_histograms_hold_each_value_in_its_bucket() {
        let values = [0, 90, 100, 100, 1_000, 2_000_000];
        let mut otlp = Otlp::new(Temporality::Delta);
        otlp.take(&point(1, &values));
        let (_, points) = histograms(&metrics(&mut otlp), "mqtt_load_e2e_latency");
        let [point] = &points[..] else { panic!("{points:?}") };
        assert_eq!((point.count, point.zero_count, point.scale), (6, 1, 8));
        assert_eq!((point.min, point.max.map(f64::round)), (Some(0.0), Some(2.0)));
        let positive = point.positive.as_ref().expect("buckets");
        assert_eq!(positive.bucket_counts.iter().sum::<u64>(), 5);
        let base = 2_f64.powf(1.0 / 256.0);
        for (value_us, count) in [(90.0, 1), (100.0, 2), (1_000.0, 1)] {
            let value = value_us / 1e6;
            let at = (0..positive.bucket_counts.len()).find(|at| {
                let index = f64::from(positive.offset) + *at as f64;
                base.powf(index) < value && value <= base.powf(index + 1.0)
            });
            assert_eq!(positive.bucket_counts[at.expect("a bucket")], count, "{value}");
        }
    }

    #[test]
    fn figures_are_what_their_kind_says_whatever_their_names() {
        use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
        for temporality in [Temporality::Cumulative, Temporality::Delta] {
            let mut otlp = Otlp::new(temporality);
            otlp.take(&misnamed());
            let metrics = metrics(&mut otlp);
            let shown: Vec<(&str, bool, Option<Value>)> = metrics
                .iter()
                .map(|metric| {
                    let (is_sum, points) = match metric.data.as_ref().expect("data") {
                        Data::Sum(sum) => (true, &sum.data_points),
                        Data::Gauge(gauge) => (false, &gauge.data_points),
                        other => panic!("{other:?}"),
                    };
                    (metric.name.as_str(), is_sum, points[0].value)
                })
                .collect();
            let expected = [
                ("mqtt_load_energy_joules", true, Some(Value::AsDouble(0.5))),
                ("mqtt_load_retries_after_seconds_count", true, Some(Value::AsInt(5))),
                ("mqtt_load_turn_seconds_count", true, Some(Value::AsInt(7))),
                ("mqtt_load_turn_seconds_sum", true, Some(Value::AsDouble(0.5))),
                ("mqtt_load_window_total", false, Some(Value::AsDouble(1.5))),
            ];
            assert_eq!(shown, expected, "{temporality:?}");
        }
    }

    #[test]
    fn a_partial_success_says_what_was_refused() {
        let partial = super::super::otlp_messages::PartialSuccess {
            rejected_data_points: 3,
            error_message: "too old".to_owned(),
        };
        let answer = ExportResponse { partial_success: Some(partial) }.encode_to_vec();
        assert_eq!(refused_data_points(&answer), (3, "too old".to_owned()));
        assert_eq!(refused_data_points(b""), (0, String::new()));
        assert_eq!(refused_data_points(b"<html>"), (0, String::new()));
    }
}
