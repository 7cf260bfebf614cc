//! The progress of a run, for the lists of the console.

use std::time::Duration;

use tacho_console::{ProgressFile, StepProgress};
use tacho_lab::campaign::StepNumber;
use tacho_lab::run::Progress;
use tacho_record::{PhaseKind, SeriesRow};
use tacho_scenario::threshold::{LatencyKind, Metric, Statistic, Threshold, Thresholds};
use tacho_scenario::{Group, Scenario};

/// Shorter seconds, at the ends of phases, say little.
const SECOND_MIN_S: f64 = 0.5;

/// A run begins, one of several where it has a number.
pub(super) fn begin(
    file: &ProgressFile,
    scenario: &Scenario,
    step: Option<StepNumber>,
    title: Option<&str>,
) {
    let step = step.map(|StepNumber { number, of }| StepProgress {
        number,
        of,
        title: title.unwrap_or_default().to_owned(),
    });
    file.begin(step, planned(scenario));
}

/// Passes progress on.
pub(super) fn show(file: &ProgressFile, thresholds: &Thresholds, progress: &Progress) {
    match progress {
        Progress::Phase { kind, planned, number, of } => {
            file.phase(kind.name(), *planned, (*number, *of));
        }
        Progress::Second { row, .. } => file.second(missed(thresholds, row)),
        Progress::Failed(_) | Progress::AgentLost { .. } => file.failed(),
        // Lists have no room for them; the live page has.
        Progress::Host(_)
        | Progress::Action(_)
        | Progress::Acted { .. }
        | Progress::Trouble { .. } => {}
    }
}

/// Connecting, warm-up and the measured phase.
pub(crate) fn planned(scenario: &Scenario) -> Duration {
    let connecting = |group: &Group| match (group.connect.ramp, group.connect.rate) {
        (Some(ramp), _) => ramp.0,
        (None, Some(rate)) if rate.0 > 0.0 => {
            Duration::try_from_secs_f64(f64::from(group.clients) / rate.0).unwrap_or_default()
        }
        (None, _) => Duration::ZERO,
    };
    let connected = scenario.groups.values().map(connecting).max().unwrap_or_default();
    let phases = &scenario.phases;
    connected.saturating_add(phases.warmup.0).saturating_add(phases.measure.0)
}

/// Conditions that a second of the measured phase does not meet; the record judges the whole.
fn missed(thresholds: &Thresholds, row: &SeriesRow) -> usize {
    if row.phase != PhaseKind::Measure || row.length_s < SECOND_MIN_S {
        return 0;
    }
    let is_missed = |one: &&Threshold| {
        figure(one.metric, row).is_some_and(|value| !one.comparison.holds(value, one.limit))
    };
    thresholds.0.iter().filter(is_missed).count()
}

/// The figure of a second; absent where only the whole has it.
fn figure(metric: Metric, row: &SeriesRow) -> Option<f64> {
    let whole = |value: Option<u64>| value.map(|value| value as f64);
    match metric {
        Metric::Latency(LatencyKind::EndToEnd, Statistic::P50) => whole(row.e2e_p50_us),
        Metric::Latency(LatencyKind::EndToEnd, Statistic::P95) => whole(row.e2e_p95_us),
        Metric::Latency(LatencyKind::EndToEnd, Statistic::P99) => whole(row.e2e_p99_us),
        Metric::Latency(LatencyKind::EndToEnd, Statistic::Max) => whole(row.e2e_max_us),
        Metric::Latency(LatencyKind::Service, Statistic::P99) => whole(row.service_p99_us),
        Metric::Latency(LatencyKind::SendDelay, Statistic::P99) => whole(row.send_delay_p99_us),
        Metric::Latency(LatencyKind::Ack, Statistic::P99) => whole(row.ack_p99_us),
        Metric::BrokerCpu => row.broker_cpu_percent,
        Metric::BrokerRss => whole(row.broker_rss_bytes),
        Metric::HostCpu => row.host_cpu_percent,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tacho_record::PhaseName;
    use tacho_scenario::{Adjustment, Limits};

    use super::*;

    #[test]
    fn a_second_of_the_measured_phase_misses_conditions() {
        let parsed = |text: &&str| Threshold::parse(text).expect(text);
        let thresholds =
            Thresholds(["e2e_p99<10ms", "broker_cpu<=75%", "lost==0"].iter().map(parsed).collect());
        let row = SeriesRow {
            phase: PhaseKind::Measure.into(),
            length_s: 1.0,
            e2e_p99_us: Some(12_000),
            broker_cpu_percent: Some(75.0),
            ..SeriesRow::default()
        };
        assert_eq!(missed(&thresholds, &row), 1);
        assert_eq!(missed(&thresholds, &SeriesRow { length_s: 0.1, ..row.clone() }), 0);
        assert_eq!(missed(&thresholds, &SeriesRow { phase: PhaseName::default(), ..row }), 0);
    }

    #[test]
    fn the_planned_time_is_that_of_all_phases() {
        let vars = |text: &[(&str, &str)]| -> Vec<(String, String)> {
            text.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let load = |name: &str, given: &[(&str, &str)]| {
            Scenario::load(name, &vars(given), &Adjustment::NONE, Limits::NONE).expect(name)
        };
        assert_eq!(planned(&load("symmetric", &[])), Duration::from_secs(2 + 5 + 30));
        let connect = load("connect", &[("connections", "500"), ("connect_rate", "100/s")]);
        assert!(planned(&connect) >= Duration::from_secs(5 + 10));
    }
}
