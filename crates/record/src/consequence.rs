//! Consequences of a timed action, as data: `report` has the words.

use serde::{Deserialize, Serialize};

/// One thing that followed a timed action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Consequence {
    /// The action has reached clients, and nothing more is expected of them.
    Reached {
        /// How many.
        clients: u64,
    },
    /// Clients are connected again.
    Connected {
        /// How many.
        clients: u64,
        /// Of how many.
        of: u64,
        /// Time until the last of them was; absent when none is, or where it is told otherwise.
        last_us: Option<u64>,
    },
    /// 99 % of the clients were connected again.
    Connected99 {
        /// After this time; absent when they never were.
        after_ms: Option<f64>,
    },
    /// 99 % of the clients had their session or their subscriptions again.
    Served99 {
        /// After this time.
        after_ms: f64,
    },
    /// Clients did not read until then.
    PausedUntil {
        /// In seconds since the start of the run.
        at_s: f64,
    },
    /// Clients have their SUBACK.
    Subscribed {
        /// How many.
        clients: u64,
        /// Of how many.
        of: u64,
        /// Time until the last of them had; absent when none has.
        last_us: Option<u64>,
    },
    /// 99 % of the clients had their SUBACK.
    Subscribed99 {
        /// After this time.
        after_ms: f64,
    },
    /// Retained messages arrived.
    RetainedReceived {
        /// How many.
        messages: u64,
        /// Of how many; absent while the run goes on.
        of: Option<u64>,
    },
    /// The last retained message of a client arrived.
    RetainedComplete {
        /// After this time at most; absent when no client got all of its messages.
        last_us: Option<u64>,
    },
    /// The broker was killed and does not serve clients.
    BrokerAway,
    /// The broker serves clients again.
    BrokerServes {
        /// Time since the start of its new process.
        after_ms: f64,
    },
    /// The command has not ended.
    CommandRuns,
    /// The command ended.
    CommandExited {
        /// Its exit code.
        code: i32,
    },
    /// A signal ended the command.
    CommandSignalled,
    /// The command did not come to its end.
    CommandCutShort {
        /// Why.
        why: CutShort,
    },
    /// The command took time.
    CommandTook {
        /// How long.
        length_s: f64,
    },
    /// The command's output was kept.
    CommandOutput {
        /// File in the run directory.
        file: String,
    },
    /// The broker ended first connections.
    FirstConnectionsEnded {
        /// How many.
        connections: u64,
        /// Of how many; absent while the run goes on.
        of: Option<u64>,
    },
    /// First connections were told that their session is taken over.
    ToldOfTakeover {
        /// How many.
        connections: u64,
    },
    /// Wills arrived.
    WillsReceived {
        /// How many.
        wills: u64,
        /// Of how many.
        of: u64,
    },
    /// The last will arrived.
    LastWill {
        /// After this time; absent when none arrived.
        last_us: Option<u64>,
    },
    /// Attempts to connect failed.
    AttemptsFailed {
        /// How many.
        attempts: u64,
        /// How many of them the broker refused.
        refused: u64,
    },
    /// Clients did not come back in as many attempts as they had.
    GivenUp {
        /// How many.
        clients: u64,
    },
    /// A sentence of an old record, as it is.
    #[serde(untagged)]
    Message(String),
}

/// Why a command did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CutShort {
    /// It exceeded its time limit.
    TimedOut,
    /// The run ended, and the command with it.
    RunOver,
    /// It had not ended when the run did.
    StillRunning,
    /// Its process could not be watched.
    NotWatched {
        /// The error.
        error: String,
    },
    /// It could not be started.
    NotStarted {
        /// The error.
        error: String,
    },
}
