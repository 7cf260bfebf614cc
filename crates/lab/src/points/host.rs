//! Hosts as points.

use std::time::{SystemTime, UNIX_EPOCH};

use tacho_monitor::{HostRow, now_ns};
use tacho_output::{
    OutputItem, OutputPoint, PointFigure, PointSeries, PointTag, PointTags, PointWindow,
};

/// The point of a host's row.
pub(super) fn point(row: &HostRow, tags: PointTags, window: PointWindow) -> OutputPoint {
    let tags = tags
        .with(PointTag::Host, &row.host)
        .with(PointTag::Broker, row.target.as_deref().unwrap_or_default());
    let figure = |metric: tacho_monitor::Metric| PointFigure {
        part: metric.instance,
        ..PointFigure::gauge(metric.name, metric.value)
    };
    OutputPoint {
        series: PointSeries::Host,
        tags,
        window,
        figures: row.metrics().into_iter().map(figure).collect(),
        latencies: Vec::new(),
        statistics: Vec::new(),
        row: None,
    }
}

/// Makes points of rows that belong to no run.
#[derive(Clone, Copy, Debug)]
pub struct HostClock {
    /// What to add to the monotonic clock for Unix time, in milliseconds.
    offset_ms: u64,
}

impl HostClock {
    /// Compares the clocks of this machine.
    pub fn now() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ms = u64::try_from(unix.as_millis()).unwrap_or(u64::MAX);
        Self { offset_ms: unix_ms.saturating_sub(now_ns() / 1_000_000) }
    }

    /// The point of a row.
    pub fn point(self, row: &HostRow) -> OutputItem {
        let end_ms = self.offset_ms.saturating_add(row.at_ns / 1_000_000);
        let start_ms = end_ms.saturating_sub(row.length_ns / 1_000_000);
        let window = PointWindow { start_ms, end_ms, phase: String::new(), measured: None };
        OutputItem::Point(Box::new(point(row, PointTags::default(), window)))
    }
}
