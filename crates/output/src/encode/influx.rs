//! InfluxDB by our own names.
//!
//! A measurement per series with a field per figure; figures of parts have a tag `part`. Latencies
//! have the measurement `<series>_latency` with a tag `latency`, and a tag `window` that says which
//! window the percentiles are of: they are fields, in microseconds, and no mean of them is sent.

use super::line::{FieldValue, Lines};
use super::{Encode, OutputBody};
use crate::buckets::LatencyStatistics;
use crate::point::{FigureKind, OutputItem, OutputNote, OutputPoint, PointFigure};

/// The measurement of marks.
const NOTES: &str = "mqtt_load_events";

/// Encodes points as lines.
#[derive(Debug, Default)]
pub(super) struct Influx {
    lines: Lines,
}

impl Encode for Influx {
    fn take(&mut self, item: &OutputItem) {
        match item {
            OutputItem::Point(point) => self.point(point),
            OutputItem::Note(note) => self.note(note),
            OutputItem::End => {}
        }
    }

    fn pending(&self) -> u64 {
        self.lines.count()
    }

    fn body(&mut self) -> Option<OutputBody> {
        self.lines.body()
    }
}

impl Influx {
    fn point(&mut self, point: &OutputPoint) {
        let measurement = point.series.name();
        let window = &point.window;
        let mut tags: Vec<(&str, &str)> = point.tags.iter().collect();
        tags.push(("phase", &window.phase));
        tags.extend(window.measured_name().map(|name| ("measured", name)));
        let mut left: Vec<&PointFigure> = point.figures.iter().collect();
        while let Some(part) = left.first().map(|first| first.part.as_deref()) {
            let (own, others): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|figure| figure.part.as_deref() == part);
            let mut fields: Vec<_> = own.iter().map(|figure| field(figure)).collect();
            // What adds up is divided by it for a rate.
            if part.is_none() || own.iter().any(|figure| figure.kind != FigureKind::Gauge) {
                fields.push(("length_s", FieldValue::Float(window.length_s())));
            }
            let mut tags = tags.clone();
            tags.extend(part.map(|part| ("part", part)));
            self.lines.add(measurement, &tags, &fields, window.end_ms);
            left = others;
        }
        let measurement = format!("{measurement}_latency");
        tags.push(("window", point.series.window_name()));
        for (name, statistics) in point.all_statistics() {
            let mut tags = tags.clone();
            tags.push(("latency", name));
            self.lines.add(&measurement, &tags, &latency(&statistics), window.end_ms);
        }
    }

    fn note(&mut self, note: &OutputNote) {
        let mut tags: Vec<(&str, &str)> = note.tags.iter().collect();
        tags.push(("kind", note.kind));
        self.lines.add(NOTES, &tags, &[("text", FieldValue::Text(&note.text))], note.at_ms);
    }
}

fn field(figure: &PointFigure) -> (&str, FieldValue<'_>) {
    let value = match figure.kind {
        FigureKind::Count => FieldValue::Integer(figure.value as u64),
        FigureKind::Amount | FigureKind::Gauge => FieldValue::Float(figure.value),
    };
    (&figure.name, value)
}

/// The fields of one latency.
fn latency(statistics: &LatencyStatistics) -> Vec<(&'static str, FieldValue<'static>)> {
    let mut fields = vec![("count", FieldValue::Integer(statistics.count))];
    fields.extend(statistics.mean_us.map(|mean| ("mean_us", FieldValue::Float(mean))));
    fields.extend(statistics.min_us.map(|min| ("min_us", FieldValue::Integer(min))));
    fields.extend(statistics.max_us.map(|max| ("max_us", FieldValue::Integer(max))));
    let percentiles = statistics.percentiles.iter();
    fields.extend(percentiles.map(|(one, value)| (one.name_us, FieldValue::Integer(*value))));
    fields
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;
    use crate::buckets::Buckets;
    use crate::point::{PointSeries, PointTag, PointTags, PointWindow};

    #[test]
    fn a_point_is_a_line_per_part_and_per_latency() {
        let mut histogram = Histogram::new(3).expect("three digits");
        for value in 1..=20 {
            histogram.record(value * 10).expect("grows");
        }
        let part = |part: &str, value| PointFigure {
            part: Some(part.to_owned()),
            ..PointFigure::gauge("rx", value)
        };
        let point = OutputPoint {
            series: PointSeries::Load,
            tags: PointTags::default().with(PointTag::Run, "r 1"),
            window: PointWindow {
                start_ms: 1_000,
                end_ms: 2_000,
                phase: "measure".to_owned(),
                measured: Some(true),
            },
            figures: vec![
                PointFigure::count("published", 7),
                part("eth0", 1.0),
                PointFigure::gauge("connected", 2.5),
                part("eth1", 2.0),
                PointFigure { part: Some("qos=1".to_owned()), ..PointFigure::count("in", 3) },
            ],
            latencies: vec![
                ("e2e_latency", Buckets::of(&histogram)),
                ("other", Buckets::default()),
            ],
            statistics: Vec::new(),
            row: None,
        };
        let mut influx = Influx::default();
        influx.take(&OutputItem::Point(Box::new(point)));
        influx.take(&OutputItem::Note(OutputNote {
            at_ms: 3_000,
            tags: PointTags::default().with(PointTag::Run, "r 1"),
            kind: "ended",
            text: "ok".to_owned(),
        }));
        assert_eq!(influx.pending(), 6);
        let body = influx.body().expect("has lines");
        assert_eq!(
            String::from_utf8(body.bytes).expect("UTF-8"),
            "mqtt_load,measured=true,phase=measure,run=r\\ 1 published=7i,connected=2.5,length_s=1 2000\n\
             mqtt_load,measured=true,part=eth0,phase=measure,run=r\\ 1 rx=1 2000\n\
             mqtt_load,measured=true,part=eth1,phase=measure,run=r\\ 1 rx=2 2000\n\
             mqtt_load,measured=true,part=qos\\=1,phase=measure,run=r\\ 1 in=3i,length_s=1 2000\n\
             mqtt_load_latency,latency=e2e_latency,measured=true,phase=measure,run=r\\ 1,window=1s \
             count=20i,mean_us=105,min_us=10i,max_us=200i,p50_us=100i 2000\n\
             mqtt_load_events,kind=ended,run=r\\ 1 text=\"ok\" 3000\n"
        );
        assert!(influx.body().is_none(), "a body is taken once");
    }
}
