//! Effects of timed actions, as data: `report` has the words.

use serde::{Deserialize, Serialize};
use tacho_scenario::{Action, ActionKind};

/// The effect of a timed action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ActionEffect {
    /// Connections break without DISCONNECT.
    BreakOff {
        /// The group whose clients are affected.
        group: String,
        /// The affected share of them, above 0 and at most 1.
        share: f64,
    },
    /// Clients disconnect.
    Disconnect {
        /// The group whose clients are affected.
        group: String,
        /// The affected share of them.
        share: f64,
    },
    /// Clients stop reading their sockets.
    StopReading {
        /// The group whose clients are affected.
        group: String,
        /// The affected share of them.
        share: f64,
        /// For how long.
        length_s: f64,
    },
    /// Clients connect a second time with the same identifier.
    ConnectAgain {
        /// The group whose clients are affected.
        group: String,
        /// The affected share of them.
        share: f64,
    },
    /// Clients subscribe.
    Subscribe {
        /// The group whose clients are affected.
        group: String,
        /// The affected share of them.
        share: f64,
    },
    /// A broker is killed and started again.
    KillBroker {
        /// Its name in the scenario; absent for the only or default one.
        target: Option<String>,
    },
    /// A command is run.
    RunCommand {
        /// The command.
        command: String,
    },
}

impl ActionEffect {
    /// The effect of an action in a scenario.
    pub fn of_action(action: &Action) -> Self {
        match action.kind.clone() {
            ActionKind::Disconnect { group, share, cleanly: false } => {
                Self::BreakOff { group, share }
            }
            ActionKind::Disconnect { group, share, cleanly: true } => {
                Self::Disconnect { group, share }
            }
            ActionKind::Pause { group, share, length } => {
                Self::StopReading { group, share, length_s: length.0.as_secs_f64() }
            }
            ActionKind::Takeover { group, share } => Self::ConnectAgain { group, share },
            ActionKind::Subscribe { group, share } => Self::Subscribe { group, share },
            ActionKind::Kill { target } => Self::KillBroker { target },
            ActionKind::Run(command) => Self::RunCommand { command },
        }
    }
}
