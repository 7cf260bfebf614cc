//! The record of a run, a ladder, a search or a suite.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tacho_scenario::VarValue;

use crate::action::ActionRecord;
use crate::agents::AgentRecord;
use crate::campaign::{Capacity, Finding, Recommendation, RunKind, Series, Skipped};
use crate::cause::Cause;
use crate::comparison::FigureRow;
use crate::course::{PhaseRecord, Restart};
use crate::given::Given;
use crate::headline::Headline;
use crate::hosts::MonitorRecord;
use crate::latency::LatencyStats;
use crate::remark::Remark;
use crate::step::{Step, ThresholdResult};
use crate::target::{Placement, TargetRecord};
use crate::verdict::Verdict;

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
    /// The kind of measurement.
    #[serde(default)]
    pub kind: RunKind,
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the run: its time and its scenario.
    pub name: String,
    /// What the user calls it and says about it.
    #[serde(default, skip_serializing_if = "Given::is_empty")]
    pub given: Given,
    /// The scenario's description.
    pub description: String,
    /// The scenario's description in Chinese; empty where it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description_zh: String,
    /// When the run began, RFC 3339 in UTC.
    pub started_at: String,
    /// How long it took from start to end, in seconds.
    pub elapsed_s: f64,
    /// Its judgement.
    pub verdict: Verdict,
    /// Why, a sentence each; empty when the verdict is `ok`.
    pub reasons: Vec<String>,
    /// The same as data, in the same order; absent from records of version 1.
    #[serde(default)]
    pub causes: Vec<Cause>,
    /// Notes that limit comparisons with other figures.
    pub notes: Vec<String>,
    /// The same as data, in the same order; absent from records of version 1.
    #[serde(default)]
    pub remarks: Vec<Remark>,
    /// The broker under test; of several the first.
    pub target: TargetRecord,
    /// All brokers that were loaded.
    #[serde(default)]
    pub targets: Vec<TargetRecord>,
    /// Where broker and generator ran.
    pub placement: Placement,
    /// The variables of the scenario with their values.
    pub vars: BTreeMap<String, VarValue>,
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
    /// The agents that made the load; none where the controller did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentRecord>,
    /// The phases of a single run, in order.
    #[serde(default)]
    pub phases: Vec<PhaseRecord>,
    /// Brokers that the run killed and started again.
    #[serde(default)]
    pub restarts: Vec<Restart>,
    /// Effects of the scenario's timed actions, in order of time.
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
    /// Of repeats: the figures of the runs that count, with one spread each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeated: Vec<FigureRow>,
    /// The result of a search.
    #[serde(default)]
    pub capacity: Option<Capacity>,
    /// Findings about the figures.
    #[serde(default)]
    pub findings: Vec<Finding>,
}
