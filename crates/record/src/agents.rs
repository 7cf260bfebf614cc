//! The agents of a run: what each of them was, did and used.

use serde::{Deserialize, Serialize};

use crate::latency::LatencyStats;

/// An agent that made a share of the load of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentRecord {
    /// Its name on the bus.
    pub name: String,
    /// Its generator threads.
    pub threads: u64,
    /// Its clients.
    pub clients: u64,
    /// How its clock stood to the controller's.
    pub clock: AgentClock,
    /// When and why it was lost, if it was; the run went on without its share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<AgentLoss>,
}

/// How the clock of an agent stood to the controller's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentClock {
    /// Whether both are processes of one machine, which share its clock.
    pub same: bool,
    /// How far it was ahead when the run began, in milliseconds.
    pub ahead_ms: f64,
    /// How much faster it ran, in parts per million.
    pub drift_ppm: f64,
    /// Bound of the error of `drift_ppm`.
    pub drift_error_ppm: f64,
    /// By how much its times may have been off during the run, drift included, in microseconds.
    pub error_us: u64,
    /// Exchanges that these figures follow from.
    pub exchanges: u64,
}

/// An agent that was lost while the run went on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentLoss {
    /// When, in seconds since the start of the run.
    pub at_s: f64,
    /// Its clients in percent of those of the run.
    pub percent: f64,
    /// Why.
    pub why: String,
}

/// The part of one agent in a measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepAgent {
    /// Its name on the bus.
    pub name: String,
    /// Its clients.
    pub clients: u64,
    /// Messages per second that its clients sent.
    pub sent_per_s: f64,
    /// Messages per second that its clients received.
    pub received_per_s: f64,
    /// Bytes per second written to its connections.
    pub bytes_out_per_s: f64,
    /// Bytes per second read from its connections.
    pub bytes_in_per_s: f64,
    /// From the time a message was due to the time it was written: how late the agent was.
    pub send_delay_us: LatencyStats,
    /// CPU of its generator threads, spinning excluded, one core = 100.
    pub threads_cpu_percent: f64,
    /// Its busiest generator thread, in percent of its time; spinning is not busy.
    pub thread_busy_max_percent: f64,
    /// CPU of the whole process, one core = 100; absent where too little of it was heard.
    pub cpu_percent: Option<f64>,
    /// TCP segments per second that its machine sent again, those of other programs included.
    pub retransmits_per_s: Option<f64>,
    /// Bytes per second that the bus carried from it to the controller.
    pub bus_up_bytes_per_s: Option<f64>,
    /// Bytes per second that the bus carried to it from the controller.
    pub bus_down_bytes_per_s: Option<f64>,
}
