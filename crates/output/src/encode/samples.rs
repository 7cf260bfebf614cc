//! Points for the tests of encoders.

use hdrhistogram::Histogram;

use crate::buckets::Buckets;
use crate::point::{
    FigureKind, OutputItem, OutputPoint, PointFigure, PointSeries, PointTag, PointTags, PointWindow,
};

/// The second of that number of a load, with latencies of these values in microseconds.
pub(super) fn point(number: u64, values: &[u64]) -> OutputItem {
    let mut histogram = Histogram::new(3).expect("three digits");
    values.iter().for_each(|value| histogram.record(*value).expect("grows"));
    OutputItem::Point(Box::new(OutputPoint {
        series: PointSeries::Load,
        tags: PointTags::default().with(PointTag::Run, "r").with(PointTag::Scenario, "s"),
        window: PointWindow {
            start_ms: number * 1_000,
            end_ms: (number + 1) * 1_000,
            phase: "measure".to_owned(),
            measured: Some(true),
        },
        figures: vec![PointFigure::count("published", 5), PointFigure::gauge("connected", 2.0)],
        latencies: vec![("e2e_latency", Buckets::of(&histogram))],
        statistics: Vec::new(),
        row: None,
    }))
}

/// A second with figures whose names say another thing than their kinds.
pub(super) fn misnamed() -> OutputItem {
    let mut item = point(1, &[]);
    let amount =
        |name| PointFigure { kind: FigureKind::Amount, value: 0.5, ..PointFigure::count(name, 0) };
    if let OutputItem::Point(point) = &mut item {
        point.figures = vec![
            PointFigure::count("retries_after_seconds_count", 5),
            amount("energy_joules"),
            PointFigure { of_histogram: true, ..amount("turn_seconds_sum") },
            PointFigure { of_histogram: true, ..PointFigure::count("turn_seconds_count", 7) },
            PointFigure::gauge("window_total", 1.5),
        ];
    }
    item
}
