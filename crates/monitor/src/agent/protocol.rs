//! The messages that agent and client exchange.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{HostDescription, HostRow, ProcessSelector, WatchedProcess};

/// Version of the protocol.
pub(super) const VERSION: u32 = 1;

/// Version of the host's description that a client asks for; 0 asks for none, as clients do that
/// do not know of it. Agents that do not know of it send none.
pub(super) const DESCRIPTION_VERSION: u32 = 1;

/// Limit on a line from a client.
pub(super) const CLIENT_LINE_BYTES_MAX: usize = 8 * 1024;

/// Limit on a line from an agent: a row of a thousand cores fits.
pub(super) const AGENT_LINE_BYTES_MAX: usize = 1 << 20;

/// Limit on the processes that a client may select.
pub(super) const PROCESSES_MAX: usize = 16;

/// The agent's first line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) tacho_monitor: u32,
    pub(super) nonce: String,
}

/// The client's first line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) nonce: String,
    pub(super) proof: String,
    pub(super) interval_ms: u64,
    pub(super) processes: Vec<Wanted>,
    /// Version of the description of the host that the client understands.
    #[serde(default)]
    pub(super) describe: u32,
    /// The broker's data directory on the agent's host, for the description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data_dir: Option<PathBuf>,
}

/// A process, selected by exactly one of `pid`, `name` and `port`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Wanted {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
    pub(super) optional: bool,
}

/// Every later line of the client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ping {
    pub(super) ping: u64,
}

/// Every later line of the agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum FromAgent {
    Welcome { host: String, proof: String },
    Pong { pong: u64, received_ns: u64, answered_ns: u64 },
    Row { row: Box<HostRow> },
    Description { description: Box<HostDescription> },
    Trouble { trouble: String },
    Error { error: String },
}

impl Wanted {
    pub(super) fn from_process(process: &WatchedProcess) -> Self {
        let mut wanted =
            Self { target: process.target.clone(), optional: process.optional, ..Self::default() };
        match &process.selector {
            ProcessSelector::Pid(pid) => wanted.pid = Some(*pid),
            ProcessSelector::Name(name) => wanted.name = Some(name.clone()),
            ProcessSelector::Port(port) => wanted.port = Some(*port),
        }
        wanted
    }

    /// The selected process; `None` unless exactly one selector is set.
    pub(super) fn into_process(self) -> Option<WatchedProcess> {
        let selector = match (self.pid, self.name, self.port) {
            (Some(pid), None, None) => ProcessSelector::Pid(pid),
            (None, Some(name), None) => ProcessSelector::Name(name),
            (None, None, Some(port)) => ProcessSelector::Port(port),
            _ => return None,
        };
        Some(WatchedProcess { selector, target: self.target, optional: self.optional })
    }
}
