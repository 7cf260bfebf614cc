//! Latencies by percentile.

use crate::latency::CurvePoint;

/// Percentile curves of a step.
#[derive(Clone, Debug, Default)]
pub struct StepCurves {
    /// End to end.
    pub latency: Vec<CurvePoint>,
    /// Written to received.
    pub service: Vec<CurvePoint>,
    /// Due to written.
    pub send_delay: Vec<CurvePoint>,
}

/// The latency of one side by percentile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideCurve {
    /// Name of the side.
    pub name: String,
    /// Of the messages of all repeats that count, as one.
    pub pooled: Vec<CurvePoint>,
    /// The highest of the repeats' own curves at each percentile; empty with one repeat.
    pub slowest: Vec<CurvePoint>,
}
