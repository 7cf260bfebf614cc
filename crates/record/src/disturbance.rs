//! What disturbed a measured window, and how far its figures still hold.

use serde::{Deserialize, Serialize};

/// Limits from which on a second counts as disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DisturbanceLimits {
    /// Time that the hypervisor took of the broker's host, in percent.
    pub steal_percent: f64,
    /// What other programs used of the broker's cores, in percent of these.
    pub others_percent: f64,
    /// Time that the generator's threads waited for a core of their own, in percent of a core.
    pub waiting_percent: f64,
}

/// Seconds of one kind of disturbance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DisturbedSeconds {
    /// How many.
    pub seconds: u64,
    /// The worst of them, in percent.
    pub percent_max: f64,
}

/// What became of the disturbed seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handling {
    /// Latency and CPU are those of the other seconds, of which enough remain.
    LeftOut,
    /// All seconds count: what the disturbance can have changed is within the tolerance.
    WithinTolerance,
    /// The figures say nothing about the broker.
    #[default]
    Invalid,
}

/// The disturbances of a measured window. Causes are measured apart from the broker; latency is
/// never one. Losses, duplicates, order, refusals and errors count in all seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disturbance {
    /// Seconds of the window.
    pub seconds: u64,
    /// Seconds that were disturbed, and those after them until the backlog was as before.
    pub disturbed: u64,
    /// By the hypervisor.
    pub steal: DisturbedSeconds,
    /// By other programs on the broker's cores.
    pub others: DisturbedSeconds,
    /// By whatever kept the generator's threads from their cores.
    pub waiting: DisturbedSeconds,
    /// What became of them.
    pub handling: Handling,
    /// Share of the messages that can have been affected, in percent.
    pub affected_percent: f64,
    /// Undisturbed, the median latency would have been between this and the one reported.
    pub p50_us_min: Option<u64>,
    /// The same for the 99th percentile.
    pub p99_us_min: Option<u64>,
    /// The limits in force, where the user changed them.
    pub tolerated: Option<DisturbanceLimits>,
}

impl Default for DisturbanceLimits {
    /// One percent of steal, five of other programs, one of waiting.
    fn default() -> Self {
        Self { steal_percent: 1.0, others_percent: 5.0, waiting_percent: 1.0 }
    }
}
