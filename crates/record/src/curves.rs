//! What reports draw of a step: latencies by percentile, and its seconds.

use tacho_load::PhaseKind;

use crate::latency::CurvePoint;
use crate::series::SeriesRow;

/// The curves of a step.
#[derive(Clone, Debug, Default)]
pub struct StepCurves {
    /// End to end, by percentile.
    pub latency: Vec<CurvePoint>,
    /// Written to received.
    pub service: Vec<CurvePoint>,
    /// Due to written.
    pub send_delay: Vec<CurvePoint>,
    /// The measured window of a step of a campaign.
    pub seconds: Vec<StepSecond>,
}

/// A second of a measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepSecond {
    /// Start in seconds since the start of the window.
    pub start_s: f64,
    /// Length in seconds.
    pub length_s: f64,
    /// Verified first deliveries per second.
    pub received_per_s: f64,
    /// Mean latency in microseconds.
    pub mean_us: Option<f64>,
    /// 99th percentile of it.
    pub p99_us: Option<u64>,
    /// The greatest.
    pub max_us: Option<u64>,
}

impl StepSecond {
    /// The measured seconds among the rows of a run with one window.
    pub fn of(rows: &[SeriesRow]) -> Vec<Self> {
        let measured = || rows.iter().filter(|row| row.phase == PhaseKind::Measure);
        let begin_s = measured().next().map_or(0.0, |row| row.start_s);
        let second = |row: &SeriesRow| Self {
            start_s: row.start_s - begin_s,
            length_s: row.length_s,
            received_per_s: row.received_per_s,
            mean_us: row.e2e_mean_us,
            p99_us: row.e2e_p99_us,
            max_us: row.e2e_max_us,
        };
        measured().map(second).collect()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_those_of_the_measured_window() {
        let row = |start_s: f64, phase: PhaseKind| SeriesRow {
            start_s,
            length_s: 1.0,
            phase: phase.into(),
            received_per_s: start_s * 10.0,
            ..SeriesRow::default()
        };
        let rows = [
            row(2.0, PhaseKind::WarmUp),
            row(3.0, PhaseKind::Measure),
            row(4.0, PhaseKind::Measure),
            row(5.0, PhaseKind::Drain),
        ];
        let seconds: Vec<(f64, f64)> = StepSecond::of(&rows)
            .iter()
            .map(|second| (second.start_s, second.received_per_s))
            .collect();
        assert_eq!(seconds, [(0.0, 30.0), (1.0, 40.0)]);
        assert_eq!(StepSecond::of(&[]), []);
    }
}
