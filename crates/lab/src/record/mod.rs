//! The run record: what a run was, what it measured, and what that is worth.
//!
//! `summary.json` is this structure. It is a contract: within one [`SCHEMA_VERSION`] fields are
//! added, never renamed, removed or given another meaning. Everything else in a run directory
//! (report, tables, time series) renders the same data.

mod action;
mod campaign;
mod course;
mod cpu;
mod headline;
mod hosts;
mod latency;
mod series;
mod step;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use action::ActionRecord;
pub use campaign::{
    Capacity, DeclaredLost, Finding, Position, Recommendation, RunKind, Series, Severity,
    SharedFairness, Skipped, StepTarget, Trial, TrialOutcome,
};
pub use course::{PhaseRecord, Restart};
pub use cpu::WhoseCpu;
pub use headline::Headline;
pub use hosts::{HostUse, MetricUse, MonitorRecord, ResourceRow};
pub use latency::{CurvePoint, LatencyStats, curve, percentile};
pub use series::{BrokerRow, BrokerSpent, PartBy, PartRow, SeriesRow};
pub use step::{Gate, LostRange, Step, StepGroup, ThresholdResult, ViolationCounts};

/// Version of the record's form.
pub const SCHEMA_VERSION: u32 = 1;

/// What a run is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything offered was carried, in order, and all thresholds hold.
    #[default]
    Ok,
    /// The generator may have been the bottleneck: the figures say nothing about the broker.
    GeneratorBound,
    /// The network was the bottleneck: the figures say nothing about the broker.
    NetworkBound,
    /// Less than 99 % of the offered load was carried, or clients failed.
    NotSustained,
    /// The figures still changed during the window: they describe a transient.
    NotSteady,
    /// A message was lost, duplicated, reordered or damaged against its QoS.
    QosViolation,
    /// A threshold does not hold.
    ThresholdFailed,
    /// The run did not come to its end.
    Aborted,
}

impl Verdict {
    /// As `summary.json` writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::GeneratorBound => "generator_bound",
            Self::NetworkBound => "network_bound",
            Self::NotSustained => "not_sustained",
            Self::NotSteady => "not_steady",
            Self::QosViolation => "qos_violation",
            Self::ThresholdFailed => "threshold_failed",
            Self::Aborted => "aborted",
        }
    }

    /// Whether figures with this verdict say something about the broker.
    pub const fn counts(self) -> bool {
        !matches!(self, Self::GeneratorBound | Self::NetworkBound | Self::Aborted)
    }
}

/// Everything about a run but its time series and histograms, which have files of their own.
///
/// A ladder, a search or a suite has one too: its `steps` are those of all its runs, which keep
/// records of their own in [`Step::directory`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`SCHEMA_VERSION`] of the program that wrote it.
    pub schema_version: u32,
    /// Version of the program that wrote it.
    pub tool_version: String,
    /// What kind of measurement it is.
    #[serde(default)]
    pub kind: RunKind,
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the run: its time and its scenario.
    pub name: String,
    /// The scenario's description.
    pub description: String,
    /// When the run began, RFC 3339 in UTC.
    pub started_at: String,
    /// How long it took from start to end, in seconds.
    pub elapsed_s: f64,
    /// What it is worth.
    pub verdict: Verdict,
    /// Why, a sentence each; empty when the verdict is `ok`.
    pub reasons: Vec<String>,
    /// What a reader must know before comparing the figures with others.
    pub notes: Vec<String>,
    /// What was loaded; of several brokers the first.
    pub target: TargetRecord,
    /// All brokers that were loaded.
    #[serde(default)]
    pub targets: Vec<TargetRecord>,
    /// Where broker and generator ran.
    pub placement: Placement,
    /// The variables of the scenario with their values.
    pub vars: BTreeMap<String, crate::scenario::VarValue>,
    /// Seed of payloads and random phases.
    pub seed: u64,
    /// Time from TCP connect to CONNACK, in microseconds.
    pub connect_us: LatencyStats,
    /// Of that, the time from the TCP connection to the end of the TLS and WebSocket handshakes;
    /// without samples for plain TCP.
    #[serde(default)]
    pub handshake_us: LatencyStats,
    /// Connections per second from the first connect to the last CONNACK.
    #[serde(default)]
    pub connect_per_s: Option<f64>,
    /// Time from SUBSCRIBE to SUBACK, in microseconds.
    pub suback_us: LatencyStats,
    /// Clients of the scenario.
    pub clients: u64,
    /// Clients that were connected.
    pub clients_connected: u64,
    /// Failures of single clients.
    pub client_failures: u64,
    /// The first of them, a sentence each.
    pub first_failures: Vec<String>,
    /// The thresholds and whether they hold.
    pub thresholds: Vec<ThresholdResult>,
    /// Where host figures came from.
    #[serde(default)]
    pub monitors: Vec<MonitorRecord>,
    /// The phases of a single run, in order.
    #[serde(default)]
    pub phases: Vec<PhaseRecord>,
    /// Brokers that the run killed and started again.
    #[serde(default)]
    pub restarts: Vec<Restart>,
    /// What the scenario's timed actions did, in order of time.
    #[serde(default)]
    pub actions: Vec<ActionRecord>,
    /// The figures that the scenario is for.
    #[serde(default)]
    pub headlines: Vec<Headline>,
    /// One entry per measured window.
    pub steps: Vec<Step>,
    /// Which steps belong together; empty for a single run.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Points that this machine could not run.
    #[serde(default)]
    pub skipped: Vec<Skipped>,
    /// The load at which each series reaches an objective.
    #[serde(default)]
    pub recommendations: Vec<Recommendation>,
    /// The result of a search.
    #[serde(default)]
    pub capacity: Option<Capacity>,
    /// What a reader should know about the figures.
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// What was loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// Its name in the scenario; empty for the only or default one.
    #[serde(default)]
    pub name: String,
    /// Where it came from.
    pub kind: TargetKind,
    /// Where it is, such as `mqtt://host:port` or `wss://host:port/path`.
    pub broker: String,
    /// Protocol version of the clients.
    pub version: String,
    /// The command that started the broker, when the run started it.
    pub command: Option<String>,
    /// Its process id, when the run started it.
    pub pid: Option<u32>,
    /// With TLS: was the broker's certificate verified?
    #[serde(default)]
    pub tls_verified: Option<bool>,
    /// Of Tacho's own broker: what it promises about sessions that outlive their connections,
    /// `memory`, `written` or `fsynced`.
    #[serde(default)]
    pub durability: Option<String>,
    /// Of Tacho's own broker: does it keep messages of QoS 0 for sessions that are away?
    #[serde(default)]
    pub offline_qos0: Option<bool>,
}

/// Where the broker under test came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// `tacho broker`, started by the run.
    #[default]
    BuiltIn,
    /// Started by the run with a given command.
    Command,
    /// Running already.
    Url,
}

/// Where broker and generator ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Broker and generator shared one machine.
    pub one_machine: bool,
    /// Cores of the broker; empty when unknown.
    pub broker_cores: Vec<usize>,
    /// Cores of the generator's threads; empty when not pinned.
    pub generator_cores: Vec<usize>,
    /// Generator threads.
    pub generator_threads: usize,
    /// `sleep`, `spin` or `batch`.
    pub timing: String,
}
