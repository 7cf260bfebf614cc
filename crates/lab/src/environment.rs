//! Where a run took place: what a reader needs to reproduce it or to doubt it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files::Files;
use crate::record::{Placement, SCHEMA_VERSION};

/// Kernel settings that bear on MQTT load; the two published reports that Tacho's workloads come
/// from name them.
const SYSCTLS: [&str; 26] = [
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

/// What this module alone asks for.
impl Files<'_> {
    fn numa_nodes(&self) -> Option<u64> {
        let is_node = |name: &&String| {
            name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok())
        };
        let count = self.names("sys/devices/system/node").iter().filter(is_node).count();
        (count > 0).then_some(count as u64)
    }

    /// Interfaces that are not down; loopback's state is unknown to the kernel.
    fn interfaces(&self) -> Vec<Interface> {
        let names = self.names("sys/class/net").into_iter().filter(|name| {
            let state = self.line(&format!("sys/class/net/{name}/operstate"));
            matches!(state.as_deref(), Some("up" | "unknown"))
        });
        let interface = |name: String| {
            let number = |file: &str| self.number(&format!("sys/class/net/{name}/{file}"));
            let (mtu, speed_mbit_per_s) = (number("mtu"), number("speed"));
            Interface { name, mtu, speed_mbit_per_s }
        };
        names.map(interface).collect()
    }

    /// The path of this process in the unified hierarchy of control groups.
    fn control_group(&self) -> Option<String> {
        self.value("proc/self/cgroup", "0", ':').map(|path| path.trim_start_matches(':').to_owned())
    }
}

impl Environment {
    /// The environment of this process, for a run of the resolved scenario file `scenario`.
    pub fn read(placement: Placement, scenario: &str) -> Self {
        Self::read_below(Path::new("/"), placement, scenario)
    }

    fn read_below(root: &Path, placement: Placement, scenario: &str) -> Self {
        let files = Files(root);
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let allowed = files.value("proc/self/status", "Cpus_allowed_list", ':');
        let control_group = files.control_group();
        let of_group = |name: &str| {
            let group = control_group.as_deref()?;
            files.line(&format!("sys/fs/cgroup/{}/{name}", group.trim_matches('/')))
        };
        Self {
            schema_version: SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            distribution: files.value("etc/os-release", "PRETTY_NAME", '='),
            kernel: files.line("proc/sys/kernel/osrelease"),
            cpu_model: files.cpu_model(),
            cpus_online: files.line("sys/devices/system/cpu/online"),
            cpus_allowed: allowed
                .and_then(|list| tacho_monitor::parse_cpu_list(&list))
                .unwrap_or_default(),
            smt_active: files.line("sys/devices/system/cpu/smt/active").map(|flag| flag == "1"),
            cpu_governor: files.line("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            turbo: files
                .line("sys/devices/system/cpu/intel_pstate/no_turbo")
                .map(|flag| flag == "0")
                .or_else(|| {
                    files.line("sys/devices/system/cpu/cpufreq/boost").map(|flag| flag == "1")
                }),
            virtualised: files
                .value("proc/cpuinfo", "flags", ':')
                .map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
            clock_source: files
                .line("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            numa_nodes: files.numa_nodes(),
            control_group_cpu_cores: of_group("cpu.max").and_then(|quota| {
                let (quota_us, period_us) = quota.split_once(' ')?;
                Some(quota_us.parse::<f64>().ok()? / period_us.parse::<f64>().ok()?)
            }),
            control_group_memory_bytes: of_group("memory.max").and_then(|max| max.parse().ok()),
            interfaces: files.interfaces(),
            memory_total_bytes: files
                .value("proc/meminfo", "MemTotal", ':')
                .and_then(|size| size.strip_suffix("kB")?.trim().parse::<u64>().ok())
                .map(|kib| kib * 1024),
            control_group,
            open_files_soft: limit.current,
            open_files_hard: limit.maximum,
            sysctl: SYSCTLS.iter().map(|name| ((*name).to_owned(), files.sysctl(name))).collect(),
            placement,
            scenario_hash: format!("{:016x}", fnv1a(scenario.as_bytes())),
            command_line: crate::command_line::command_line(),
        }
    }

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

/// FNV-1a, 64 bits: stable over versions and machines, which a hash for maps is not.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_there() {
        let root = tempfile::tempdir().expect("temporary directory");
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().expect("has a parent")).expect("directory");
            std::fs::write(path, text).expect("file");
        };
        write("proc/sys/kernel/osrelease", "6.1.0\n");
        write("proc/sys/net/core/somaxconn", "4096\n");
        write("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n");
        write("proc/cpuinfo", "model name\t: Fast CPU\nflags\t\t: fpu hypervisor\n");
        write("sys/devices/system/node/node0/cpulist", "0-3\n");
        write("sys/devices/system/node/node1/cpulist", "4-7\n");
        write("sys/devices/system/node/online", "0-1\n");
        write("proc/self/cgroup", "1:cpu:/\n0::/slice/one\n");
        write("sys/fs/cgroup/slice/one/cpu.max", "150000 100000\n");
        write("sys/fs/cgroup/slice/one/memory.max", "max\n");
        for (name, state, mtu) in
            [("eth0", "up", "9000"), ("eth1", "down", "1500"), ("lo", "unknown", "65536")]
        {
            write(&format!("sys/class/net/{name}/operstate"), state);
            write(&format!("sys/class/net/{name}/mtu"), mtu);
        }
        write("sys/class/net/eth0/speed", "10000\n");
        write("sys/class/net/lo/speed", "-1\n");
        write("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian 13\"\n");
        let environment = Environment::read_below(root.path(), Placement::default(), "a");
        assert_eq!(environment.kernel.as_deref(), Some("6.1.0"));
        assert_eq!(environment.cpu_model.as_deref(), Some("Fast CPU"));
        assert_eq!(environment.virtualised, Some(true));
        assert_eq!(environment.distribution.as_deref(), Some("Debian 13"));
        assert_eq!(environment.sysctl["net.core.somaxconn"].as_deref(), Some("4096"));
        assert_eq!(environment.sysctl["net.ipv4.tcp_rmem"].as_deref(), Some("4096 131072 6291456"));
        assert_eq!(environment.sysctl["fs.nr_open"], None);
        assert_eq!(environment.numa_nodes, Some(2));
        assert_eq!(environment.control_group.as_deref(), Some("/slice/one"));
        assert_eq!(environment.control_group_cpu_cores, Some(1.5));
        assert_eq!(environment.control_group_memory_bytes, None);
        let interfaces: Vec<_> = environment
            .interfaces
            .iter()
            .map(|one| (one.name.as_str(), one.mtu, one.speed_mbit_per_s))
            .collect();
        assert_eq!(interfaces, [("eth0", Some(9000), Some(10_000)), ("lo", Some(65_536), None)]);
        let entries = environment.entries();
        let entry =
            |name: &str| entries.iter().find(|(known, _)| known == name).map(|(_, v)| v.as_str());
        assert_eq!(entry("interface eth0"), Some("MTU 9000, 10000 Mbit/s"));
        assert_eq!(entry("cores, by control group"), Some("1.50"));
        assert_eq!(environment.smt_active, None);
        assert_eq!(environment.scenario_hash, "af63dc4c8601ec8c");
        assert!(environment.entries().iter().any(|(name, _)| name == "net.core.somaxconn"));
    }
}
