//! What a host is: the part of a result that says on what it was measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Kernel settings that bear on MQTT load; the two published reports that Tacho's workloads come
/// from name them.
pub const KERNEL_SETTINGS: [&str; 26] = [
    "fs.file-max",
    "fs.nr_open",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
    "net.netfilter.nf_conntrack_buckets",
    "net.netfilter.nf_conntrack_max",
    "net.netfilter.nf_conntrack_tcp_timeout_close_wait",
    "net.netfilter.nf_conntrack_tcp_timeout_established",
    "net.netfilter.nf_conntrack_tcp_timeout_fin_wait",
    "net.netfilter.nf_conntrack_tcp_timeout_time_wait",
    "vm.max_map_count",
    "vm.swappiness",
];

/// Open files that the broker's process may have at most: the hard limit.
pub(crate) const OPEN_FILES: &str = "nofile";

/// The same of the process that describes the host, where the broker's is not known: an agent may
/// have another limit.
pub(crate) const OPEN_FILES_ELSE: &str = "nofile (not the broker's)";

/// Size of the hash table of connection tracking, a parameter of its kernel module.
pub(crate) const CONNTRACK_HASH: &str = "nf_conntrack hashsize";

/// Limit on the characters of a text.
const TEXT_CHARS_MAX: usize = 160;

/// A host; absent (`null`) where its system does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostDescription {
    /// Its name.
    pub host: String,
    /// Name of the distribution.
    pub distribution: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Cores online.
    pub cores: Option<u64>,
    /// Installed memory.
    pub memory_bytes: Option<u64>,
    /// Vendor, product and version by the firmware (DMI): the instance type in many clouds.
    pub instance: Option<String>,
    /// Whether a hypervisor is below.
    pub virtualised: Option<bool>,
    /// What the broker's data directory is on.
    pub data_disk: Option<DataDisk>,
    /// Those of [`KERNEL_SETTINGS`] that the system has, `nf_conntrack hashsize`, and the hard
    /// limit of open files: `nofile` is that of the broker's process, `nofile (not the broker's)`
    /// that of the process that describes the host, where the broker's is not known.
    pub settings: BTreeMap<String, String>,
}

/// The file system of a directory, and the disk below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct DataDisk {
    /// Type of the file system.
    pub file_system: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// What is mounted there.
    pub device: String,
    /// Its size.
    pub size_bytes: Option<u64>,
    /// Model of the disk.
    pub model: Option<String>,
    /// Whether the disk rotates; virtual disks often claim to.
    pub rotational: Option<bool>,
}

impl HostDescription {
    /// The same with bounded texts of printable characters and known settings only: what an agent
    /// sends goes into records and pages.
    #[must_use]
    pub(crate) fn bounded(mut self) -> Self {
        self.host = bounded(&self.host);
        for text in
            [&mut self.distribution, &mut self.kernel, &mut self.cpu_model, &mut self.instance]
        {
            *text = text.as_deref().map(bounded);
        }
        self.data_disk = self.data_disk.map(|disk| DataDisk {
            file_system: bounded(&disk.file_system),
            mount_point: bounded(&disk.mount_point),
            device: bounded(&disk.device),
            model: disk.model.as_deref().map(bounded),
            ..disk
        });
        self.settings.retain(|name, _| {
            KERNEL_SETTINGS.contains(&name.as_str())
                || [OPEN_FILES, OPEN_FILES_ELSE, CONNTRACK_HASH].contains(&&**name)
        });
        self.settings.values_mut().for_each(|value| *value = bounded(value));
        self
    }
}

/// The beginning of a text, without control characters.
fn bounded(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_settings_of_a_hostile_agent_are_bounded() {
        let long = || format!("\u{1b}[2J{}", "x".repeat(100_000));
        let mut settings: BTreeMap<String, String> =
            (0..10_000).map(|number| (format!("no.such.{number}"), long())).collect();
        settings.insert("vm.swappiness".to_owned(), long());
        let description = HostDescription {
            host: long(),
            distribution: Some(long()),
            kernel: Some(long()),
            cpu_model: Some(long()),
            instance: Some(long()),
            data_disk: Some(DataDisk {
                file_system: long(),
                mount_point: long(),
                device: long(),
                model: Some(long()),
                ..DataDisk::default()
            }),
            settings,
            ..HostDescription::default()
        };
        let bounded = description.bounded();
        assert_eq!(bounded.settings.len(), 1);
        let text = serde_json::to_string(&bounded).expect("is JSON");
        assert!(text.len() < 10 * (TEXT_CHARS_MAX + 50), "{} bytes", text.len());
        assert!(!text.contains("u001b"), "{text}");
        assert!(bounded.kernel.is_some_and(|kernel| kernel.starts_with("[2Jx")));
    }
}
