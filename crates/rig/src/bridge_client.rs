//! Asks brokers of Tacho about the state of their bridges.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::error::RigError;

/// More than the answer about a thousand connections takes.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// A broker's answer; a figure that is not in it is 0.
#[derive(Debug, Deserialize)]
pub struct BridgeAnswer {
    /// All of its bridges.
    pub bridges: Vec<BridgeState>,
}

/// Whether a bridge or one of its connections is up, by the word of the broker's answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum LinkState {
    /// The first attempt to connect has not ended yet.
    Connecting,
    /// All connections are up.
    Up,
    /// Some connections are up.
    Partly,
    /// Not connected.
    Down,
    /// A word of another version, as it is.
    Other(String),
}

impl From<String> for LinkState {
    fn from(word: String) -> Self {
        let known = [Self::Connecting, Self::Up, Self::Partly, Self::Down];
        known.into_iter().find(|state| state.as_str() == word).unwrap_or(Self::Other(word))
    }
}

impl LinkState {
    fn as_str(&self) -> &str {
        match self {
            Self::Connecting => "connecting",
            Self::Up => "up",
            Self::Partly => "partly",
            Self::Down => "down",
            Self::Other(word) => word,
        }
    }
}

impl fmt::Display for LinkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The state of one bridge.
#[derive(Debug, Deserialize)]
pub struct BridgeState {
    /// Its name in the configuration.
    pub name: String,
    /// The broker that it leads to.
    pub remote: String,
    /// `up`, `partly` or `down`.
    pub state: LinkState,
    /// Connections that are up.
    pub connected: u64,
    /// Sums of its connections.
    #[serde(flatten)]
    pub figures: BridgeFigures,
    /// Each connection.
    pub connections: Vec<BridgeConnection>,
}

/// The state of one connection of a bridge.
#[derive(Debug, Deserialize)]
pub struct BridgeConnection {
    /// Its number.
    pub connection: u64,
    /// `up` or `down`.
    pub state: LinkState,
    /// For how long it has been in this state.
    pub for_s: Option<u64>,
    /// Why it is not up.
    pub problem: Option<String>,
    /// Its figures.
    #[serde(flatten)]
    pub figures: BridgeFigures,
}

/// Counts since the broker started, and the current backlog.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names are those of the broker's answer")]
pub struct BridgeFigures {
    pub reconnects: u64,
    pub sent: u64,
    pub received: u64,
    pub acknowledged: u64,
    pub buffered_messages: u64,
    pub buffered_bytes: u64,
    pub inflight: u64,
    pub dropped_expired: u64,
    pub dropped_full: u64,
    pub dropped_looped: u64,
    pub dropped_refused: u64,
    pub dropped_too_large: u64,
    pub dropped_unmapped: u64,
}

impl BridgeState {
    /// Are all of its connections up?
    pub fn is_up(&self) -> bool {
        self.state == LinkState::Up
    }

    /// Why it is not up: each reason once, with the number of connections that have it, the most
    /// frequent first.
    pub fn problems(&self) -> Vec<(usize, &str)> {
        let mut problems: Vec<(usize, &str)> = Vec::new();
        for problem in self.connections.iter().filter_map(|one| one.problem.as_deref()) {
            match problems.iter_mut().find(|(_, known)| *known == problem) {
                Some((count, _)) => *count += 1,
                None => problems.push((1, problem)),
            }
        }
        problems.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        problems
    }
}

/// `to-b (mqtt://b:1883) is down: connection refused`.
impl fmt::Display for BridgeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}) is {}", self.name, self.remote, self.state)?;
        match self.problems().first() {
            Some((_, problem)) => write!(f, ": {problem}"),
            None => Ok(()),
        }
    }
}

/// Asks brokers repeatedly, over the same connections.
#[derive(Debug)]
pub struct BridgeClient(ureq::Agent);

impl BridgeClient {
    /// A client that waits for each answer as long as `timeout`.
    pub fn new(timeout: Duration) -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(timeout)).build();
        Self(ureq::Agent::new_with_config(config))
    }

    /// Asks the broker that answers at `url`.
    ///
    /// # Errors
    /// When it does not answer, or answers something else.
    pub fn ask(&self, url: &str) -> Result<BridgeAnswer, RigError> {
        Self::parse(url, &self.ask_text(url)?)
    }

    /// Asks as [`BridgeClient::ask`]; the answer as the broker wrote it, JSON.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn ask_text(&self, url: &str) -> Result<String, RigError> {
        let base = url.trim_end_matches('/');
        let base = base.strip_suffix("/bridges").unwrap_or(base);
        let base = if base.contains("://") { base.to_owned() } else { format!("http://{base}") };
        let no_answer = |error| RigError::NoAnswer { url: base.clone(), error: Box::new(error) };
        let mut answer = self.0.get(format!("{base}/bridges")).call().map_err(no_answer)?;
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX);
        body.read_to_string().map_err(no_answer)
    }

    /// Reads an answer of [`BridgeClient::ask_text`].
    ///
    /// # Errors
    /// When it is something else.
    pub fn parse(url: &str, text: &str) -> Result<BridgeAnswer, RigError> {
        serde_json::from_str(text)
            .map_err(|error| RigError::OtherAnswer { url: url.to_owned(), error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_read_and_another_word_is_kept() {
        let read = |word: &str| -> LinkState {
            serde_json::from_value(word.into()).expect("any word is a state")
        };
        assert_eq!(read("up"), LinkState::Up);
        assert_eq!(read("partly"), LinkState::Partly);
        for word in ["connecting", "up", "partly", "down", "asleep"] {
            assert_eq!(read(word).to_string(), word);
        }
        assert_eq!(read("asleep"), LinkState::Other("asleep".to_owned()));
    }
}
