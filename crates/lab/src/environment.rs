//! The environment of this process, as the record keeps it.

use std::path::Path;

use tacho_monitor::KERNEL_SETTINGS;
use tacho_record::{Environment, Interface, Placement, SCHEMA_VERSION};

use crate::files::Files;

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

    /// Cores' worth of CPU time that the control group of this process allows.
    pub(crate) fn cpu_quota_cores(&self) -> Option<f64> {
        let quota = self.of_control_group("cpu.max")?;
        let (quota_us, period_us) = quota.split_once(' ')?;
        Some(quota_us.parse::<f64>().ok()? / period_us.parse::<f64>().ok()?)
    }

    /// A file of the control group of this process.
    fn of_control_group(&self, name: &str) -> Option<String> {
        let group = self.control_group()?;
        self.line(&format!("sys/fs/cgroup/{}/{name}", group.trim_matches('/')))
    }

    /// The path of this process in the unified hierarchy of control groups.
    fn control_group(&self) -> Option<String> {
        self.value("proc/self/cgroup", "0", ':').map(|path| path.trim_start_matches(':').to_owned())
    }
}

/// The environment of this process, for a run of the resolved scenario file `scenario`.
pub fn read(placement: Placement, scenario: &str) -> Environment {
    read_below(Path::new("/"), placement, scenario)
}

fn read_below(root: &Path, placement: Placement, scenario: &str) -> Environment {
    let files = Files(root);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let allowed = files.value("proc/self/status", "Cpus_allowed_list", ':');
    Environment {
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
            .or_else(|| files.line("sys/devices/system/cpu/cpufreq/boost").map(|flag| flag == "1")),
        virtualised: files
            .value("proc/cpuinfo", "flags", ':')
            .map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
        clock_source: files.line("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        numa_nodes: files.numa_nodes(),
        control_group_cpu_cores: files.cpu_quota_cores(),
        control_group_memory_bytes: files
            .of_control_group("memory.max")
            .and_then(|max| max.parse().ok()),
        interfaces: files.interfaces(),
        memory_total_bytes: files
            .value("proc/meminfo", "MemTotal", ':')
            .and_then(|size| size.strip_suffix("kB")?.trim().parse::<u64>().ok())
            .map(|kib| kib * 1024),
        control_group: files.control_group(),
        open_files_soft: limit.current,
        open_files_hard: limit.maximum,
        sysctl: KERNEL_SETTINGS
            .iter()
            .map(|name| ((*name).to_owned(), files.sysctl(name)))
            .collect(),
        placement,
        scenario_hash: format!("{:016x}", fnv1a(scenario.as_bytes())),
        command_line: crate::command_line::command_line(),
    }
}

/// FNV-1a, 64 bits: stable over versions and machines, which a hash for maps is not.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use tacho_record::{Property, PropertyValue};

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
        let environment = read_below(root.path(), Placement::default(), "a");
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
        let has = |property, value| entries.contains(&(property, value));
        let (mtu, speed_mbit_per_s) = (Some(9000), Some(10_000));
        let link = PropertyValue::Link { mtu, speed_mbit_per_s };
        assert!(has(Property::Interface { name: "eth0".to_owned() }, link), "{entries:?}");
        let cores = PropertyValue::Text("1.50".to_owned());
        assert!(has(Property::ControlGroupCores, cores), "{entries:?}");
        assert_eq!(environment.smt_active, None);
        assert_eq!(environment.scenario_hash, "af63dc4c8601ec8c");
        let setting = Property::KernelSetting { name: "net.core.somaxconn".to_owned() };
        assert!(has(setting, PropertyValue::Text("4096".to_owned())), "{entries:?}");
    }
}
