//! The limits of the process: descriptors and memory.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many descriptors this process may have open. `u64::MAX` stands for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdLimit {
    /// The limit in force.
    pub soft: u64,
    /// The largest value of the soft limit.
    pub hard: u64,
}

/// macOS refuses a soft limit above `OPEN_MAX`, even where the hard limit is infinite.
const OPEN_MAX: u64 = 10_240;

/// Raises the soft limit of descriptors to the hard limit and returns the limits now in force.
///
/// # Errors
/// When the system refuses; the limits are then unchanged.
pub fn raise_fd_limit() -> io::Result<FdLimit> {
    let before = getrlimit(Resource::Nofile);
    if before.current == before.maximum {
        return Ok(fd_limit());
    }
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        if before.current.is_none_or(|soft| soft >= OPEN_MAX) {
            return Err(error.into());
        }
        setrlimit(Resource::Nofile, Rlimit { current: Some(OPEN_MAX), maximum: before.maximum })?;
    }
    Ok(fd_limit())
}

fn fd_limit() -> FdLimit {
    let limit = getrlimit(Resource::Nofile);
    FdLimit { soft: limit.current.unwrap_or(u64::MAX), hard: limit.maximum.unwrap_or(u64::MAX) }
}

/// Linux's default of `net.ipv4.ip_local_port_range`.
const LOCAL_PORTS: (u16, u16) = (32_768, 60_999);

/// First and last port that the system gives to outgoing connections
/// (`net.ipv4.ip_local_port_range`).
#[must_use]
pub fn local_port_range() -> (u16, u16) {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    text.ok().and_then(|text| parse_ports(&text)).unwrap_or(LOCAL_PORTS)
}

fn parse_ports(text: &str) -> Option<(u16, u16)> {
    let mut ports = text.split_whitespace().map(str::parse);
    match (ports.next(), ports.next()) {
        (Some(Ok(first)), Some(Ok(last))) if first <= last => Some((first, last)),
        _ => None,
    }
}

/// The memory that this process may use: the machine's, or the limit of its control group if that
/// is lower. `None` where the system does not report it.
#[must_use]
pub fn memory_bytes() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let kib = |text: String| {
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    let machine = read("/proc/meminfo").and_then(kib).map(|kib| kib * 1024)?;
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let limits = group_limits(&groups).into_iter().filter_map(|path| read(&path));
    let group = limits.filter_map(|text| text.trim().parse::<u64>().ok()).min();
    Some(group.map_or(machine, |group| machine.min(group)))
}

/// The files with memory limits of control groups, given `/proc/self/cgroup`: those of this
/// process's own group of version 2 and its ancestors, and that of the version 1 group visible in
/// containers. The content "max" means no limit. A path with ".." leads out of the visible
/// hierarchy, and the top group is used instead.
fn group_limits(groups: &str) -> Vec<String> {
    const TOP: &str = "/sys/fs/cgroup";
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let own = if own.split('/').any(|part| part == "..") { "" } else { own };
    let mut paths =
        vec![format!("{TOP}/memory/memory.limit_in_bytes"), format!("{TOP}/memory.max")];
    let mut group = TOP.to_owned();
    for part in own.split('/').filter(|part| !part.is_empty()) {
        group = format!("{group}/{part}");
        paths.push(format!("{group}/memory.max"));
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_known_on_linux() {
        if cfg!(target_os = "linux") {
            assert!(memory_bytes().is_some_and(|bytes| bytes > 1 << 20));
        }
    }

    #[test]
    fn the_range_of_local_ports_is_read() {
        assert_eq!(parse_ports("40000\t40099\n"), Some((40_000, 40_099)));
        assert_eq!(
            (parse_ports(""), parse_ports("5 4"), parse_ports("1 70000")),
            (None, None, None)
        );
        let (first, last) = local_port_range();
        assert!(first <= last);
    }

    #[test]
    fn the_own_group_and_its_ancestors_limit_memory() {
        let limits_for = |groups| group_limits(groups).join(" ").replace("/sys/fs/cgroup/", "");
        let top = "memory/memory.limit_in_bytes memory.max";
        assert_eq!(
            limits_for("0::/a/b.service\n"),
            format!("{top} a/memory.max a/b.service/memory.max")
        );
        for groups in ["", "0::/", "0::/../elsewhere", "4:memory:/x"] {
            assert_eq!(limits_for(groups), top, "{groups}");
        }
    }

    #[test]
    fn soft_limit_reaches_hard_limit() -> io::Result<()> {
        let limit = raise_fd_limit()?;
        if cfg!(target_os = "linux") {
            assert_eq!(limit.soft, limit.hard);
        }
        assert_eq!(raise_fd_limit()?, limit);
        Ok(())
    }
}
