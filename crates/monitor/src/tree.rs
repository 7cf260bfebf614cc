//! A process with all that descend from it, as one: brokers that are several processes, or a shell
//! that starts one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::cgroup;
use crate::{CpuSource, MonitorError, ProcRoot, ProcessSample, ProcessSampler};

/// Most processes of one tree that are sampled.
const PROCESSES_MAX: usize = 256;

/// Samples a process and its descendants.
///
/// Where the control group of the process (version 2, else version 1) holds the tree and nothing
/// else, its counter is the CPU time: it includes what ended between two samples. Elsewhere it is
/// the sum over the tree, in which a descendant keeps the time of its last sample.
#[derive(Debug)]
pub struct ProcessTreeSampler {
    root: ProcRoot,
    top: ProcessSampler,
    descendants: BTreeMap<u32, Descendant>,
    /// CPU time of descendants that have exited.
    ended_ns: u64,
    /// Whether the control group's counter is in use; settled by the first sample.
    by_group: Option<bool>,
    /// What the counter of a group that others have joined since is ahead of the sum.
    ahead_ns: u64,
    /// CPU time of the last sample.
    cpu_ns: u64,
}

#[derive(Debug)]
struct Descendant {
    sampler: ProcessSampler,
    cpu_ns: u64,
}

impl ProcessTreeSampler {
    /// Samples process `pid` of this machine and its descendants.
    pub fn new(pid: u32) -> Self {
        Self::with_root(ProcRoot::default(), pid)
    }

    /// The same below `root`.
    pub fn with_root(root: ProcRoot, pid: u32) -> Self {
        Self {
            top: ProcessSampler::with_root(root.clone(), pid),
            root,
            descendants: BTreeMap::new(),
            ended_ns: 0,
            by_group: None,
            ahead_ns: 0,
            cpu_ns: 0,
        }
    }

    /// Id of the process at the top.
    pub fn pid(&self) -> u32 {
        self.top.pid()
    }

    /// Ids of the processes of the last sample.
    pub fn pids(&self) -> BTreeSet<u32> {
        self.descendants.keys().copied().chain([self.top.pid()]).collect()
    }

    /// Takes one sample of all, stamped `now_ns`: CPU time, memory, descriptors and threads are
    /// sums; the cores are those on which any of them may run.
    ///
    /// # Errors
    /// As for [`ProcessSampler::sample`] of the process at the top; a descendant that exits
    /// meanwhile is left out.
    pub fn sample(&mut self, now_ns: u64) -> Result<ProcessSample, MonitorError> {
        let mut all = self.top.sample(now_ns)?;
        let found = descendants(&self.root, self.top.pid());
        let mut before = std::mem::take(&mut self.descendants);
        for pid in &found {
            let mut descendant = before.remove(pid).unwrap_or_else(|| Descendant {
                sampler: ProcessSampler::with_root(self.root.clone(), *pid),
                cpu_ns: 0,
            });
            let Ok(sample) = descendant.sampler.sample(now_ns) else {
                self.ended_ns += descendant.cpu_ns;
                continue;
            };
            descendant.cpu_ns = sample.cpu_ns;
            self.descendants.insert(*pid, descendant);
            add(&mut all, sample);
        }
        self.ended_ns += before.values().map(|gone| gone.cpu_ns).sum::<u64>();
        all.cpu_ns += self.ended_ns;
        let group_ns = cgroup::cpu_ns_of_only(&self.root, &self.pids());
        let has_group = group_ns.is_some();
        match (*self.by_group.get_or_insert(has_group), group_ns) {
            (true, Some(group_ns)) => {
                (all.cpu_ns, all.cpu_source) = (group_ns, CpuSource::ControlGroup);
            }
            (true, None) => {
                self.by_group = Some(false);
                self.ahead_ns = self.cpu_ns.saturating_sub(all.cpu_ns);
                all.cpu_ns += self.ahead_ns;
            }
            (false, _) => all.cpu_ns += self.ahead_ns,
        }
        self.cpu_ns = all.cpu_ns;
        Ok(all)
    }
}

/// Adds the figures of a descendant.
fn add(all: &mut ProcessSample, one: ProcessSample) {
    all.cpu_ns += one.cpu_ns;
    if one.cpu_source == CpuSource::Stat {
        all.cpu_source = CpuSource::Stat;
    }
    all.rss_bytes += one.rss_bytes;
    all.rss_max_bytes += one.rss_max_bytes;
    all.threads.extend(one.threads);
    all.open_fds = all.open_fds.zip(one.open_fds).map(|(all, one)| all + one);
    all.cores_allowed.extend(one.cores_allowed);
    all.cores_allowed.sort_unstable();
    all.cores_allowed.dedup();
}

/// Ids of all that descend from `pid`, by `task/*/children`; empty where the kernel lacks the
/// files (`CONFIG_PROC_CHILDREN`).
fn descendants(root: &ProcRoot, pid: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        for child in children(root.path(format!("{parent}/task"))) {
            if found.len() < PROCESSES_MAX && child != pid && found.insert(child) {
                open.push(child);
            }
        }
    }
    found
}

fn children(tasks: PathBuf) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(tasks) else { return Vec::new() };
    let files = entries.flatten().map(|entry| entry.path().join("children"));
    let texts = files.filter_map(|file| std::fs::read_to_string(file).ok());
    texts
        .flat_map(|text| {
            text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
        })
        .collect()
}
