//! Timed actions of a run on clients, brokers and the machine, and their consequences.

use serde::{Deserialize, Serialize};

use crate::consequence::{Consequence, CutShort};
use crate::effect::ActionEffect;
use crate::latency::LatencyStats;
use crate::phase::PhaseName;

/// The kind of a timed action, by the word that scenarios and records have for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ActionKind {
    /// Connections end and come back.
    Disconnect,
    /// Clients do not read their sockets for a while.
    Pause,
    /// Clients connect a second time with the same identifier.
    Takeover,
    /// Clients subscribe.
    Subscribe,
    /// A broker is killed and started again.
    Kill,
    /// A command is run.
    Run,
    /// A word of another version, as it is.
    Other(String),
}

impl ActionKind {
    /// All kinds that this version knows.
    pub const ALL: [Self; 6] =
        [Self::Disconnect, Self::Pause, Self::Takeover, Self::Subscribe, Self::Kill, Self::Run];

    /// The word that scenarios and records have for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Disconnect => "disconnect",
            Self::Pause => "pause",
            Self::Takeover => "takeover",
            Self::Subscribe => "subscribe",
            Self::Kill => "kill",
            Self::Run => "run",
            Self::Other(word) => word,
        }
    }

    /// Does it affect clients of a group?
    pub const fn is_about_clients(&self) -> bool {
        !matches!(self, Self::Kill | Self::Run)
    }
}

impl Default for ActionKind {
    /// The empty word of a record that names no kind.
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl From<String> for ActionKind {
    fn from(word: String) -> Self {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == word);
        known.unwrap_or(Self::Other(word))
    }
}

impl From<ActionKind> for String {
    fn from(kind: ActionKind) -> Self {
        kind.as_str().to_owned()
    }
}

impl From<&ActionEffect> for ActionKind {
    fn from(effect: &ActionEffect) -> Self {
        match effect {
            ActionEffect::BreakOff { .. } | ActionEffect::Disconnect { .. } => Self::Disconnect,
            ActionEffect::StopReading { .. } => Self::Pause,
            ActionEffect::ConnectAgain { .. } => Self::Takeover,
            ActionEffect::Subscribe { .. } => Self::Subscribe,
            ActionEffect::KillBroker { .. } => Self::Kill,
            ActionEffect::RunCommand { .. } => Self::Run,
        }
    }
}

/// The state of a timed action that has begun, while the run goes on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActionState {
    /// Its position in the scenario's [schedule](tacho_scenario::Scenario::schedule).
    pub number: usize,
    /// Its kind.
    pub kind: ActionKind,
    /// What it does.
    pub effect: ActionEffect,
    /// When it began, in seconds since the start of the run.
    pub at_s: f64,
    /// How long it lasts, where that is known.
    pub length_s: Option<f64>,
    /// How many clients it affects.
    pub clients: u64,
    /// Its consequences so far.
    pub consequences: Vec<Consequence>,
}

/// One occurrence of a timed action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActionRecord {
    /// `disconnect`, `pause`, `takeover`, `subscribe`, `kill` or `run`.
    pub kind: ActionKind,
    /// The effect in words.
    pub what: String,
    /// The same as data; absent from records of version 1.
    pub effect: Option<ActionEffect>,
    /// The affected group; empty if there is none.
    pub group: String,
    /// The phase in which it began.
    pub phase: PhaseName,
    /// When, in seconds since the start of the run.
    pub at_s: f64,
    /// How long it lasted, in seconds: a pause, a command, a broker that was away; absent where
    /// it has no length.
    pub length_s: Option<f64>,
    /// To how many clients.
    pub clients: u64,
    /// Of these, clients that were connected again.
    pub connected: u64,
    /// From the action on a client to its CONNACK, in microseconds.
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
    /// File with its output.
    pub output: String,
    /// Why it did not come to its end.
    pub error: String,
    /// The same as data; absent from records of version 1.
    pub cut_short: Option<CutShort>,
}

impl ActionRecord {
    /// What followed.
    pub fn consequences(&self) -> Vec<Consequence> {
        let mut all = self.of_kind();
        if self.kind == ActionKind::Takeover {
            let (connections, of) = (self.displaced, Some(self.clients));
            all.push(Consequence::FirstConnectionsEnded { connections, of });
            all.push(Consequence::ToldOfTakeover { connections: self.told });
        }
        if self.wills_expected > 0 {
            let (wills, of) = (self.wills, self.wills_expected);
            all.push(Consequence::WillsReceived { wills, of });
            all.push(Consequence::LastWill { last_us: self.wills_us.max });
        }
        if self.retried > 0 {
            let (attempts, refused) = (self.retried, self.refused);
            all.push(Consequence::AttemptsFailed { attempts, refused });
        }
        if self.given_up > 0 {
            all.push(Consequence::GivenUp { clients: self.given_up });
        }
        all
    }

    /// Consequences specific to this kind of action.
    fn of_kind(&self) -> Vec<Consequence> {
        match self.kind {
            ActionKind::Disconnect | ActionKind::Takeover => self.of_connections(),
            ActionKind::Pause => {
                let at_s = self.at_s + self.length_s.unwrap_or_default();
                vec![Consequence::PausedUntil { at_s }]
            }
            ActionKind::Subscribe => self.of_subscriptions(),
            ActionKind::Kill => {
                let after_ms = 1e3 * self.length_s.unwrap_or_default();
                vec![Consequence::BrokerServes { after_ms }]
            }
            ActionKind::Run => self.of_command(),
            ActionKind::Other(_) => Vec::new(),
        }
    }

    fn of_connections(&self) -> Vec<Consequence> {
        let (clients, of) = (self.connected, self.clients);
        let mut all = vec![Consequence::Connected { clients, of, last_us: None }];
        if self.connected_99_ms.is_some() || self.clients > 0 {
            all.push(Consequence::Connected99 { after_ms: self.connected_99_ms });
        }
        all.extend(self.ready_99_ms.map(|after_ms| Consequence::Served99 { after_ms }));
        all
    }

    fn of_subscriptions(&self) -> Vec<Consequence> {
        let suback = self.ready_99_ms.map(|after_ms| Consequence::Subscribed99 { after_ms });
        let mut all = Vec::from_iter(suback);
        if self.retained_expected > 0 {
            let (messages, of) = (self.retained, Some(self.retained_expected));
            all.push(Consequence::RetainedReceived { messages, of });
            all.push(Consequence::RetainedComplete { last_us: self.complete_us.max });
        }
        all
    }

    fn of_command(&self) -> Vec<Consequence> {
        let end = match (&self.cut_short, self.exit_code) {
            (Some(why), _) => Consequence::CommandCutShort { why: why.clone() },
            (None, _) if !self.error.is_empty() => Consequence::Message(self.error.clone()),
            (None, Some(code)) => Consequence::CommandExited { code },
            (None, None) => Consequence::CommandSignalled,
        };
        let length_s = self.length_s.unwrap_or_default();
        let mut all = vec![end, Consequence::CommandTook { length_s }];
        if !self.output.is_empty() {
            all.push(Consequence::CommandOutput { file: self.output.clone() });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_words_of_scenarios_and_another_word_is_kept() {
        for kind in ActionKind::ALL {
            let json = serde_json::to_string(&kind).expect("is JSON");
            assert_eq!(json, format!("\"{}\"", kind.as_str()));
            assert_eq!(serde_json::from_str::<ActionKind>(&json).expect("reads"), kind);
        }
        let other: ActionKind = serde_json::from_str("\"freeze\"").expect("reads");
        assert_eq!(other, ActionKind::Other("freeze".to_owned()));
        assert_eq!(serde_json::to_string(&other).expect("is JSON"), "\"freeze\"");
    }

    #[test]
    fn an_action_of_an_old_record_keeps_its_sentences() {
        let json = r#"{"kind": "run", "what": "run: date", "error": "ended: it took too long"}"#;
        let action: ActionRecord = serde_json::from_str(json).expect("reads");
        assert_eq!((&action.kind, action.effect.as_ref()), (&ActionKind::Run, None));
        assert_eq!(action.what, "run: date");
        let end = Consequence::Message("ended: it took too long".to_owned());
        assert_eq!(action.consequences()[0], end);
        // An action that only a newer version knows is read, too.
        let json = r#"{"kind": "freeze", "what": "clients freeze", "retried": 2}"#;
        let action: ActionRecord = serde_json::from_str(json).expect("reads");
        let failed = Consequence::AttemptsFailed { attempts: 2, refused: 0 };
        assert_eq!(action.consequences(), [failed]);
    }
}
