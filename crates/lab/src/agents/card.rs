//! What an agent tells about itself.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use tacho_monitor::{ProcRoot, describe_host};

/// Labels of an agent, such as `region=eu`.
pub type Labels = BTreeMap<String, String>;

/// What an agent tells about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentCard {
    /// Its name, unique on its bus.
    pub name: String,
    /// Version of the program; agents of another one cannot be hired.
    pub version: String,
    /// Its labels.
    pub labels: Labels,
    /// Generator threads that it offers.
    pub threads: usize,
    /// Cores online.
    pub cores: Option<u64>,
    /// Installed memory.
    pub memory_bytes: Option<u64>,
    /// Open files that the process may have at most.
    pub descriptors: Option<u64>,
    /// Local address of its connection to the bus, where that is a network's.
    pub addresses: Vec<IpAddr>,
    /// Messages per second of all threads by its calibration, many clients at QoS 0; absent
    /// without one.
    pub calibrated_messages_per_s: Option<f64>,
    /// Identifies a boot of a machine: processes with the same one share its clock.
    pub boot: Option<String>,
    /// The run that it works for.
    pub run: Option<String>,
}

impl AgentCard {
    /// The card of an agent of this process on this machine.
    #[must_use]
    pub fn of_this_machine(name: &str, labels: Labels, threads: usize) -> Self {
        let host = describe_host(&ProcRoot::default(), None, &[]);
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        Self {
            name: name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            labels,
            threads,
            cores: host.cores,
            memory_bytes: host.memory_bytes,
            descriptors: limit.maximum,
            addresses: Vec::new(),
            calibrated_messages_per_s: None,
            boot: boot(),
            run: None,
        }
    }

    /// Whether it has this label.
    #[must_use]
    pub fn has_label(&self, name: &str, value: &str) -> bool {
        self.labels.get(name).is_some_and(|own| own == value)
    }
}

/// Identifies this boot of this machine; `None` where the system does not tell.
pub(super) fn boot() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}
