//! Timed actions: what happens to clients, brokers and the machine while a run is measured.

use std::time::Duration;

use serde::Serialize;

use super::quantity::TimeSpan;

/// Something that happens at a time of the measured phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Action {
    /// From the start of the measured phase.
    pub at: TimeSpan,
    /// Again and again after so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<TimeSpan>,
    /// How often in all.
    #[serde(skip_serializing_if = "is_one")]
    pub times: u32,
    /// One client after the other within this time, instead of all at once.
    #[serde(skip_serializing_if = "TimeSpan::is_zero")]
    pub over: TimeSpan,
    /// A command is ended when it takes longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeSpan>,
    /// What happens.
    #[serde(flatten)]
    pub deed: Deed,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Deed {
    /// Connections end, and come back by the group's policy for reconnecting.
    Disconnect {
        /// Whose.
        group: String,
        /// Share of the group's clients, above 0 and at most 1.
        share: f64,
        /// With DISCONNECT; otherwise they break.
        cleanly: bool,
    },
    /// Clients stop reading their sockets.
    Pause {
        /// Whose.
        group: String,
        /// Share of the group's clients.
        share: f64,
        /// For so long.
        #[serde(rename = "for")]
        length: TimeSpan,
    },
    /// Clients connect a second time with the same identifier.
    Takeover {
        /// Whose.
        group: String,
        /// Share of the group's clients.
        share: f64,
    },
    /// Clients subscribe, which have not before.
    Subscribe {
        /// Whose.
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
    /// Occurrences of all actions that a scenario has at most.
    pub const MAX: usize = 1000;
    /// How long a command may take that says nothing else.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    /// The group whose clients it is about, and the share of them.
    pub fn crowd(&self) -> Option<(&str, f64)> {
        match &self.deed {
            Deed::Disconnect { group, share, .. }
            | Deed::Pause { group, share, .. }
            | Deed::Takeover { group, share }
            | Deed::Subscribe { group, share } => Some((group, *share)),
            Deed::Kill { .. } | Deed::Run(_) => None,
        }
    }

    /// How many of `clients` it is about: at least one.
    pub fn concerned(&self, clients: u32) -> u32 {
        let share = self.crowd().map_or(0.0, |(_, share)| share);
        ((f64::from(clients) * share).round() as u32).clamp(clients.min(1), clients)
    }

    /// The key under which files have it.
    pub const fn kind(&self) -> &'static str {
        match self.deed {
            Deed::Disconnect { .. } => "disconnect",
            Deed::Pause { .. } => "pause",
            Deed::Takeover { .. } => "takeover",
            Deed::Subscribe { .. } => "subscribe",
            Deed::Kill { .. } => "kill",
            Deed::Run(_) => "run",
        }
    }

    /// What it does, in words.
    pub fn sentence(&self) -> String {
        let all = |share: f64| match share {
            share if share >= 1.0 => "all".to_owned(),
            share => format!("{} %", (share * 1e4).round() / 1e2),
        };
        match &self.deed {
            Deed::Disconnect { group, share, cleanly } => {
                let how = if *cleanly { "disconnect" } else { "break off" };
                format!("{} of {group} {how}", all(*share))
            }
            Deed::Pause { group, share, length } => {
                format!("{} of {group} stop reading for {length}", all(*share))
            }
            Deed::Takeover { group, share } => {
                format!("{} of {group} connect a second time", all(*share))
            }
            Deed::Subscribe { group, share } => format!("{} of {group} subscribe", all(*share)),
            Deed::Kill { target: None } => "the broker is killed".to_owned(),
            Deed::Kill { target: Some(name) } => format!("broker {name} is killed"),
            Deed::Run(command) => format!("run: {command}"),
        }
    }
}
