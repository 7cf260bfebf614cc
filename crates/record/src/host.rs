//! What is known about a broker's host, as properties.

use tacho_monitor::HostDescription;

use crate::property::{Property, PropertyValue};
use crate::target::TargetRecord;

impl TargetRecord {
    /// Everything that is known about the broker's host.
    pub fn host_entries(&self) -> Vec<(Property, PropertyValue)> {
        let mut entries = self.host.as_ref().map(machine).unwrap_or_default();
        if let Some(limit) = self.network_limit {
            entries.push((Property::NetworkLimit, PropertyValue::NetworkLimit { limit }));
        }
        let settings = self.host.iter().flat_map(|host| &host.settings);
        entries.extend(settings.map(|(name, value)| {
            let property = Property::KernelSetting { name: name.clone() };
            (property, PropertyValue::Text(value.clone()))
        }));
        entries
    }
}

fn machine(host: &HostDescription) -> Vec<(Property, PropertyValue)> {
    let text = |value: &Option<String>| PropertyValue::text(value.as_deref());
    let cores = host.cores.map(|cores| cores.to_string());
    let disk = host.data_disk.clone();
    vec![
        (Property::HostName, PropertyValue::Text(host.host.clone())),
        (Property::InstanceType, text(&host.instance)),
        (Property::CpuModel, text(&host.cpu_model)),
        (Property::CoreCount, text(&cores)),
        (Property::Memory, PropertyValue::gib(host.memory_bytes)),
        (
            Property::DataDisk,
            disk.map_or(PropertyValue::Unknown, |disk| PropertyValue::Disk { disk }),
        ),
        (Property::VirtualMachine, PropertyValue::flag(host.virtualised)),
        (Property::Distribution, text(&host.distribution)),
        (Property::Kernel, text(&host.kernel)),
    ]
}
