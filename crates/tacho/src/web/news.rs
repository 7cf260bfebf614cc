//! What the page is told, as it travels.

use serde::Serialize;
use tacho_record::{PartRow, ResourceRow, RunRecord, SeriesRow};

/// A piece of news from the run to the page.
#[derive(Debug)]
pub(super) enum News {
    Run(RunNews),
    Phase(PhaseNews),
    Second(Box<SecondNews>),
    Host(Box<ResourceRow>),
    Failed(String),
    Deed(DeedNews),
    Step(StepNews),
    End(EndNews),
}

/// A run began; of several it is one.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct RunNews {
    /// Counted from 1.
    pub(crate) number: u64,
    /// Which one it is among several, for people.
    pub(crate) title: Option<String>,
    /// Name of the scenario.
    pub(crate) scenario: String,
    /// The scenario's description.
    pub(crate) description: String,
    /// Clients of the scenario.
    pub(crate) clients: u64,
    /// Protocol version.
    pub(crate) version: String,
    /// The brokers that are loaded.
    pub(crate) brokers: Vec<String>,
    /// When it began, in seconds on the page's time axis.
    pub(crate) at_s: f64,
}

/// A phase began.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct PhaseNews {
    pub(super) name: String,
    /// Absent where it depends on the broker.
    pub(super) planned_s: Option<f64>,
    pub(super) number: usize,
    pub(super) of: usize,
    pub(super) at_s: f64,
}

/// A second passed; its times are on the page's axis.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SecondNews {
    pub(super) clients: u64,
    /// Groups and brokers, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<PartRow>,
    #[serde(flatten)]
    pub(super) row: SeriesRow,
}

/// More is known of a timed action; its time is on the page's axis.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DeedNews {
    /// The run's number.
    pub(super) run: u64,
    #[serde(flatten)]
    pub(super) deed: tacho_lab::run::DeedNews,
}

/// A run ended.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StepNews {
    pub(super) number: u64,
    pub(super) label: String,
    pub(super) verdict: &'static str,
    pub(super) reason: Option<String>,
    pub(super) tps: Option<f64>,
    pub(super) e2e_mean_us: Option<f64>,
    pub(super) e2e_p99_us: Option<u64>,
    pub(super) cpu_percent: Option<f64>,
}

/// Everything ended.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct EndNews {
    /// The verdict; absent when it ended without a record.
    pub(crate) verdict: Option<&'static str>,
    /// Why.
    pub(crate) reasons: Vec<String>,
    /// The run's directory, for people.
    pub(crate) directory: String,
    /// Files to open, the report first.
    pub(crate) files: Vec<&'static str>,
    /// Does the page stay?
    pub(crate) stays: bool,
}

impl StepNews {
    /// Of the record of one run.
    pub(super) fn of(number: u64, label: &str, record: &RunRecord) -> Self {
        let step = record.steps.last();
        Self {
            number,
            label: label.to_owned(),
            verdict: record.verdict.name(),
            reason: record.reasons.first().cloned(),
            tps: step.map(|step| step.tps),
            e2e_mean_us: step.and_then(|step| step.latency_us.mean),
            e2e_p99_us: step.and_then(|step| step.latency_us.p99),
            cpu_percent: step.and_then(|step| step.cpu_percent.or(step.broker_cpu_percent)),
        }
    }
}
