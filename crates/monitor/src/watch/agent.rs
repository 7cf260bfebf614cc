//! A remote `tacho monitor --listen`.

use std::time::Duration;

use super::feed::Feed;
use crate::agent::{AgentUpdate, Connection, Token};
use crate::{MonitorSpec, now_ns};

/// How often the stop flag is checked.
const WAIT: Duration = Duration::from_millis(50);

/// The first and the largest delay of the reconnect backoff.
const BACKOFF_NS_MIN: u64 = 500_000_000;
const BACKOFF_NS_MAX: u64 = 5_000_000_000;

/// An agent that has sent nothing for this many intervals, but at least this long, is considered
/// dead.
const SILENT_INTERVALS: u64 = 4;
const SILENT_NS_MIN: u64 = 5_000_000_000;

/// A stream from an agent, reopened when it breaks.
#[derive(Debug)]
pub(super) struct Stream {
    address: String,
    token: Token,
    spec: MonitorSpec,
    connection: Option<Connection>,
}

impl Stream {
    /// Connects, so that a wrong address or token is reported immediately.
    pub(super) fn new(address: &str, token: Token, spec: &MonitorSpec) -> Result<Self, String> {
        let connection = Connection::open(address, &token, spec)?;
        Ok(Self {
            address: address.to_owned(),
            token,
            spec: spec.clone(),
            connection: Some(connection),
        })
    }

    /// Delivers rows until stopped.
    pub(super) fn watch(&mut self, feed: &Feed) {
        let mut backoff_ns = BACKOFF_NS_MIN;
        while !feed.stopping() {
            let result = match &mut self.connection {
                Some(connection) => listen(connection, &self.spec, feed),
                None => self.reopen(),
            };
            match result {
                Ok(true) => backoff_ns = BACKOFF_NS_MIN,
                Ok(false) => {}
                Err(error) => {
                    feed.error(error);
                    self.connection = None;
                    feed.sleep_until(now_ns() + backoff_ns);
                    backoff_ns = (backoff_ns * 2).min(BACKOFF_NS_MAX);
                }
            }
        }
    }

    fn reopen(&mut self) -> Result<bool, String> {
        self.connection = Some(Connection::open(&self.address, &self.token, &self.spec)?);
        Ok(false)
    }
}

/// Waits briefly for an update; true when a row was delivered.
fn listen(connection: &mut Connection, spec: &MonitorSpec, feed: &Feed) -> Result<bool, String> {
    let update = connection
        .next(WAIT)
        .map_err(|error| format!("the connection to the agent broke: {error}"))?;
    match update {
        Some(AgentUpdate::Row(row)) => {
            feed.row(*row);
            return Ok(true);
        }
        Some(AgentUpdate::Description(description)) => feed.describe(*description),
        Some(AgentUpdate::Trouble(trouble)) => feed.error(trouble),
        None => {}
    }
    let silence_ns_max = (spec.interval.as_nanos() as u64 * SILENT_INTERVALS).max(SILENT_NS_MIN);
    match now_ns().saturating_sub(connection.heard_ns) {
        silent_ns if silent_ns > silence_ns_max => {
            Err(format!("the agent has been silent for {} s", silent_ns / 1_000_000_000))
        }
        _ => Ok(false),
    }
}
