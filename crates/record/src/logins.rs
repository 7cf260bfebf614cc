//! Logins of a measured window.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::latency::LatencyStats;
use crate::named::named;
use crate::observation::Observation;

named! {
    /// What logins present.
    pub enum LoginKind {
        /// The credentials of a user: the broker must accept them.
        Right = "right",
        /// A wrong password: the broker must refuse it.
        WrongPassword = "wrong_password",
        /// The name of no user: the broker must refuse it.
        UnknownUser = "unknown_user",
    }
}

/// The logins of a measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepLogins {
    /// Logins per second that the schedule asked for.
    pub offered_per_s: f64,
    /// Decisions per second: logins accepted or refused.
    pub decided_per_s: f64,
    /// By what was presented; kinds that the scenario does not have are absent.
    pub kinds: Vec<LoginsOfKind>,
    /// Logins that the broker decided wrongly: right credentials refused, wrong ones accepted.
    pub misjudged: u64,
    /// The first of them, with its client.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub first_misjudged: String,
    /// The first login without a decision, with its client.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub first_undecided: String,
}

/// Logins that were due in the window and presented the same; they may have ended in the drain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoginsOfKind {
    /// What they presented.
    pub kind: LoginKind,
    /// How many.
    pub due: u64,
    /// Of these, accepted.
    pub accepted: u64,
    /// Refused for what they presented.
    pub refused: u64,
    /// Refused because the broker was busy for the moment, which is no decision.
    pub turned_away: u64,
    /// Without an answer: no connection, a broken one, or none in time.
    pub failed: u64,
    /// Not begun or not ended when the drain was over.
    pub unfinished: u64,
    /// From the time that a login was due to the CONNACK that accepts it.
    pub accepted_us: LatencyStats,
    /// The same to the CONNACK that refuses it.
    pub refused_us: LatencyStats,
    /// Refusals by reason, such as `not authorized (0x87)`.
    pub reasons: BTreeMap<String, u64>,
}

impl LoginKind {
    /// Whether the broker must accept it.
    pub const fn must_be_accepted(self) -> bool {
        matches!(self, Self::Right)
    }
}

impl LoginsOfKind {
    /// None of them.
    pub fn new(kind: LoginKind) -> Self {
        Self {
            kind,
            due: 0,
            accepted: 0,
            refused: 0,
            turned_away: 0,
            failed: 0,
            unfinished: 0,
            accepted_us: LatencyStats::default(),
            refused_us: LatencyStats::default(),
            reasons: BTreeMap::new(),
        }
    }

    /// Decided as they must be.
    pub const fn decided_rightly(&self) -> u64 {
        if self.kind.must_be_accepted() { self.accepted } else { self.refused }
    }
}

impl StepLogins {
    /// The logins of one kind.
    pub fn of(&self, kind: LoginKind) -> Option<&LoginsOfKind> {
        self.kinds.iter().find(|of| of.kind == kind)
    }

    /// What is seen of wrong decisions.
    pub fn misjudged_observation(&self) -> Observation {
        let wrong = self.kinds.iter().filter(|of| !of.kind.must_be_accepted());
        Observation::LoginsMisjudged {
            accepted: wrong.map(|of| of.accepted).sum(),
            refused: self.of(LoginKind::Right).map_or(0, |right| right.refused),
            first: self.first_misjudged.clone(),
        }
    }

    /// Logins that were due.
    pub fn due(&self) -> u64 {
        self.kinds.iter().map(|of| of.due).sum()
    }

    /// Logins that were accepted, rightly or wrongly.
    pub fn accepted(&self) -> u64 {
        self.kinds.iter().map(|of| of.accepted).sum()
    }

    /// Logins that were refused for what they presented, rightly or wrongly.
    pub fn refused(&self) -> u64 {
        self.kinds.iter().map(|of| of.refused).sum()
    }

    /// Logins that had a decision, right or wrong.
    pub fn decided(&self) -> u64 {
        self.accepted() + self.refused()
    }
}
