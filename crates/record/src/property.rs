//! What is known about the surroundings of a run, as data: `report` has the words.

use serde::{Deserialize, Serialize};
use tacho_monitor::DataDisk;

use crate::network_limit::NetworkLimit;

/// A property of a machine, of a broker or of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Property {
    /// The program's version.
    ToolVersion,
    /// Operating system and architecture.
    Platform,
    /// Name of the distribution.
    Distribution,
    /// Kernel release.
    Kernel,
    /// CPU model.
    CpuModel,
    /// Cores online.
    CoresOnline,
    /// Number of cores online.
    CoreCount,
    /// Name of the host.
    HostName,
    /// Type of the virtual or physical machine.
    InstanceType,
    /// What the broker's data directory is on.
    DataDisk,
    /// What the network carries, as stated by the user.
    NetworkLimit,
    /// Whether hardware threads share cores.
    SharedCores,
    /// Whether a hypervisor is below.
    VirtualMachine,
    /// Frequency governor.
    FrequencyGovernor,
    /// Whether the processor may exceed its nominal frequency.
    Turbo,
    /// The kernel's clock source.
    ClockSource,
    /// Nodes of memory.
    NumaNodes,
    /// Installed memory.
    Memory,
    /// Soft limit of open files.
    OpenFilesSoft,
    /// Hard limit of open files.
    OpenFilesHard,
    /// Cores of the broker.
    BrokerCores,
    /// Cores of the generator.
    GeneratorCores,
    /// Threads of the generator.
    GeneratorThreads,
    /// Cores of the threads that collect samples and write files.
    BackgroundCores,
    /// How the generator waits for the next due time.
    GeneratorTiming,
    /// Whether the generator writes to many sockets with one system call.
    BatchedWrites,
    /// Hash of the resolved scenario.
    ScenarioHash,
    /// Control group of the process.
    ControlGroup,
    /// Cores that the control group allows.
    ControlGroupCores,
    /// Memory that the control group allows.
    ControlGroupMemory,
    /// A network interface.
    Interface {
        /// Its name.
        name: String,
    },
    /// A kernel setting.
    KernelSetting {
        /// Its name.
        name: String,
    },
    /// A broker: its command or its URL.
    Broker {
        /// Its name; empty where there is one only.
        target: String,
    },
    /// Protocol version of the clients of a broker.
    MqttVersion {
        /// Its name; empty where there is one only.
        target: String,
    },
    /// How a broker keeps sessions.
    Durability {
        /// Its name; empty where there is one only.
        target: String,
    },
    /// Whether the certificate of a broker was verified.
    CertificateVerified {
        /// Its name; empty where there is one only.
        target: String,
    },
    /// Whether clients resumed TLS sessions.
    SessionsResumed {
        /// Name of their broker; empty where there is one only.
        target: String,
    },
    /// The command before each repeat of a comparison.
    CommandBefore,
    /// A key of the scenario.
    #[serde(untagged)]
    Key(String),
}

/// The value of a property.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PropertyValue {
    /// The system does not report it.
    Unknown,
    /// It is so.
    Yes,
    /// It is not so.
    No,
    /// There is no limit.
    Unlimited,
    /// The threads may run on any core.
    NotPinned,
    /// What a network interface can do.
    Link {
        /// Largest packet in bytes.
        mtu: Option<u64>,
        /// Speed in Mbit/s; virtual ones have none.
        speed_mbit_per_s: Option<u64>,
    },
    /// A file system and its disk.
    Disk {
        /// Which.
        disk: DataDisk,
    },
    /// What a network carries.
    NetworkLimit {
        /// How much.
        limit: NetworkLimit,
    },
    /// Text or a figure with its unit, as it is.
    #[serde(untagged)]
    Text(String),
}

impl PropertyValue {
    /// A text that may be unknown.
    pub fn text(value: Option<&str>) -> Self {
        value.map_or(Self::Unknown, |text| Self::Text(text.to_owned()))
    }

    /// A fact that may be unknown.
    pub const fn flag(value: Option<bool>) -> Self {
        match value {
            Some(true) => Self::Yes,
            Some(false) => Self::No,
            None => Self::Unknown,
        }
    }

    /// A limit; `None` is none.
    pub fn limit(value: Option<u64>) -> Self {
        value.map_or(Self::Unlimited, |limit| Self::Text(limit.to_string()))
    }

    /// A number of bytes, in GiB, that may be unknown.
    pub fn gib(bytes: Option<u64>) -> Self {
        let shown = |bytes| format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0);
        bytes.map_or(Self::Unknown, |bytes| Self::Text(shown(bytes)))
    }

    /// Cores that threads are pinned to.
    pub fn cores(cores: &[usize]) -> Self {
        match cores {
            [] => Self::NotPinned,
            cores => {
                let cores: Vec<String> = cores.iter().map(ToString::to_string).collect();
                Self::Text(cores.join(", "))
            }
        }
    }
}
