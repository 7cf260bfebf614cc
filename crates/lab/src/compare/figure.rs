//! The figures that are compared.

use tacho_record::{Better, FigureUnit, Scale};
use tacho_record::{RunKind, RunRecord, Step};
use tacho_scenario::threshold::{LatencyKind, Metric, Statistic};

/// One figure of a repeat.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Short name, as thresholds have it where there is one.
    pub name: &'static str,
    /// For people.
    pub label: &'static str,
    /// Its unit.
    pub unit: FigureUnit,
    /// Which way is good.
    pub better: Better,
    /// How two of them are compared.
    pub scale: Scale,
    /// The least difference, in the unit, that can be told at all.
    pub resolution: f64,
    value: Value,
}

/// From a measured window, and the run that it belongs to.
type Value = fn(&RunRecord, &Step) -> Option<f64>;

impl Figure {
    /// Its value in a measured window of `run`; `None` where it could not be observed.
    pub fn of(&self, run: &RunRecord, step: &Step) -> Option<f64> {
        (self.value)(run, step).filter(|value| value.is_finite())
    }

    /// Limits of its changes are percentages.
    pub(super) fn has_percent(&self) -> bool {
        self.scale == Scale::Percent || self.unit == FigureUnit::Percent
    }

    /// The figure of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        // As with thresholds: p99 is e2e_p99.
        let matches = |figure: &&Self| {
            figure.name == name || figure.name.strip_prefix("e2e_").is_some_and(|p| p == name)
        };
        FIGURES.iter().find(matches)
    }
}

const fn lower(
    name: &'static str,
    label: &'static str,
    (unit, resolution): (FigureUnit, f64),
    value: Value,
) -> Figure {
    Figure { name, label, unit, better: Better::Lower, scale: Scale::Percent, resolution, value }
}

fn of(step: &Step, kind: LatencyKind, statistic: Statistic) -> Option<f64> {
    step.metric(Metric::Latency(kind, statistic))
}

/// A figure that the scenario is for, in microseconds; a campaign has none of its own.
fn headline(run: &RunRecord, name: &str) -> Option<f64> {
    let here = run.headlines.iter().filter(|_| run.kind == RunKind::Run);
    let found = here.into_iter().find(|headline| headline.name == name)?;
    let us = match found.unit.as_str() {
        "microseconds" => 1.0,
        "milliseconds" => 1e3,
        _ => return None,
    };
    Some(found.value? * us)
}

/// Earlier records have it of the run only.
fn connect_per_s(run: &RunRecord, step: &Step) -> Option<f64> {
    let of_run = run.connect_per_s.filter(|rate| run.kind == RunKind::Run && *rate > 0.0);
    step.connect_per_s.or(of_run)
}

/// A latency is known to the microsecond.
const TIME: (FigureUnit, f64) = (FigureUnit::Microseconds, 1.0);

/// All of them, in the order in which they are shown.
pub const FIGURES: [Figure; 16] = [
    Figure {
        name: "tps",
        label: "messages in + out",
        unit: FigureUnit::MessagesPerS,
        better: Better::Higher,
        scale: Scale::Percent,
        resolution: 0.0,
        // A run without messages has no rate to compare.
        value: |_, step| Some(step.tps).filter(|tps| *tps > 0.0),
    },
    lower("e2e_p50", "latency, median", TIME, |_, step| {
        of(step, LatencyKind::EndToEnd, Statistic::P50)
    }),
    lower("e2e_p99", "latency, 99th percentile", TIME, |_, step| {
        of(step, LatencyKind::EndToEnd, Statistic::P99)
    }),
    lower("e2e_p999", "latency, 99.9th percentile", TIME, |_, step| {
        of(step, LatencyKind::EndToEnd, Statistic::P999)
    }),
    lower("e2e_max", "latency, greatest", TIME, |_, step| {
        of(step, LatencyKind::EndToEnd, Statistic::Max)
    }),
    lower("ack_p99", "time to acknowledgement, 99th percentile", TIME, |_, step| {
        of(step, LatencyKind::Ack, Statistic::P99)
    }),
    lower(
        "broker_cpu_per_message",
        "broker CPU per message in or out",
        (FigureUnit::CpuMicroseconds, 0.01),
        |_, step| step.broker_cpu_us_per_message,
    ),
    lower("cpu", "CPU of the broker's host or cores", (FigureUnit::Percent, 0.1), |_, step| {
        step.cpu_percent
    }),
    lower("broker_rss", "memory of the broker (RSS)", (FigureUnit::Bytes, 262_144.0), |_, step| {
        step.broker_rss_bytes.map(|bytes| bytes as f64)
    }),
    Figure {
        better: Better::Higher,
        // As it is recorded.
        ..lower(
            "connect_rate",
            "connections per second",
            (FigureUnit::PerSecond, 0.1),
            connect_per_s,
        )
    },
    lower("time_to_connected", "time until all are connected", TIME, |run, step| {
        let spread = || Some(run.clients_connected as f64 / connect_per_s(run, step)?);
        step.connect_s.or_else(spread).map(|seconds| seconds * 1e6)
    }),
    // Clients whose connections a scenario ends.
    lower(
        "time_to_reconnected",
        "time until 99 % are connected again",
        (FigureUnit::Microseconds, 1000.0),
        |run, _| headline(run, "time_to_99_percent_connected"),
    ),
    lower("connect_p50", "time to CONNACK, median", TIME, |_, step| {
        of(step, LatencyKind::Connect, Statistic::P50)
    }),
    lower("connect_p99", "time to CONNACK, 99th percentile", TIME, |_, step| {
        of(step, LatencyKind::Connect, Statistic::P99)
    }),
    Figure {
        scale: Scale::Absolute,
        ..lower("loss", "messages lost, of those due", (FigureUnit::Percent, 0.0), |_, step| {
            (step.expected > 0).then(|| step.loss_percent())
        })
    },
    Figure {
        scale: Scale::Absolute,
        ..lower(
            "acknowledged_lost",
            "messages acknowledged and lost",
            (FigureUnit::Count, 0.0),
            |_, step| (step.expected > 0).then_some(step.acknowledged_lost as f64),
        )
    },
];
