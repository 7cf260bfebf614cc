//! The figures that are compared.

use tacho_record::{Better, FigureName, FigureUnit, HeadlineName, HeadlineUnit, Scale};
use tacho_record::{RunKind, RunRecord, Step};
use tacho_scenario::threshold::{LatencyKind, Metric, Statistic};

/// One figure of a repeat.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name, as thresholds have it where there is one.
    pub name: FigureName,
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
            let known = figure.name.name();
            known == name || known.strip_prefix("e2e_").is_some_and(|p| p == name)
        };
        FIGURES.iter().find(matches)
    }
}

const fn lower(name: FigureName, (unit, resolution): (FigureUnit, f64), value: Value) -> Figure {
    Figure { name, unit, better: Better::Lower, scale: Scale::Percent, resolution, value }
}

fn of(step: &Step, kind: LatencyKind, statistic: Statistic) -> Option<f64> {
    step.metric(Metric::Latency(kind, statistic))
}

/// A figure that the scenario is for, in microseconds; a campaign has none of its own.
fn headline(run: &RunRecord, name: HeadlineName) -> Option<f64> {
    let here = run.headlines.iter().filter(|_| run.kind == RunKind::Run);
    let found = here.into_iter().find(|headline| headline.name == name.name())?;
    let us = match found.unit {
        HeadlineUnit::Microseconds => 1.0,
        HeadlineUnit::Milliseconds => 1e3,
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
        name: FigureName::Tps,
        unit: FigureUnit::MessagesPerS,
        better: Better::Higher,
        scale: Scale::Percent,
        resolution: 0.0,
        // A run without messages has no rate to compare.
        value: |_, step| Some(step.tps).filter(|tps| *tps > 0.0),
    },
    lower(FigureName::E2eP50, TIME, |_, step| of(step, LatencyKind::EndToEnd, Statistic::P50)),
    lower(FigureName::E2eP99, TIME, |_, step| of(step, LatencyKind::EndToEnd, Statistic::P99)),
    lower(FigureName::E2eP999, TIME, |_, step| of(step, LatencyKind::EndToEnd, Statistic::P999)),
    lower(FigureName::E2eMax, TIME, |_, step| of(step, LatencyKind::EndToEnd, Statistic::Max)),
    lower(FigureName::AckP99, TIME, |_, step| of(step, LatencyKind::Ack, Statistic::P99)),
    lower(FigureName::BrokerCpuPerMessage, (FigureUnit::CpuMicroseconds, 0.01), |_, step| {
        step.broker_cpu_us_per_message
    }),
    lower(FigureName::Cpu, (FigureUnit::Percent, 0.1), |_, step| step.cpu_percent),
    lower(FigureName::BrokerRss, (FigureUnit::Bytes, 262_144.0), |_, step| {
        step.broker_rss_bytes.map(|bytes| bytes as f64)
    }),
    Figure {
        better: Better::Higher,
        // As it is recorded.
        ..lower(FigureName::ConnectRate, (FigureUnit::PerSecond, 0.1), connect_per_s)
    },
    lower(FigureName::TimeToConnected, TIME, |run, step| {
        let spread = || Some(run.clients_connected as f64 / connect_per_s(run, step)?);
        step.connect_s.or_else(spread).map(|seconds| seconds * 1e6)
    }),
    // Clients whose connections a scenario ends.
    lower(FigureName::TimeToReconnected, (FigureUnit::Microseconds, 1000.0), |run, _| {
        headline(run, HeadlineName::TimeTo99PercentConnected)
    }),
    lower(FigureName::ConnectP50, TIME, |_, step| of(step, LatencyKind::Connect, Statistic::P50)),
    lower(FigureName::ConnectP99, TIME, |_, step| of(step, LatencyKind::Connect, Statistic::P99)),
    Figure {
        scale: Scale::Absolute,
        ..lower(FigureName::Loss, (FigureUnit::Percent, 0.0), |_, step| {
            (step.expected > 0).then(|| step.loss_percent())
        })
    },
    Figure {
        scale: Scale::Absolute,
        ..lower(FigureName::AcknowledgedLost, (FigureUnit::Count, 0.0), |_, step| {
            (step.expected > 0).then_some(step.acknowledged_lost as f64)
        })
    },
];
