//! The brokers under test, and the placement of programs.

use serde::{Deserialize, Serialize};

/// A broker under test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// Its name in the scenario; empty for the only or default one.
    #[serde(default)]
    pub name: String,
    /// Where it came from.
    pub kind: TargetKind,
    /// Where it is, such as `mqtt://host:port` or `wss://host:port/path`.
    pub broker: String,
    /// Protocol version of the clients.
    pub version: String,
    /// The command that started the broker, when the run started it.
    pub command: Option<String>,
    /// Its process id, when the run started it.
    pub pid: Option<u32>,
    /// With TLS: was the broker's certificate verified?
    #[serde(default)]
    pub tls_verified: Option<bool>,
    /// Of Tacho's own broker: what it promises about sessions that outlive their connections,
    /// `memory`, `written` or `fsynced`.
    #[serde(default)]
    pub durability: Option<String>,
    /// Of Tacho's own broker: does it keep messages of QoS 0 for sessions that are away?
    #[serde(default)]
    pub offline_qos0: Option<bool>,
}

/// Where the broker under test came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// `tacho broker`, started by the run.
    #[default]
    BuiltIn,
    /// Started by the run with a given command.
    Command,
    /// Running already.
    Url,
}

/// Where broker and generator ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Broker and generator shared one machine.
    pub one_machine: bool,
    /// Cores of the broker; empty when unknown.
    pub broker_cores: Vec<usize>,
    /// Cores of the generator's threads; empty when not pinned.
    pub generator_cores: Vec<usize>,
    /// Generator threads.
    pub generator_threads: usize,
    /// `sleep`, `spin` or `batch`.
    pub timing: String,
}
