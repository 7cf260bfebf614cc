//! The environment of a run, for reproducing or questioning it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::property::{Property, PropertyValue};
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
    /// Everything that is known about the machine and its settings.
    pub fn entries(&self) -> Vec<(Property, PropertyValue)> {
        let mut entries = self.machine();
        entries.extend(self.run());
        let batched = self.placement.batched_writes;
        entries.extend(batched.map(|is| (Property::BatchedWrites, PropertyValue::flag(Some(is)))));
        entries.extend(self.control_group());
        entries.extend(self.interfaces.iter().map(|interface| {
            let Interface { name, mtu, speed_mbit_per_s } = interface.clone();
            (Property::Interface { name }, PropertyValue::Link { mtu, speed_mbit_per_s })
        }));
        let known = self.sysctl.iter().filter_map(|(name, value)| {
            let value = PropertyValue::Text(value.clone()?);
            Some((Property::KernelSetting { name: name.clone() }, value))
        });
        entries.extend(known);
        entries
    }

    fn machine(&self) -> Vec<(Property, PropertyValue)> {
        let text = |value: &Option<String>| PropertyValue::text(value.as_deref());
        let nodes = self.numa_nodes.map(|nodes| nodes.to_string());
        vec![
            (Property::ToolVersion, PropertyValue::Text(self.tool_version.clone())),
            (Property::Platform, PropertyValue::Text(self.platform.clone())),
            (Property::Distribution, text(&self.distribution)),
            (Property::Kernel, text(&self.kernel)),
            (Property::CpuModel, text(&self.cpu_model)),
            (Property::CoresOnline, text(&self.cpus_online)),
            (Property::SharedCores, PropertyValue::flag(self.smt_active)),
            (Property::VirtualMachine, PropertyValue::flag(self.virtualised)),
            (Property::FrequencyGovernor, text(&self.cpu_governor)),
            (Property::Turbo, PropertyValue::flag(self.turbo)),
            (Property::ClockSource, text(&self.clock_source)),
            (Property::NumaNodes, text(&nodes)),
            (Property::Memory, PropertyValue::gib(self.memory_total_bytes)),
            (Property::OpenFilesSoft, PropertyValue::limit(self.open_files_soft)),
            (Property::OpenFilesHard, PropertyValue::limit(self.open_files_hard)),
        ]
    }

    fn run(&self) -> [(Property, PropertyValue); 6] {
        let Placement { broker_cores, generator_cores, background_cores, .. } = &self.placement;
        let Placement { generator_threads, timing, .. } = &self.placement;
        [
            (Property::BrokerCores, PropertyValue::cores(broker_cores)),
            (Property::GeneratorCores, PropertyValue::cores(generator_cores)),
            (Property::GeneratorThreads, PropertyValue::Text(generator_threads.to_string())),
            (Property::BackgroundCores, PropertyValue::cores(background_cores)),
            (Property::GeneratorTiming, PropertyValue::Text(timing.name().to_owned())),
            (Property::ScenarioHash, PropertyValue::Text(self.scenario_hash.clone())),
        ]
    }

    /// What the control group limits.
    fn control_group(&self) -> impl Iterator<Item = (Property, PropertyValue)> {
        let group = self.control_group.clone().filter(|path| path != "/");
        let cores = self.control_group_cpu_cores.map(|cores| format!("{cores:.2}"));
        let memory = self.control_group_memory_bytes;
        let memory = memory.map(|bytes| PropertyValue::gib(Some(bytes)));
        let limits = [
            (Property::ControlGroup, group.map(PropertyValue::Text)),
            (Property::ControlGroupCores, cores.map(PropertyValue::Text)),
            (Property::ControlGroupMemory, memory),
        ];
        limits.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}
