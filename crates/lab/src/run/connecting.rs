//! How the clients of a run connected.

use super::numbers::round;
use tacho_load::{Histogram, Summary};
use tacho_record::LatencyStats;

/// The figures of connecting, out of the engine's summary.
#[derive(Debug, Default)]
pub(super) struct Connecting {
    pub(super) connect_us: LatencyStats,
    pub(super) handshake_us: LatencyStats,
    pub(super) suback_us: LatencyStats,
    /// From the first attempt to the last connection.
    pub(super) connect_s: Option<f64>,
    pub(super) connect_per_s: Option<f64>,
    /// Clients that connected.
    pub(super) connected: u64,
}

impl Connecting {
    /// Everything is empty without a summary: the engine ended without one.
    pub(super) fn from_summary(summary: Option<&Summary>) -> Self {
        let Some(summary) = summary else { return Self::default() };
        let stats = |histogram: &Histogram| LatencyStats::of(histogram);
        let span_ns = Some(summary.connect_span_ns).filter(|span_ns| *span_ns > 0);
        let connect_s = span_ns.map(|span_ns| span_ns as f64 / 1e9);
        Self {
            connect_us: stats(&summary.connect),
            handshake_us: stats(&summary.handshake),
            suback_us: stats(&summary.suback),
            connect_s,
            connect_per_s: connect_s.map(|seconds| round(summary.connected as f64 / seconds, 1)),
            connected: summary.connected,
        }
    }
}
