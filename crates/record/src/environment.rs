//! The environment of a run, for reproducing or questioning it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::target::Placement;

/// The machine and its settings; absent (`null`) where the system does not tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of this form.
    pub schema_version: u32,
    /// Version of the program.
    pub tool_version: String,
    /// Operating system and architecture the program was built for.
    pub platform: String,
    /// Name of the distribution.
    pub distribution: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Cores online, in the kernel's list form.
    pub cpus_online: Option<String>,
    /// Cores that this process may use.
    pub cpus_allowed: Vec<usize>,
    /// Whether hardware threads share cores.
    pub smt_active: Option<bool>,
    /// Frequency governor of the first core.
    pub cpu_governor: Option<String>,
    /// Whether the processor may exceed its nominal frequency.
    pub turbo: Option<bool>,
    /// Whether a hypervisor is below.
    pub virtualised: Option<bool>,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// Nodes of memory with cores of their own.
    #[serde(default)]
    pub numa_nodes: Option<u64>,
    /// Control group of this process (version 2).
    #[serde(default)]
    pub control_group: Option<String>,
    /// Cores that its control group allows, by quota.
    #[serde(default)]
    pub control_group_cpu_cores: Option<f64>,
    /// Memory that its control group allows, in bytes.
    #[serde(default)]
    pub control_group_memory_bytes: Option<u64>,
    /// Network interfaces that are up.
    #[serde(default)]
    pub interfaces: Vec<Interface>,
    /// Installed memory in bytes.
    pub memory_total_bytes: Option<u64>,
    /// Limit of open files, soft and hard; absent means unlimited.
    pub open_files_soft: Option<u64>,
    /// The hard one.
    pub open_files_hard: Option<u64>,
    /// Kernel settings.
    pub sysctl: BTreeMap<String, Option<String>>,
    /// Where broker and generator ran.
    pub placement: Placement,
    /// FNV-1a hash of the resolved scenario file.
    pub scenario_hash: String,
    /// The command that started the run, without passwords and tokens.
    #[serde(default)]
    pub command_line: Vec<String>,
}

/// A network interface that is up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// Largest packet in bytes.
    pub mtu: Option<u64>,
    /// Speed in Mbit/s; virtual ones have none.
    pub speed_mbit_per_s: Option<u64>,
}

impl Environment {
    /// Everything by name, for people.
    pub fn entries(&self) -> Vec<(String, String)> {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
        let flag = |value: Option<bool>| match value {
            Some(true) => "yes".to_owned(),
            Some(false) => "no".to_owned(),
            None => "unknown".to_owned(),
        };
        let count =
            |value: Option<u64>| value.map_or_else(|| "unlimited".to_owned(), |v| v.to_string());
        let list = |cores: &[usize]| match cores.is_empty() {
            true => "not pinned".to_owned(),
            false => cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        };
        let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0);
        let mut entries = vec![
            ("tacho".to_owned(), self.tool_version.clone()),
            ("platform".to_owned(), self.platform.clone()),
            ("distribution".to_owned(), text(&self.distribution)),
            ("kernel".to_owned(), text(&self.kernel)),
            ("CPU".to_owned(), text(&self.cpu_model)),
            ("cores online".to_owned(), text(&self.cpus_online)),
            ("hardware threads share cores".to_owned(), flag(self.smt_active)),
            ("virtual machine".to_owned(), flag(self.virtualised)),
            ("frequency governor".to_owned(), text(&self.cpu_governor)),
            ("turbo".to_owned(), flag(self.turbo)),
            ("clock source".to_owned(), text(&self.clock_source)),
            (
                "NUMA nodes".to_owned(),
                self.numa_nodes.map_or_else(|| "unknown".to_owned(), |nodes| nodes.to_string()),
            ),
            (
                "memory".to_owned(),
                self.memory_total_bytes.map_or_else(|| "unknown".to_owned(), gib),
            ),
            ("open files, soft limit".to_owned(), count(self.open_files_soft)),
            ("open files, hard limit".to_owned(), count(self.open_files_hard)),
            ("broker cores".to_owned(), list(&self.placement.broker_cores)),
            ("generator cores".to_owned(), list(&self.placement.generator_cores)),
            ("generator threads".to_owned(), self.placement.generator_threads.to_string()),
            ("generator timing".to_owned(), self.placement.timing.clone()),
            ("scenario hash".to_owned(), self.scenario_hash.clone()),
        ];
        let limits = [
            ("control group", self.control_group.clone().filter(|path| path != "/")),
            (
                "cores, by control group",
                self.control_group_cpu_cores.map(|cores| format!("{cores:.2}")),
            ),
            ("memory, by control group", self.control_group_memory_bytes.map(gib)),
        ];
        let limits = limits.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        entries.extend(limits);
        entries.extend(self.interfaces.iter().map(|interface| {
            let mtu = interface.mtu.map_or_else(|| "unknown".to_owned(), |mtu| mtu.to_string());
            let speed = interface.speed_mbit_per_s;
            let speed = speed.map_or(String::new(), |speed| format!(", {speed} Mbit/s"));
            (format!("interface {}", interface.name), format!("MTU {mtu}{speed}"))
        }));
        let known = self
            .sysctl
            .iter()
            .filter_map(|(name, value)| value.as_ref().map(|value| (name.clone(), value.clone())));
        entries.extend(known);
        entries
    }
}
