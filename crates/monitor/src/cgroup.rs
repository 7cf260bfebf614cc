//! The control group of a process: its limits (version 2) and its CPU time (versions 2 and 1).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::ProcRoot;

/// The limits of a process, and how long its CPU limit has throttled it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ControlGroup {
    pub(crate) cpu_limit_cores: Option<f64>,
    pub(crate) memory_limit_bytes: Option<u64>,
    pub(crate) throttled_us: Option<u64>,
}

impl ControlGroup {
    /// The group of process `pid`. The lowest limit on the path to the root applies.
    pub(crate) fn read(root: &ProcRoot, pid: u32) -> Self {
        let mut group = Self::default();
        let Some(mut folder) = folder(root, pid) else { return group };
        let top = root.sys("fs/cgroup");
        while folder.starts_with(&top) {
            let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            group.cpu_limit_cores = least(group.cpu_limit_cores, cores(&text("cpu.max")));
            let memory = text("memory.max").trim().parse::<u64>().ok();
            group.memory_limit_bytes = least(group.memory_limit_bytes, memory);
            // Throttling a group throttles its descendants, so the nearest group with a limit has
            // the relevant counter.
            if group.throttled_us.is_none() && group.cpu_limit_cores.is_some() {
                group.throttled_us = text("cpu.stat")
                    .lines()
                    .find_map(|line| line.strip_prefix("throttled_usec ")?.trim().parse().ok());
            }
            if !folder.pop() {
                break;
            }
        }
        group
    }
}

/// The folder of the process's group below the unified hierarchy.
fn folder(root: &ProcRoot, pid: u32) -> Option<PathBuf> {
    let text = root.text(format!("{pid}/cgroup")).ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // Inside a container the path may lead outside the mounted hierarchy.
    if path.split('/').any(|part| part == "..") {
        return None;
    }
    Some(root.sys("fs/cgroup").join(path))
}

/// CPU time of the control group that holds these processes and no other, in nanoseconds.
pub(crate) fn cpu_ns_of_only(root: &ProcRoot, pids: &BTreeSet<u32>) -> Option<u64> {
    let pid = *pids.first()?;
    let unified = || {
        let folder = folder(root, pid)?;
        let text = std::fs::read_to_string(folder.join("cpu.stat")).ok()?;
        let used_us = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
        let used_us: u64 = used_us.trim().parse().ok()?;
        holds_only(&folder, pids).then_some(used_us * 1000)
    };
    let first_version = || {
        let folder = accounting_folder(root, pid)?;
        let text = std::fs::read_to_string(folder.join("cpuacct.usage")).ok()?;
        let used_ns = text.trim().parse().ok()?;
        holds_only(&folder, pids).then_some(used_ns)
    };
    unified().or_else(first_version)
}

/// Are all processes of a group among `pids`? A group whose processes cannot be read may hold
/// others.
fn holds_only(folder: &Path, pids: &BTreeSet<u32>) -> bool {
    let Ok(text) = std::fs::read_to_string(folder.join("cgroup.procs")) else { return false };
    let mut members = text.split_whitespace().peekable();
    members.peek().is_some()
        && members.all(|member| member.parse().is_ok_and(|member| pids.contains(&member)))
        && !has_children(folder)
}

/// Groups below count in the usage of a group, but not among its processes.
fn has_children(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return true };
    entries.flatten().any(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
}

/// The folder of the process's group in the hierarchy that accounts CPU time (version 1).
fn accounting_folder(root: &ProcRoot, pid: u32) -> Option<PathBuf> {
    let text = root.text(format!("{pid}/cgroup")).ok()?;
    let path = text.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == "cpuacct").then_some(path)
    })?;
    if path.split('/').any(|part| part == "..") {
        return None;
    }
    Some(root.sys("fs/cgroup/cpuacct").join(path.trim_start_matches('/')))
}

/// `cpu.max`: quota and period in microseconds, `max` for none.
fn cores(text: &str) -> Option<f64> {
    let mut fields = text.split_whitespace();
    let quota_us: f64 = fields.next()?.parse().ok()?;
    let period_us: f64 = fields.next()?.parse().ok()?;
    (period_us > 0.0).then(|| quota_us / period_us)
}

fn least<T: PartialOrd>(known: Option<T>, new: Option<T>) -> Option<T> {
    match (known, new) {
        (Some(known), Some(new)) if new < known => Some(new),
        (None, new) => new,
        (known, _) => known,
    }
}
