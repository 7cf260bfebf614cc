//! Timed actions on clients, brokers and the machine in the measured phase.

use std::time::Duration;

use serde::Serialize;

use super::quantity::TimeSpan;

/// Something that happens at a time of the measured phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Action {
    /// From the start of the measured phase.
    pub at: TimeSpan,
    /// Interval between repetitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<TimeSpan>,
    /// Occurrences in total.
    #[serde(skip_serializing_if = "is_one")]
    pub times: u32,
    /// One client after the other within this time, instead of all at once.
    #[serde(skip_serializing_if = "TimeSpan::is_zero")]
    pub over: TimeSpan,
    /// Time after which a command is killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeSpan>,
    /// What happens.
    #[serde(flatten)]
    pub kind: ActionKind,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ActionKind {
    /// Connections end, and come back by the group's policy for reconnecting.
    Disconnect {
        /// Name of the group.
        group: String,
        /// Share of the group's clients, above 0 and at most 1.
        share: f64,
        /// With DISCONNECT; otherwise they break.
        cleanly: bool,
    },
    /// Clients stop reading their sockets.
    Pause {
        /// Name of the group.
        group: String,
        /// Share of the group's clients.
        share: f64,
        /// How long they do not read.
        #[serde(rename = "for")]
        length: TimeSpan,
    },
    /// Clients connect a second time with the same identifier.
    Takeover {
        /// Name of the group.
        group: String,
        /// Share of the group's clients.
        share: f64,
    },
    /// Clients of a group whose subscriptions wait for this action subscribe.
    Subscribe {
        /// Name of the group.
        group: String,
        /// Share of the group's clients.
        share: f64,
    },
    /// A broker that the run started is killed and started again.
    Kill {
        /// Its name in `[targets]`; `None` is the default one.
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<String>,
    },
    /// A command is run by the shell.
    Run(String),
}

const fn is_one(times: &u32) -> bool {
    *times == 1
}

impl Action {
    /// Largest number of occurrences of all actions of a scenario.
    pub const MAX: usize = 1000;
    /// Default time limit of a command.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    /// The group whose clients it affects, and the share of them.
    pub fn group_and_share(&self) -> Option<(&str, f64)> {
        match &self.kind {
            ActionKind::Disconnect { group, share, .. }
            | ActionKind::Pause { group, share, .. }
            | ActionKind::Takeover { group, share }
            | ActionKind::Subscribe { group, share } => Some((group, *share)),
            ActionKind::Kill { .. } | ActionKind::Run(_) => None,
        }
    }

    /// How many of `clients` it affects: at least one.
    pub fn affected_clients(&self, clients: u32) -> u32 {
        let share = self.group_and_share().map_or(0.0, |(_, share)| share);
        ((f64::from(clients) * share).round() as u32).clamp(clients.min(1), clients)
    }
}
