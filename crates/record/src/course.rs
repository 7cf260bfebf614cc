//! The course of a run: its phases, and the kills and restarts of its brokers.

use serde::{Deserialize, Serialize};

use crate::phase::PhaseName;

/// One phase of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseRecord {
    /// As the time series calls it: `connect`, `offline`, `measure`, `resume`, `drain` and so on.
    pub name: PhaseName,
    /// When it began, in seconds since the start of the run.
    pub start_s: f64,
    /// How long it took.
    pub length_s: f64,
    /// Messages written in it.
    pub sent: u64,
    /// Messages whose last acknowledgement came in it.
    pub acknowledged: u64,
    /// Verified first deliveries in it.
    pub received: u64,
}

impl PhaseRecord {
    /// First deliveries per second.
    pub fn received_per_s(&self) -> f64 {
        if self.length_s > 0.0 { self.received as f64 / self.length_s } else { 0.0 }
    }
}

/// A broker that the run killed and started again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Restart {
    /// Its name in the scenario; empty for the only or default one.
    pub target: String,
    /// The phase in which it was killed.
    pub phase: PhaseName,
    /// When, in seconds since the start of the run.
    pub at_s: f64,
    /// From the start of its new process until that answered a CONNECT, or where something lies
    /// between TCP and MQTT until it accepted connections, in milliseconds.
    pub serving_ms: f64,
    /// Between bridged brokers of Tacho's own: messages that waited in all bridges at the worst
    /// after the kill.
    pub waiting_max: Option<u64>,
    /// From the kill until all bridges were up again and no more waited than before it, in
    /// milliseconds; absent when that was not seen.
    pub drained_ms: Option<f64>,
}
