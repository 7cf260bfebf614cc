//! Whether generator threads may spin: only on cores of their own.
//!
//! A thread that spins takes a core from whatever else could run there. On the core of a broker, or
//! on the other hardware thread of that core, it would slow the broker down; under a CPU quota of
//! the control group it would use up the broker's time.

use std::collections::BTreeSet;
use std::path::Path;

use tacho_monitor::parse_cpu_list;
use tacho_record::{NoOwnCore, Timing};

use crate::files::Files;

/// What generator threads may spin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spinning {
    /// In percent of the core of each thread; `None` where they never spin.
    pub budget_percent: Option<u8>,
    /// With [`Timing::Auto`], why they never spin.
    pub no_own_core: Option<NoOwnCore>,
}

impl Spinning {
    /// What `threads` generator threads on `cores` may spin beside the brokers on this machine,
    /// whose processes are `brokers`, as far as they are known. Threads without `cores` are not
    /// pinned.
    #[must_use]
    pub fn new(timing: Timing, cores: &[usize], threads: usize, brokers: &[Option<u32>]) -> Self {
        Self::below(Path::new("/"), timing, (cores, threads), brokers)
    }

    fn below(
        root: &Path,
        timing: Timing,
        (cores, threads): (&[usize], usize),
        brokers: &[Option<u32>],
    ) -> Self {
        let no_own_core = match timing {
            Timing::Auto => no_own_core(&Files(root), cores, threads, brokers),
            Timing::Sleep | Timing::Spin | Timing::Batch => None,
        };
        let budget_percent = match timing {
            Timing::Auto if no_own_core.is_none() => Some(tacho_load::Timing::SPIN_BUDGET_PERCENT),
            Timing::Spin => Some(100),
            Timing::Auto | Timing::Sleep | Timing::Batch => None,
        };
        Self { budget_percent, no_own_core }
    }
}

fn no_own_core(
    files: &Files<'_>,
    cores: &[usize],
    threads: usize,
    brokers: &[Option<u32>],
) -> Option<NoOwnCore> {
    let own: BTreeSet<usize> = cores.iter().copied().collect();
    if own.is_empty() {
        return Some(NoOwnCore::NotPinned);
    }
    if threads > own.len() {
        return Some(NoOwnCore::FewerCoresThanThreads);
    }
    let mut taken = BTreeSet::new();
    for broker in brokers {
        match broker.and_then(|pid| files.cores_of_process(pid)) {
            Some(cores) => taken.extend(cores),
            None => return Some(NoOwnCore::BrokerUnknown),
        }
    }
    if !own.is_disjoint(&taken) {
        return Some(NoOwnCore::SharedWithBroker);
    }
    let siblings = own.iter().flat_map(|core| files.hardware_threads_beside(*core));
    if siblings.into_iter().any(|core| taken.contains(&core)) {
        return Some(NoOwnCore::SharedHardware);
    }
    let in_use = (own.len() + taken.len()) as f64;
    files.cpu_quota_cores().is_some_and(|quota| quota < in_use).then_some(NoOwnCore::CpuQuota)
}

/// What this module alone asks for.
impl Files<'_> {
    /// The cores that a process may use.
    fn cores_of_process(&self, pid: u32) -> Option<Vec<usize>> {
        let list = self.value(&format!("proc/{pid}/status"), "Cpus_allowed_list", ':')?;
        parse_cpu_list(&list)
    }

    /// All hardware threads of the physical core to which `core` belongs.
    fn hardware_threads_beside(&self, core: usize) -> Vec<usize> {
        let path = format!("sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
        self.line(&path).and_then(|list| parse_cpu_list(&list)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two physical cores with two hardware threads each, and a broker on the first one.
    fn machine() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("temporary directory");
        for (core, siblings) in [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")] {
            let path = format!("sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
            write(root.path(), &path, siblings);
        }
        write(root.path(), "proc/7/status", "Name:\tbroker\nCpus_allowed_list:\t0\n");
        write(root.path(), "proc/self/cgroup", "0::/one\n");
        root
    }

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().expect("has a parent")).expect("directory");
        std::fs::write(path, text).expect("file");
    }

    fn obstacle(
        root: &tempfile::TempDir,
        cores: &[usize],
        threads: usize,
        brokers: &[Option<u32>],
    ) -> Option<NoOwnCore> {
        let spinning = Spinning::below(root.path(), Timing::Auto, (cores, threads), brokers);
        assert_eq!(spinning.budget_percent.is_some(), spinning.no_own_core.is_none());
        spinning.no_own_core
    }

    #[test]
    fn threads_spin_only_on_cores_of_their_own() {
        let root = machine();
        let broker = [Some(7)];
        assert_eq!(obstacle(&root, &[1, 3], 2, &broker), None);
        assert_eq!(obstacle(&root, &[1], 1, &[]), None);
        assert_eq!(obstacle(&root, &[], 1, &[]), Some(NoOwnCore::NotPinned));
        assert_eq!(obstacle(&root, &[1], 2, &broker), Some(NoOwnCore::FewerCoresThanThreads));
        assert_eq!(obstacle(&root, &[1, 1], 2, &broker), Some(NoOwnCore::FewerCoresThanThreads));
        assert_eq!(obstacle(&root, &[0, 1], 1, &broker), Some(NoOwnCore::SharedWithBroker));
        assert_eq!(obstacle(&root, &[2], 1, &broker), Some(NoOwnCore::SharedHardware));
    }

    #[test]
    fn a_broker_whose_cores_are_not_known_may_be_anywhere() {
        let root = machine();
        assert_eq!(obstacle(&root, &[1], 1, &[Some(7), None]), Some(NoOwnCore::BrokerUnknown));
        // The process has ended, or is not visible.
        assert_eq!(obstacle(&root, &[1], 1, &[Some(8)]), Some(NoOwnCore::BrokerUnknown));
    }

    #[test]
    fn a_quota_for_fewer_cores_than_are_in_use_forbids_spinning() {
        let root = machine();
        let quota = |max: &str| write(root.path(), "sys/fs/cgroup/one/cpu.max", max);
        quota("150000 100000\n");
        assert_eq!(obstacle(&root, &[1], 1, &[Some(7)]), Some(NoOwnCore::CpuQuota));
        quota("200000 100000\n");
        assert_eq!(obstacle(&root, &[1], 1, &[Some(7)]), None);
        quota("max 100000\n");
        assert_eq!(obstacle(&root, &[1], 1, &[Some(7)]), None);
    }

    #[test]
    fn the_budget_follows_from_the_timing() {
        let root = machine();
        let budget = |timing| {
            let spinning = Spinning::below(root.path(), timing, (&[0], 1), &[Some(7)]);
            assert_eq!(spinning.no_own_core.is_some(), timing == Timing::Auto);
            spinning.budget_percent
        };
        assert_eq!(budget(Timing::Auto), None);
        assert_eq!(budget(Timing::Sleep), None);
        assert_eq!(budget(Timing::Batch), None);
        // It was asked for: the user decides.
        assert_eq!(budget(Timing::Spin), Some(100));
        let free = Spinning::below(root.path(), Timing::Auto, (&[1], 1), &[Some(7)]);
        assert_eq!(free.budget_percent, Some(tacho_load::Timing::SPIN_BUDGET_PERCENT));
    }
}
