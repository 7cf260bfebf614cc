//! The brokers under test, and the placement of programs.

use serde::{Deserialize, Serialize};
use tacho_monitor::HostDescription;

use crate::network_limit::NetworkLimit;

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
    /// With TLS: did clients resume the sessions of others? Absent in older records, in which they
    /// did.
    #[serde(default)]
    pub tls_resumed: Option<bool>,
    /// Of Tacho's own broker: what it promises about sessions that outlive their connections,
    /// `memory`, `written` or `fsynced`.
    #[serde(default)]
    pub durability: Option<String>,
    /// Of Tacho's own broker: does it keep messages of QoS 0 for sessions that are away?
    #[serde(default)]
    pub offline_qos0: Option<bool>,
    /// What its host is, where that is this machine or an agent tells.
    #[serde(default)]
    pub host: Option<HostDescription>,
    /// What the network of its host carries in each direction, as stated by the user.
    #[serde(default)]
    pub network_limit: Option<NetworkLimit>,
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
    /// How generator threads wait, as asked for.
    pub timing: Timing,
    /// What each generator thread may spin, in percent of its core; 100 where it never sleeps,
    /// absent where it never spins.
    #[serde(default)]
    pub spin_budget_percent: Option<u8>,
    /// With [`Timing::Auto`], why the threads sleep and never spin.
    #[serde(default)]
    pub no_own_core: Option<NoOwnCore>,
    /// Cores of the threads that collect samples and write files; empty when not pinned.
    #[serde(default)]
    pub background_cores: Vec<usize>,
    /// Whether generator threads write to many sockets with one system call (io_uring); unknown
    /// where agents write.
    #[serde(default)]
    pub batched_writes: Option<bool>,
}

/// How generator threads wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Timing {
    /// They spin within a budget where each has a core of its own, else they sleep.
    #[default]
    Auto,
    /// They sleep.
    Sleep,
    /// They never sleep.
    Spin,
    /// They serve together what comes within half a millisecond.
    Batch,
}

impl Timing {
    /// Its name in scenarios and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Sleep => "sleep",
            Self::Spin => "spin",
            Self::Batch => "batch",
        }
    }
}

/// Why generator threads have no cores of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoOwnCore {
    /// They are not pinned to cores.
    NotPinned,
    /// There are more threads than cores for them.
    FewerCoresThanThreads,
    /// The cores of a broker on the same machine are not known.
    BrokerUnknown,
    /// A broker may use one of the cores.
    SharedWithBroker,
    /// A broker may use a hardware thread of the same physical core.
    SharedHardware,
    /// The control group limits CPU time to less than these cores and those of the brokers.
    CpuQuota,
}

impl Placement {
    /// Has the generator cores of its own, which the broker does not use?
    pub fn is_divided(&self) -> bool {
        !self.generator_cores.is_empty()
            && !self.generator_cores.iter().any(|core| self.broker_cores.contains(core))
    }
}
