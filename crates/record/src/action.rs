//! What a run did to clients, brokers and the machine, and what followed.

use serde::{Deserialize, Serialize};

use crate::latency::LatencyStats;

/// One occurrence of a timed action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActionRecord {
    /// `disconnect`, `pause`, `takeover`, `subscribe`, `kill` or `run`.
    pub kind: String,
    /// What happened, in words.
    pub what: String,
    /// The group whose clients it happened to; empty where it is about none.
    pub group: String,
    /// The phase in which it began.
    pub phase: String,
    /// When, in seconds since the start of the run.
    pub at_s: f64,
    /// How long it lasted, in seconds: a pause, a command, a broker that was away; absent where
    /// it has no length.
    pub length_s: Option<f64>,
    /// To how many clients.
    pub clients: u64,
    /// Of these, clients that were connected again.
    pub connected: u64,
    /// From what happened to a client until its CONNACK, in microseconds.
    pub connected_us: LatencyStats,
    /// From there until 99 % of them were connected, in milliseconds; absent when they never were.
    pub connected_99_ms: Option<f64>,
    /// Until all were.
    pub connected_all_ms: Option<f64>,
    /// Clients that had their session or their subscriptions again.
    pub ready: u64,
    /// Until 99 % of them had.
    pub ready_99_ms: Option<f64>,
    /// Attempts to connect that failed meanwhile.
    pub retried: u64,
    /// Of these, attempts that the broker refused.
    pub refused: u64,
    /// Clients that did not come back in as many attempts as they had.
    pub given_up: u64,
    /// First connections that the broker ended with "session taken over".
    pub told: u64,
    /// First connections that ended.
    pub displaced: u64,
    /// From the second CONNECT until they had, in microseconds.
    pub displaced_us: LatencyStats,
    /// Wills that had to be published: one for each receiver.
    pub wills_expected: u64,
    /// Of these, wills that came.
    pub wills: u64,
    /// From the action to their receipt, in microseconds.
    pub wills_us: LatencyStats,
    /// Retained messages that were due to clients that subscribed.
    pub retained_expected: u64,
    /// Of these, messages that came.
    pub retained: u64,
    /// Clients that got all of theirs.
    pub complete: u64,
    /// From SUBSCRIBE to the last of them, in microseconds.
    pub complete_us: LatencyStats,
    /// Exit code of a command; absent while it runs, or when a signal ended it.
    pub exit_code: Option<i32>,
    /// File with what it said.
    pub output: String,
    /// Why it did not come to its end.
    pub error: String,
}
