//! Where a run took place: what a reader needs to reproduce it or to doubt it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::record::{Placement, SCHEMA_VERSION};

/// Kernel settings that bear on MQTT load; the two published reports that Tacho's workloads come
/// from name them.
const SYSCTLS: [&str; 24] = [
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
    "net.netfilter.nf_conntrack_tcp_timeout_established",
    "net.netfilter.nf_conntrack_tcp_timeout_fin_wait",
    "net.netfilter.nf_conntrack_tcp_timeout_time_wait",
    "vm.max_map_count",
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
}

/// Reads text files below a root.
struct Files<'a>(&'a Path);

impl Files<'_> {
    fn line(&self, path: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.0.join(path)).ok()?;
        let line = text.lines().next()?.split_whitespace().collect::<Vec<_>>().join(" ");
        (!line.is_empty()).then_some(line)
    }

    /// The value of `key<separator>value` in a file of such lines.
    fn value(&self, path: &str, key: &str, separator: char) -> Option<String> {
        let text = std::fs::read_to_string(self.0.join(path)).ok()?;
        let value = text.lines().find_map(|line| {
            let (name, value) = line.split_once(separator)?;
            (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
        })?;
        (!value.is_empty()).then_some(value)
    }
}

impl Environment {
    /// The environment of this process, for a run of the resolved scenario file `scenario`.
    pub fn read(placement: Placement, scenario: &str) -> Self {
        Self::read_below(Path::new("/"), placement, scenario)
    }

    fn read_below(root: &Path, placement: Placement, scenario: &str) -> Self {
        let files = Files(root);
        let cpuinfo = |key| files.value("proc/cpuinfo", key, ':');
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let allowed = files.value("proc/self/status", "Cpus_allowed_list", ':');
        Self {
            schema_version: SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            distribution: files.value("etc/os-release", "PRETTY_NAME", '='),
            kernel: files.line("proc/sys/kernel/osrelease"),
            // Arm has no model name; the implementer's part number is what there is.
            cpu_model: cpuinfo("model name").or_else(|| cpuinfo("CPU part")),
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
            virtualised: cpuinfo("flags")
                .map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
            clock_source: files
                .line("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            memory_total_bytes: files
                .value("proc/meminfo", "MemTotal", ':')
                .and_then(|size| size.strip_suffix("kB")?.trim().parse::<u64>().ok())
                .map(|kib| kib * 1024),
            open_files_soft: limit.current,
            open_files_hard: limit.maximum,
            sysctl: SYSCTLS
                .iter()
                .map(|name| {
                    let path = PathBuf::from("proc/sys").join(name.replace('.', "/"));
                    ((*name).to_owned(), files.line(&path.to_string_lossy()))
                })
                .collect(),
            placement,
            scenario_hash: format!("{:016x}", fnv1a(scenario.as_bytes())),
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
        write("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian 13\"\n");
        let environment = Environment::read_below(root.path(), Placement::default(), "a");
        assert_eq!(environment.kernel.as_deref(), Some("6.1.0"));
        assert_eq!(environment.cpu_model.as_deref(), Some("Fast CPU"));
        assert_eq!(environment.virtualised, Some(true));
        assert_eq!(environment.distribution.as_deref(), Some("Debian 13"));
        assert_eq!(environment.sysctl["net.core.somaxconn"].as_deref(), Some("4096"));
        assert_eq!(environment.sysctl["net.ipv4.tcp_rmem"].as_deref(), Some("4096 131072 6291456"));
        assert_eq!(environment.sysctl["fs.nr_open"], None);
        assert_eq!(environment.smt_active, None);
        assert_eq!(environment.scenario_hash, "af63dc4c8601ec8c");
        assert!(environment.entries().iter().any(|(name, _)| name == "net.core.somaxconn"));
    }
}
