//! Parts of a record beyond a single run: series of steps, skipped steps, results.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::observation::Observation;
use crate::obstacle::Obstacle;
use crate::search::{Purpose, SearchEnd};
use crate::whose_cpu::WhoseCpu;

/// The kind of measurement in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// One run of one scenario.
    #[default]
    Run,
    /// Several runs of one scenario, with statistics.
    Repeats,
    /// Steps of one variable.
    Ladder,
    /// A search for the highest load that meets objectives.
    Capacity,
    /// Several series of steps.
    Suite,
    /// Repeats of one scenario under two or more conditions, each a series.
    Comparison,
}

impl RunKind {
    /// As `summary.json` writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Repeats => "repeats",
            Self::Ladder => "ladder",
            Self::Capacity => "capacity",
            Self::Suite => "suite",
            Self::Comparison => "comparison",
        }
    }
}

/// Steps that belong together: one line in a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Series {
    /// Short name, unique in the record.
    pub name: String,
    /// For legends.
    pub label: String,
    /// Series of the same figure are drawn into one chart.
    pub figure: String,
    /// The scenario that was run.
    pub scenario: String,
    /// The variable that was stepped; absent where points differ in several.
    pub variable: Option<String>,
    /// Unit of the variable: `msg/s`, `bytes`, `clients`; empty when it has none.
    pub unit: String,
    /// Positions in the record's `steps`, in the order in which they ran.
    pub steps: Vec<usize>,
    /// Published results that the series repeats, by their name in this program.
    pub published: Option<String>,
}

/// A point that was not run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Skipped {
    /// Name of its series.
    pub series: String,
    /// The point.
    pub label: String,
    /// The missing resources.
    pub reason: String,
    /// The same as data; absent from records of version 1.
    pub obstacle: Option<Obstacle>,
}

/// The load at which a series reaches an objective such as `cpu<=75%`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recommendation {
    /// Name of the series.
    pub series: String,
    /// The objective.
    pub objective: String,
    /// Whose CPU it is about: `host`, `broker cores` or `broker process`.
    pub whose_cpu: String,
    /// Where the result lies.
    pub position: Position,
    /// Messages in and out per second at the objective; absent outside the measured steps.
    pub tps: Option<f64>,
    /// Lower end of the 95 % confidence interval; above the ladder, the highest load measured.
    pub low: Option<f64>,
    /// Its upper end; absent when it is not within the measured steps.
    pub high: Option<f64>,
    /// How it was found, a sentence.
    pub method: String,
    /// The same as data; absent from records of version 1.
    pub estimator: Option<Estimator>,
    /// Position in `steps` of the measured step that is nearest.
    pub nearest_step: Option<usize>,
}

/// How a recommended workload is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Estimator {
    /// Linear interpolation of mean CPU between the neighbouring steps; the interval comes from a
    /// block bootstrap over seconds.
    Interpolation {
        /// Whose CPU.
        whose_cpu: WhoseCpu,
    },
}

/// Where a recommended workload lies in relation to the measured steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// Between two steps.
    Within,
    /// Beyond the last step: it was never reached.
    AboveLadder,
    /// Below the first step.
    BelowLadder,
    /// Too few steps say anything.
    #[default]
    Unknown,
}

/// The result of a capacity search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capacity {
    /// The variable that was searched.
    pub variable: String,
    /// Its unit.
    pub unit: String,
    /// The conditions that a load must meet to pass.
    pub objectives: Vec<String>,
    /// Whose CPU `cpu` is.
    pub whose_cpu: String,
    /// Lower end of the 95 % interval: the highest value that passes, for sure.
    pub highest_pass: Option<f64>,
    /// Upper end of the 95 % interval: the lowest value at which the broker fails, for sure.
    pub lowest_fail: Option<f64>,
    /// The lowest value above it that the generator could not carry; then the upper bound is the
    /// generator's, not the broker's.
    pub lowest_generator_bound: Option<f64>,
    /// Messages in and out per second at `highest_pass`.
    pub tps: Option<f64>,
    /// Trials of full length that passed at `highest_pass`.
    pub confirmed: u32,
    /// How many were asked for.
    pub confirm: u32,
    /// Trials in which the machine was disturbed, and which were made again.
    pub disturbed: u32,
    /// How near the two bounds had to come, as a share of the value.
    pub precision: f64,
    /// Why the search ended, a sentence.
    pub ending: String,
    /// The same as data; absent from records of version 1.
    pub end: Option<SearchEnd>,
    /// Everything that was tried, in order.
    pub trials: Vec<Trial>,
}

/// One trial of a capacity search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The value of the variable.
    pub value: f64,
    /// Length of the measured window in seconds.
    pub hold_s: f64,
    /// Its purpose.
    pub purpose: Purpose,
    /// Its outcome.
    pub outcome: TrialOutcome,
    /// Why, a sentence each; empty for a pass.
    pub reasons: Vec<String>,
    /// The same as data, in the same order; absent from records of version 1.
    #[serde(default)]
    pub causes: Vec<Cause>,
    /// Position in the record's `steps`; absent when nothing was measured.
    pub step: Option<usize>,
}

/// The outcome of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialOutcome {
    /// All objectives were met.
    Pass,
    /// The broker missed one.
    Fail,
    /// The generator was the bottleneck: the trial says nothing about the broker.
    GeneratorBound,
    /// The machine was disturbed: the trial says nothing, and is made again.
    Disturbed,
}

/// An observation about the figures, with its remedy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable name, such as `delayed_ack`.
    pub code: String,
    /// How much it matters.
    pub severity: Severity,
    /// The observation and its remedy, in words.
    pub sentence: String,
    /// Position in `steps`; absent when it is about the whole run.
    #[serde(default)]
    pub step: Option<usize>,
    /// The observation as data; absent from records of version 1.
    #[serde(default)]
    pub observation: Option<Observation>,
    /// Label of the step, in the record of a campaign.
    #[serde(default)]
    pub place: String,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Figures may be misread without it.
    Warning,
    /// Figures are misleading.
    Error,
}

/// The part of one broker in a step with several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepTarget {
    /// Name of the target.
    pub name: String,
    /// Publish rate that this broker took.
    pub achieved_in_per_s: f64,
    /// Verified first deliveries from this broker per second.
    pub achieved_out_per_s: f64,
    /// Sum of both.
    pub tps: f64,
    /// CPU that objectives are about, as in the step.
    pub cpu_percent: Option<f64>,
    /// Whose CPU that is.
    pub whose_cpu: Option<String>,
    /// CPU of the broker process, one core = 100.
    pub broker_cpu_percent: Option<f64>,
    /// 1 - idle - steal of the cores that it may use.
    pub broker_cores_busy_percent: Option<f64>,
    /// Resident memory at the end of the window.
    pub broker_rss_bytes: Option<u64>,
    /// 1 - idle of its host.
    pub host_cpu_percent: Option<f64>,
    /// 1 - idle - steal of its host.
    pub host_busy_percent: Option<f64>,
    /// Memory in use on its host.
    pub host_memory_percent: Option<f64>,
}

/// How a shared subscription spread its messages over its members.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedFairness {
    /// The shared subscription: `$share/group/filter`.
    pub filter: String,
    /// Members.
    pub members: u64,
    /// Messages delivered to all of them.
    pub received: u64,
    /// To the member that got fewest.
    pub received_min: u64,
    /// To the member that got most.
    pub received_max: u64,
    /// Gini coefficient: 0 when all got the same, near 1 when one got all.
    pub gini: f64,
}

/// Losses that the scenario declares, which break no contract.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeclaredLost {
    /// Messages.
    pub count: u64,
    /// By the scenario's declaration, such as a full queue.
    pub by: BTreeMap<String, u64>,
}
