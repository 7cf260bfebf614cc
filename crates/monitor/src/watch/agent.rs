//! A `tacho monitor --listen` elsewhere.

use std::time::Duration;

use super::Feed;
use crate::agent::{Connection, News, Token};
use crate::{MonitorSpec, now_ns};

/// How long to wait for news before looking whether to stop.
const WAIT: Duration = Duration::from_millis(50);

/// The pause after a failed attempt to connect again: at first, and at most.
const RETRY_NS: (u64, u64) = (500_000_000, 5_000_000_000);

/// An agent that is silent for so many intervals, or this long, is gone.
const SILENT_INTERVALS: u64 = 4;
const SILENT_NS_MIN: u64 = 5_000_000_000;

/// A stream from an agent, opened again when it breaks.
#[derive(Debug)]
pub(super) struct Stream {
    address: String,
    token: Token,
    spec: MonitorSpec,
    connection: Option<Connection>,
}

impl Stream {
    /// Connects, so that a wrong address or token is told at once.
    pub(super) fn new(address: &str, token: Token, spec: &MonitorSpec) -> Result<Self, String> {
        let connection = Connection::open(address, &token, spec.interval, &spec.processes)?;
        Ok(Self {
            address: address.to_owned(),
            token,
            spec: spec.clone(),
            connection: Some(connection),
        })
    }

    /// Delivers rows until it is stopped.
    pub(super) fn watch(&mut self, feed: &Feed) {
        let mut retry_ns = RETRY_NS.0;
        while !feed.stopping() {
            let result = match &mut self.connection {
                Some(connection) => listen(connection, &self.spec, feed),
                None => self.reopen(),
            };
            match result {
                Ok(true) => retry_ns = RETRY_NS.0,
                Ok(false) => {}
                Err(error) => {
                    feed.error(error);
                    self.connection = None;
                    feed.sleep_until(now_ns() + retry_ns);
                    retry_ns = (retry_ns * 2).min(RETRY_NS.1);
                }
            }
        }
    }

    fn reopen(&mut self) -> Result<bool, String> {
        let spec = &self.spec;
        let connection =
            Connection::open(&self.address, &self.token, spec.interval, &spec.processes)?;
        self.connection = Some(connection);
        Ok(false)
    }
}

/// Waits for news a moment; true when a row came.
fn listen(connection: &mut Connection, spec: &MonitorSpec, feed: &Feed) -> Result<bool, String> {
    let news =
        connection.next(WAIT).map_err(|error| format!("the stream of the agent broke: {error}"))?;
    match news {
        Some(News::Row(row)) => {
            feed.row(*row);
            return Ok(true);
        }
        Some(News::Trouble(trouble)) => feed.error(trouble),
        None => {}
    }
    let patience_ns = (spec.interval.as_nanos() as u64 * SILENT_INTERVALS).max(SILENT_NS_MIN);
    match now_ns().saturating_sub(connection.heard_ns) {
        silent_ns if silent_ns > patience_ns => {
            Err(format!("the agent has been silent for {} s", silent_ns / 1_000_000_000))
        }
        _ => Ok(false),
    }
}
