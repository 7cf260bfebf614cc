//! A machine and selected processes, row by row, for `tacho monitor` and local runs.

use crate::cgroup::ControlGroup;
use crate::disk::{self, DiskCounters};
use crate::find::find_processes;
use crate::host::{CoreTimes, HostSample, HostSampler};
use crate::kernel::{self, PressureCounters};
use crate::network::{self, InterfaceCounters, TcpCounters};
use crate::row::{CoreRow, CpuPercent, HostRow, ProcessRow};
use crate::{MonitorError, ProcRoot, ProcessSample, ProcessSampler, WatchedProcess};

/// Samples the machine and selected processes, and returns the change since the last sample. It
/// reads no clock: the caller stamps each sample.
#[derive(Debug)]
pub struct MachineSampler {
    root: ProcRoot,
    sampler: HostSampler,
    name: String,
    watched: Vec<WatchedProcess>,
    /// When to search for each of them again, in samples.
    searches: Vec<SearchBackoff>,
    samples: u64,
    tracked: Vec<Tracked>,
    last: Option<MachineCounters>,
}

/// Exponential backoff of searches for a process, since each search reads all processes.
#[derive(Clone, Copy, Debug, Default)]
struct SearchBackoff {
    next: u64,
    gap: u64,
}

/// Largest number of samples between two searches.
const SEARCH_GAP_MAX: u64 = 16;

/// Cumulative counters, from which rates follow.
#[derive(Clone, Debug)]
struct MachineCounters {
    host: HostSample,
    interfaces: Vec<InterfaceCounters>,
    disks: Vec<DiskCounters>,
    tcp: TcpCounters,
    pressure: PressureCounters,
    context_switches: Option<u64>,
}

/// A selected process that was found.
#[derive(Debug)]
struct Tracked {
    /// Position in `watched`.
    watch: usize,
    name: String,
    sampler: ProcessSampler,
    last: ProcessSample,
    throttled_us: Option<u64>,
}

impl MachineSampler {
    /// Samples the machine below `root` and the `watched` processes.
    pub fn new(root: ProcRoot, watched: Vec<WatchedProcess>) -> Self {
        let name = kernel::host_name(&root);
        let sampler = HostSampler::with_root(root.clone());
        let searches = vec![SearchBackoff::default(); watched.len()];
        Self { root, sampler, name, watched, searches, samples: 0, tracked: Vec::new(), last: None }
    }

    /// The machine's host name.
    pub fn host_name(&self) -> &str {
        &self.name
    }

    /// The selected processes that are running now.
    pub(crate) fn selected(&self) -> Vec<u32> {
        self.watched.iter().flat_map(|one| find_processes(&self.root, &one.selector)).collect()
    }

    /// The selected processes that are not running, except optional ones.
    pub fn missing(&self) -> Vec<String> {
        let absent = |index: &usize| !self.tracked.iter().any(|tracked| tracked.watch == *index);
        (0..self.watched.len())
            .filter(|index| !self.watched[*index].optional)
            .filter(absent)
            .map(|index| self.watched[index].selector.to_string())
            .collect()
    }

    /// Takes a sample, stamped `now_ns`. The first one is the baseline and returns no row.
    ///
    /// # Errors
    /// `stat`, `meminfo` or `loadavg` cannot be read or parsed. Any other unreadable file only
    /// makes its metrics absent from the row.
    pub fn sample(&mut self, now_ns: u64) -> Result<Option<HostRow>, MonitorError> {
        let stat = self.root.text("stat")?;
        let now = MachineCounters {
            host: self.sampler.sample_with_stat(&stat, now_ns)?,
            interfaces: network::interfaces(&self.root),
            disks: disk::disks(&self.root),
            tcp: network::tcp(&self.root),
            pressure: PressureCounters::read(&self.root),
            context_switches: kernel::context_switches(&stat),
        };
        let processes = self.processes(now_ns);
        let before = self.last.replace(now.clone());
        Ok(before.map(|before| self.row(&now, &before, processes)))
    }

    fn row(
        &self,
        now: &MachineCounters,
        before: &MachineCounters,
        processes: Vec<ProcessRow>,
    ) -> HostRow {
        let length_ns = now.host.at_ns.saturating_sub(before.host.at_ns);
        let seconds = length_ns as f64 / 1e9;
        let descriptors = kernel::descriptors(&self.root);
        let load = now.host.load;
        HostRow {
            at_ns: now.host.at_ns,
            length_ns,
            host: self.name.clone(),
            source: String::new(),
            target: None,
            cpu: Some(CpuPercent::from_times(&now.host.cpu_since(&before.host))),
            cores: cores(&now.host.cores, &before.host.cores),
            load: Some([load.one, load.five, load.fifteen]),
            memory: Some(now.host.memory),
            interfaces: network::interface_rates(&now.interfaces, &before.interfaces, seconds),
            disks: disk::disk_rates(&now.disks, &before.disks, seconds),
            file_systems: disk::file_systems(&self.root),
            tcp: network::tcp_rates(&now.tcp, &before.tcp, seconds),
            descriptors: descriptors.map(|(open, _)| open),
            descriptors_max: descriptors.map(|(_, most)| most),
            pressure: now.pressure.since(&before.pressure, length_ns),
            context_switches_per_s: network::rate(
                now.context_switches,
                before.context_switches,
                seconds,
            ),
            processes,
            clock_error_ns: Some(0),
        }
    }

    /// Rows of the processes present in this and the last sample; searches for missing ones.
    fn processes(&mut self, now_ns: u64) -> Vec<ProcessRow> {
        let mut rows = Vec::new();
        let (root, watched, searches) = (&self.root, &self.watched, &mut self.searches);
        self.tracked.retain_mut(|tracked| {
            let row = tracked.row(root, now_ns, watched[tracked.watch].target.as_deref());
            let there = row.is_some();
            if !there {
                searches[tracked.watch] = SearchBackoff::default();
            }
            rows.extend(row);
            there
        });
        for index in 0..self.watched.len() {
            let found = self.tracked.iter().any(|tracked| tracked.watch == index);
            let SearchBackoff { next, gap } = self.searches[index];
            if !found && self.samples >= next {
                let gap = (2 * gap).clamp(1, SEARCH_GAP_MAX);
                self.searches[index] = SearchBackoff { next: self.samples + gap, gap };
                self.search(index, now_ns);
            }
        }
        self.samples += 1;
        rows
    }

    fn search(&mut self, watch: usize, now_ns: u64) {
        for pid in find_processes(&self.root, &self.watched[watch].selector) {
            let mut sampler = ProcessSampler::with_root(self.root.clone(), pid);
            let Ok(last) = sampler.sample(now_ns) else { continue };
            let name = self.root.text(format!("{pid}/comm")).unwrap_or_default();
            let throttled_us = ControlGroup::read(&self.root, pid).throttled_us;
            let name = name.trim_end().to_owned();
            self.tracked.push(Tracked { watch, name, sampler, last, throttled_us });
        }
    }
}

impl Tracked {
    /// The process since its last sample; `None` once it has exited.
    fn row(&mut self, root: &ProcRoot, now_ns: u64, target: Option<&str>) -> Option<ProcessRow> {
        let now = self.sampler.sample(now_ns).ok()?;
        let before = std::mem::replace(&mut self.last, now);
        let now = &self.last;
        let pid = self.sampler.pid();
        let group = ControlGroup::read(root, pid);
        let throttled_before = std::mem::replace(&mut self.throttled_us, group.throttled_us);
        let elapsed_ns = now.at_ns.saturating_sub(before.at_ns);
        let throttled = group.throttled_us.zip(throttled_before).filter(|_| elapsed_ns > 0);
        Some(ProcessRow {
            name: self.name.clone(),
            pid: Some(pid),
            cpu_percent: Some(now.cpu_percent_since(&before)),
            rss_bytes: Some(now.rss_bytes),
            threads: Some(now.threads.len() as u64),
            descriptors: now.open_fds,
            cpu_limit_cores: group.cpu_limit_cores,
            memory_limit_bytes: group.memory_limit_bytes,
            throttled_percent: throttled.map(|(now_us, before_us)| {
                now_us.saturating_sub(before_us) as f64 * 1e5 / elapsed_ns as f64
            }),
            target: target.map(str::to_owned),
        })
    }
}

fn cores(now: &[CoreTimes], before: &[CoreTimes]) -> Vec<CoreRow> {
    let pairs = now
        .iter()
        .filter_map(|now| Some((now, before.iter().find(|before| before.core == now.core)?)));
    pairs
        .map(|(now, before)| CoreRow {
            core: now.core,
            cpu: CpuPercent::from_times(&now.times.since(&before.times)),
        })
        .collect()
}
