//! News for the page, as JSON.

use serde::Serialize;
use tacho_record::{ActionState, PartRow, ResourceRow, RunRecord, SeriesRow, StepAgent};
use tacho_report::Lang;

/// A piece of news from the run to the page.
#[derive(Debug)]
pub(crate) enum News {
    Run(RunNews),
    Phase(PhaseNews),
    Second(Box<SecondNews>),
    Host(Box<ResourceRow>),
    /// The agents' parts of the last second; they replace earlier ones.
    Agents(Vec<StepAgent>),
    Failed(String),
    Action(ActionNews),
    Step(StepNews),
    End(EndNews),
}

/// The description of a starting run on the page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunAbout {
    /// Which one it is among several, for people.
    pub title: Option<String>,
    /// Name of the scenario.
    pub scenario: String,
    /// The scenario's description.
    pub description: String,
    /// Clients of the scenario.
    pub clients: u64,
    /// Protocol version.
    pub version: String,
    /// The brokers that are loaded.
    pub brokers: Vec<String>,
    /// Conditions that it must meet.
    pub thresholds: Vec<ThresholdAbout>,
}

/// A condition on a figure of the measured window, which the page shows beside each second.
#[derive(Clone, Debug, Serialize)]
pub struct ThresholdAbout {
    /// As it was asked for: `e2e_p99<10ms`.
    pub condition: String,
    /// `e2e_p99`.
    pub figure: String,
    /// `<`.
    pub symbol: &'static str,
    /// In the figure's own unit: microseconds, percent, messages per second, bytes, or a number.
    pub limit: f64,
}

/// A run began.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunNews {
    /// Counted from 1.
    pub(crate) number: u64,
    #[serde(flatten)]
    pub(crate) about: RunAbout,
    /// When it began, in seconds on the page's time axis.
    pub(crate) at_s: f64,
}

/// A phase began.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct PhaseNews {
    pub(crate) name: String,
    /// Absent where it depends on the broker.
    pub(crate) planned_s: Option<f64>,
    pub(crate) number: usize,
    pub(crate) of: usize,
    pub(crate) at_s: f64,
}

/// A second passed; its times are on the page's axis.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SecondNews {
    pub(crate) clients: u64,
    /// Groups and brokers, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) parts: Vec<PartRow>,
    #[serde(flatten)]
    pub(crate) row: SeriesRow,
}

/// A timed action has begun or changed; its time is on the page's axis.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ActionNews {
    /// The run's number.
    pub(crate) run: u64,
    #[serde(flatten)]
    pub(crate) state: ActionState,
    /// Its effect, in words.
    pub(crate) what: String,
    pub(crate) what_zh: String,
    /// Its consequences so far, in words.
    pub(crate) followed: String,
    pub(crate) followed_zh: String,
}

impl ActionNews {
    pub(crate) fn new(run: u64, state: ActionState) -> Self {
        let what = |lang: Lang| lang.effect(&state.effect);
        let followed = |lang: Lang| lang.consequences(&state.consequences);
        let (what, what_zh) = (what(Lang::En), what(Lang::Zh));
        let (followed, followed_zh) = (followed(Lang::En), followed(Lang::Zh));
        Self { run, state, what, what_zh, followed, followed_zh }
    }
}

/// A run ended.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StepNews {
    pub(crate) number: u64,
    pub(crate) label: String,
    pub(crate) verdict: &'static str,
    pub(crate) reason: Option<String>,
    pub(crate) reason_zh: Option<String>,
    pub(crate) tps: Option<f64>,
    pub(crate) e2e_mean_us: Option<f64>,
    pub(crate) e2e_p99_us: Option<u64>,
    pub(crate) cpu_percent: Option<f64>,
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
    pub(crate) fn new(number: u64, label: &str, record: &RunRecord) -> Self {
        let step = record.steps.last();
        Self {
            number,
            label: label.to_owned(),
            verdict: record.verdict.name(),
            reason: record.reasons.first().cloned(),
            reason_zh: Lang::Zh.reasons(&record.reasons, &record.causes).into_iter().next(),
            tps: step.map(|step| step.tps),
            e2e_mean_us: step.and_then(|step| step.latency_us.mean),
            e2e_p99_us: step.and_then(|step| step.latency_us.p99),
            cpu_percent: step.and_then(|step| step.cpu_percent.or(step.broker_cpu_percent)),
        }
    }
}
