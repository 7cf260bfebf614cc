//! What the system allows the process: descriptors and memory.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many descriptors this process may have open. `u64::MAX` stands for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdLimit {
    /// The limit in force.
    pub soft: u64,
    /// What the soft limit could be raised to.
    pub hard: u64,
}

/// macOS refuses a soft limit above `OPEN_MAX`, even where the hard limit is infinite.
const OPEN_MAX: u64 = 10_240;

/// Raises the soft limit of descriptors to the hard limit and returns what is now in force.
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

/// The memory that this process may use: the machine's, or less if its control group has less.
/// `None` where the system does not say.
#[must_use]
pub fn memory_bytes() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let kib = |text: String| {
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    let machine = read("/proc/meminfo").and_then(kib).map(|kib| kib * 1024)?;
    let group = GROUP_LIMITS.into_iter().filter_map(read);
    let group = group.filter_map(|text| text.trim().parse::<u64>().ok()).min();
    Some(group.map_or(machine, |group| machine.min(group)))
}

/// Where control groups of version 2 and 1 say what their processes may use; "max" is no limit.
const GROUP_LIMITS: [&str; 2] =
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

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
    fn soft_limit_reaches_hard_limit() -> io::Result<()> {
        let limit = raise_fd_limit()?;
        if cfg!(target_os = "linux") {
            assert_eq!(limit.soft, limit.hard);
        }
        assert_eq!(raise_fd_limit()?, limit);
        Ok(())
    }
}
