//! All processes of a machine: which descend from a process, and what the others used.

use std::collections::{BTreeMap, BTreeSet};

use procfs_core::process::Stat;

use crate::cpus::TICK_NS;
use crate::{MonitorError, ProcRoot};

/// Most processes that are read. A machine with more has no figures of other programs: reading
/// them every second would disturb what is measured (about 15 us each).
const PROCESSES_MAX: usize = 4096;
/// `PF_KTHREAD` of the kernel's `sched.h`.
const KERNEL_THREAD: u32 = 0x0020_0000;

/// All processes at one time, kernel threads left out: what these do, they do for others.
#[derive(Clone, Debug, Default)]
pub struct ProcessTable {
    /// Time of the reading, on the caller's monotonic clock.
    pub at_ns: u64,
    processes: BTreeMap<u32, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    name: String,
    parent: u32,
    /// Start time in ticks since boot: a reused id has another one.
    started: u64,
    /// User and system time in nanoseconds, in steps of a tick. The kernel scales them to the
    /// exact run time, so that a difference is wrong by two ticks at most.
    cpu_ns: u64,
    /// The core on which its first thread ran last.
    core: Option<usize>,
    /// CPU time and last core of each thread; empty unless the process has several and was busy.
    threads: BTreeMap<u32, (u64, Option<usize>)>,
}

/// What programs used of some cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherPrograms {
    /// Their CPU time in nanoseconds.
    pub cpu_ns: u64,
    /// The program that used most, with its CPU time.
    pub busiest: Option<(String, u64)>,
}

impl ProcessTable {
    /// Reads all processes below `root`, stamped `now_ns`; `None` where there are more than 4,096.
    /// The threads of those that were busy since `earlier` are read as well.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn read(
        root: &ProcRoot,
        now_ns: u64,
        earlier: Option<&Self>,
    ) -> Result<Option<Self>, MonitorError> {
        let path = root.path("");
        let entries = std::fs::read_dir(&path)
            .map_err(|source| MonitorError::Read { path: path.clone(), source })?;
        let mut table = Self { at_ns: now_ns, processes: BTreeMap::new() };
        for (count, pid) in entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .enumerate()
        {
            if count >= PROCESSES_MAX {
                return Ok(None);
            }
            // One that exits meanwhile is left out.
            let Ok(stat) = root.parse::<Stat>(format!("{pid}/stat")) else { continue };
            if stat.flags & KERNEL_THREAD == 0 {
                let has_threads = stat.num_threads > 1;
                let mut entry = Entry::of(stat);
                let before = earlier.and_then(|earlier| earlier.processes.get(&pid));
                if has_threads && before.is_some_and(|before| before.cpu_ns < entry.cpu_ns) {
                    entry.threads = threads(root, pid);
                }
                table.processes.insert(pid, entry);
            }
        }
        Ok(Some(table))
    }

    /// Process `pid` and all that descend from it.
    pub fn tree(&self, pid: u32) -> BTreeSet<u32> {
        let mut tree = BTreeSet::from([pid]);
        loop {
            let children = self.processes.iter().filter(|(_, entry)| tree.contains(&entry.parent));
            let new: Vec<u32> =
                children.map(|(pid, _)| *pid).filter(|pid| !tree.contains(pid)).collect();
            if new.is_empty() {
                return tree;
            }
            tree.extend(new);
        }
    }

    /// What processes outside of `except` used between `earlier` and `self` on `cores`. A process
    /// counts where it ran last.
    pub fn used_since(
        &self,
        earlier: &Self,
        cores: &[usize],
        except: &BTreeSet<u32>,
    ) -> OtherPrograms {
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (pid, entry) in self.processes.iter().filter(|(pid, _)| !except.contains(pid)) {
            let before = earlier.processes.get(pid).filter(|old| old.started == entry.started);
            *by_name.entry(&entry.name).or_default() += entry.used_since(before, cores);
        }
        let busiest = by_name.iter().max_by_key(|(_, used_ns)| **used_ns);
        OtherPrograms {
            cpu_ns: by_name.values().sum(),
            busiest: busiest
                .filter(|(_, used_ns)| **used_ns > 0)
                .map(|(name, used_ns)| ((*name).to_owned(), *used_ns)),
        }
    }
}

impl Entry {
    fn of(stat: Stat) -> Self {
        Self {
            parent: u32::try_from(stat.ppid).unwrap_or(0),
            started: stat.starttime,
            cpu_ns: (stat.utime + stat.stime) * TICK_NS,
            core: stat.processor.and_then(|core| usize::try_from(core).ok()),
            name: stat.comm,
            threads: BTreeMap::new(),
        }
    }

    /// CPU time on `cores` since `before`; all of it for a process that is new.
    fn used_since(&self, before: Option<&Self>, cores: &[usize]) -> u64 {
        let is_there = |core: Option<usize>| core.is_some_and(|core| cores.contains(&core));
        match before {
            Some(before) if !before.threads.is_empty() && !self.threads.is_empty() => {
                let here = self.threads.iter().filter(|(_, (_, core))| is_there(*core));
                here.map(|(tid, (cpu_ns, _))| {
                    cpu_ns.saturating_sub(before.threads.get(tid).map_or(0, |thread| thread.0))
                })
                .sum()
            }
            _ if !is_there(self.core) => 0,
            before => self.cpu_ns.saturating_sub(before.map_or(0, |before| before.cpu_ns)),
        }
    }
}

fn threads(root: &ProcRoot, pid: u32) -> BTreeMap<u32, (u64, Option<usize>)> {
    let Ok(entries) = std::fs::read_dir(root.path(format!("{pid}/task"))) else {
        return BTreeMap::new();
    };
    let tids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    tids.filter_map(|tid: u32| {
        let entry = Entry::of(root.parse(format!("{pid}/task/{tid}/stat")).ok()?);
        Some((tid, (entry.cpu_ns, entry.core)))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, parent: u32, ticks: u64, core: usize) -> Entry {
        let (name, cpu_ns) = (name.to_owned(), ticks * TICK_NS);
        Entry { name, parent, started: 7, cpu_ns, core: Some(core), threads: BTreeMap::new() }
    }

    fn table(entries: impl IntoIterator<Item = (u32, Entry)>) -> ProcessTable {
        ProcessTable { at_ns: 0, processes: entries.into_iter().collect() }
    }

    #[test]
    fn a_tree_has_children_of_children() {
        let all = table([
            (1, entry("init", 0, 0, 0)),
            (30, entry("sh", 1, 0, 0)),
            (20, entry("broker", 30, 0, 0)),
            (10, entry("helper", 20, 0, 0)),
            (40, entry("other", 1, 0, 0)),
        ]);
        assert_eq!(all.tree(30), BTreeSet::from([10, 20, 30]));
        assert_eq!(all.tree(99), BTreeSet::from([99]));
    }

    #[test]
    fn other_programs_count_on_the_cores_where_they_ran() {
        let before = table([
            (1, entry("broker", 0, 100, 0)),
            (2, entry("make", 0, 50, 0)),
            (3, entry("make", 0, 50, 1)),
            (4, entry("old", 0, 90, 0)),
        ]);
        let reused = Entry { started: 8, ..entry("new", 0, 3, 0) };
        let after = table([
            (1, entry("broker", 0, 190, 0)),
            (2, entry("make", 0, 57, 0)),
            (3, entry("make", 0, 99, 1)),
            (4, reused),
        ]);
        let used = after.used_since(&before, &[0], &BTreeSet::from([1]));
        assert_eq!(used.cpu_ns, 10 * TICK_NS);
        assert_eq!(used.busiest, Some(("make".to_owned(), 7 * TICK_NS)));
        assert_eq!(after.used_since(&before, &[5], &BTreeSet::new()), OtherPrograms::default());
    }

    #[test]
    fn threads_count_on_the_cores_where_they_ran() {
        let threads = |ticks: [u64; 2]| {
            [(5, (ticks[0] * TICK_NS, Some(0))), (6, (ticks[1] * TICK_NS, Some(1)))].into()
        };
        let busy = |ticks: [u64; 2]| Entry {
            threads: threads(ticks),
            ..entry("make", 0, ticks.iter().sum(), 0)
        };
        let (before, after) = (table([(5, busy([1, 10]))]), table([(5, busy([3, 50]))]));
        let used = |core| after.used_since(&before, &[core], &BTreeSet::new()).cpu_ns;
        assert_eq!([used(0), used(1)], [2 * TICK_NS, 40 * TICK_NS]);
    }

    #[test]
    fn this_process_is_in_the_table_of_this_machine() {
        let table = ProcessTable::read(&ProcRoot::default(), 5, None);
        let table = table.expect("/proc is readable").expect("fewer than 4,096 processes");
        assert_eq!(table.at_ns, 5);
        assert!(table.processes.contains_key(&std::process::id()));
    }
}
