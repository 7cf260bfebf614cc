//! JSON lines: an object per point.

use serde_json::{Map, Value, json};

use super::{Encode, OutputBody};
use crate::buckets::LatencyStatistics;
use crate::point::{FigureKind, OutputItem, OutputNote, OutputPoint, PointFigure, PointTags};

/// Encodes points as objects.
#[derive(Debug, Default)]
pub(super) struct JsonLines {
    text: String,
    lines: u64,
}

impl Encode for JsonLines {
    fn take(&mut self, item: &OutputItem) {
        let value = match item {
            OutputItem::Point(point) => of_point(point),
            OutputItem::Note(note) => of_note(note),
            OutputItem::End => return,
        };
        self.text.push_str(&value.to_string());
        self.text.push('\n');
        self.lines += 1;
    }

    fn pending(&self) -> u64 {
        self.lines
    }

    fn body(&mut self) -> Option<OutputBody> {
        let (text, records) = (std::mem::take(&mut self.text), std::mem::take(&mut self.lines));
        (records > 0).then(|| OutputBody { bytes: text.into_bytes(), records })
    }
}

fn of_tags(tags: &PointTags) -> Map<String, Value> {
    tags.iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

fn of_note(note: &OutputNote) -> Value {
    json!({
        "series": "mqtt_load_events",
        "end_ms": note.at_ms,
        "tags": of_tags(&note.tags),
        "kind": note.kind,
        "text": note.text,
    })
}

fn of_point(point: &OutputPoint) -> Value {
    let window = &point.window;
    let mut object = json!({
        "series": point.series.name(),
        "start_ms": window.start_ms,
        "end_ms": window.end_ms,
        "tags": of_tags(&point.tags),
    });
    // Invariant: it was made as an object.
    let Value::Object(fields) = &mut object else { return object };
    if !window.phase.is_empty() {
        fields.insert("phase".to_owned(), window.phase.as_str().into());
    }
    if let Some(measured) = window.measured {
        fields.insert("measured".to_owned(), measured.into());
    }
    let (mut values, mut parts) = (Map::new(), Map::new());
    for figure in &point.figures {
        match &figure.part {
            None => values.insert(figure.name.to_string(), number(figure)),
            Some(part) => {
                let part = parts.entry(part.as_str()).or_insert_with(|| json!({}));
                let part = part.as_object_mut();
                part.and_then(|part| part.insert(figure.name.to_string(), number(figure)))
            }
        };
    }
    fields.insert("values".to_owned(), values.into());
    if !parts.is_empty() {
        fields.insert("parts".to_owned(), parts.into());
    }
    let latencies: Map<String, Value> = point
        .all_statistics()
        .iter()
        .map(|(name, statistics)| ((*name).to_owned(), of_latency(statistics)))
        .collect();
    if !latencies.is_empty() {
        fields.insert("latencies".to_owned(), latencies.into());
    }
    object
}

fn number(figure: &PointFigure) -> Value {
    match figure.kind {
        FigureKind::Count => (figure.value as u64).into(),
        FigureKind::Amount | FigureKind::Gauge => figure.value.into(),
    }
}

fn of_latency(statistics: &LatencyStatistics) -> Value {
    let mut fields = json!({ "count": statistics.count });
    for (name, value) in [
        ("mean_us", statistics.mean_us.map(Value::from)),
        ("min_us", statistics.min_us.map(Value::from)),
        ("max_us", statistics.max_us.map(Value::from)),
    ] {
        if let Some(value) = value {
            fields[name] = value;
        }
    }
    for (percentile, value) in &statistics.percentiles {
        fields[percentile.name_us] = (*value).into();
    }
    fields
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;
    use crate::buckets::Buckets;
    use crate::point::{PointSeries, PointTag, PointWindow};

    #[test]
    fn an_object_per_point_with_its_parts_and_latencies() {
        let mut histogram = Histogram::new(3).expect("three digits");
        (0..20).for_each(|_| histogram.record(150).expect("grows"));
        let point = OutputPoint {
            series: PointSeries::Host,
            tags: PointTags::default().with(PointTag::Host, "h"),
            window: PointWindow { start_ms: 1, end_ms: 2, ..PointWindow::default() },
            figures: vec![
                PointFigure::count("seen", 3),
                PointFigure { part: Some("0".to_owned()), ..PointFigure::gauge("busy", 1.5) },
            ],
            latencies: vec![("e2e_latency", Buckets::of(&histogram)), ("none", Buckets::default())],
            statistics: Vec::new(),
            row: None,
        };
        let mut lines = JsonLines::default();
        lines.take(&OutputItem::Point(Box::new(point)));
        let body = lines.body().expect("a line");
        let object: Value = serde_json::from_slice(&body.bytes).expect("is JSON");
        assert_eq!(
            object,
            json!({
                "series": "tacho_host", "start_ms": 1, "end_ms": 2, "tags": {"host": "h"},
                "values": {"seen": 3}, "parts": {"0": {"busy": 1.5}},
                "latencies": {"e2e_latency": {
                    "count": 20, "mean_us": 150.0, "min_us": 150, "max_us": 150, "p50_us": 150
                }},
            })
        );
    }
}
