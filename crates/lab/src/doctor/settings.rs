//! The settings that both published reports name, with the values they ran with or advise.

use super::judge::{self, Facts, Sufficiency, System};
use tacho_scenario::Needs;

/// How to look at a setting, and what others have it at.
pub(super) struct Setting {
    /// As users write it.
    pub(super) name: &'static str,
    pub(super) source: SettingSource,
    /// What the EMQX guide ran with.
    pub(super) guide: Option<&'static str>,
    /// What the BifroMQ report advises.
    pub(super) bifromq: Option<&'static str>,
    /// Whether `value` is enough for a scenario.
    pub(super) judge: fn(&System, &str, &Needs) -> Sufficiency,
}

/// Where a setting stands.
#[derive(Clone, Copy)]
pub(super) enum SettingSource {
    /// A file below `/proc/sys`, set by `sysctl -w`.
    Sysctl,
    /// A parameter of a kernel module, by the path of its file.
    Module(&'static str),
    /// Open files per process: the hard limit.
    OpenFiles,
}

impl Setting {
    /// Its value on this system.
    pub(super) fn value(&self, system: &System<'_>) -> Option<String> {
        let (files, descriptors_hard) = match &system.facts {
            Facts::Here { files, descriptors_hard } => (files, descriptors_hard),
            Facts::Told(settings) => return settings.get(self.name).cloned(),
        };
        match self.source {
            SettingSource::Sysctl => files.sysctl(self.name),
            SettingSource::Module(path) => files.line(path),
            SettingSource::OpenFiles => {
                Some(descriptors_hard.map_or_else(|| "unlimited".to_owned(), |n| n.to_string()))
            }
        }
    }
}

const fn sysctl(
    name: &'static str,
    guide: Option<&'static str>,
    bifromq: Option<&'static str>,
    judge: fn(&System, &str, &Needs) -> Sufficiency,
) -> Setting {
    Setting { name, source: SettingSource::Sysctl, guide, bifromq, judge }
}

/// All of them, in the order in which they are shown.
pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "nofile",
        source: SettingSource::OpenFiles,
        guide: None,
        bifromq: Some("1048576"),
        judge: judge::descriptors,
    },
    sysctl("fs.nr_open", Some("1048576"), Some("1048576"), judge::descriptors),
    sysctl("fs.file-max", Some("761816"), Some("above 185745"), judge::files),
    sysctl("net.ipv4.ip_local_port_range", None, None, judge::ports),
    sysctl("net.core.somaxconn", Some("1024"), None, judge::listen_queue),
    sysctl("net.ipv4.tcp_max_syn_backlog", Some("1024"), None, judge::syn_queue),
    sysctl("net.core.netdev_max_backlog", Some("1000"), Some("16384"), judge::packet_queue),
    sysctl("net.core.rmem_max", Some("212992"), Some("16777216"), judge::socket_ceiling),
    sysctl("net.core.wmem_max", Some("212992"), Some("16777216"), judge::socket_ceiling),
    sysctl("net.core.rmem_default", None, Some("262144"), judge::socket_ceiling),
    sysctl("net.core.wmem_default", None, Some("262144"), judge::socket_ceiling),
    sysctl("net.core.optmem_max", None, Some("16777216"), judge::socket_ceiling),
    sysctl(
        "net.ipv4.tcp_rmem",
        Some("4096 87380 6291456"),
        Some("1024 4096 16777216"),
        judge::tcp_buffer,
    ),
    sysctl(
        "net.ipv4.tcp_wmem",
        Some("4096 16384 4194304"),
        Some("1024 4096 16777216"),
        judge::tcp_buffer,
    ),
    sysctl("net.ipv4.tcp_max_tw_buckets", Some("5000"), None, judge::time_wait),
    sysctl("vm.max_map_count", None, Some("221184"), judge::maps),
    Setting {
        name: "nf_conntrack hashsize",
        source: SettingSource::Module("sys/module/nf_conntrack/parameters/hashsize"),
        guide: None,
        bifromq: Some("262144"),
        judge: judge::tracked_buckets,
    },
    sysctl("net.netfilter.nf_conntrack_max", None, Some("1048576"), judge::tracked),
    sysctl(
        "net.netfilter.nf_conntrack_tcp_timeout_established",
        None,
        Some("300"),
        judge::tracked_idle,
    ),
    sysctl(
        "net.netfilter.nf_conntrack_tcp_timeout_time_wait",
        None,
        Some("30"),
        judge::tracked_ends,
    ),
    sysctl(
        "net.netfilter.nf_conntrack_tcp_timeout_fin_wait",
        None,
        Some("30"),
        judge::tracked_ends,
    ),
    sysctl(
        "net.netfilter.nf_conntrack_tcp_timeout_close_wait",
        None,
        Some("15"),
        judge::tracked_ends,
    ),
];
