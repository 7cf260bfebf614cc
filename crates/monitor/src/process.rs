//! One process: CPU time of all threads, memory, descriptors.

use std::collections::HashMap;

use procfs_core::FromRead;
use procfs_core::process::{Schedstat, Stat, Status};

use crate::cpus::TICK_NS;
use crate::{MonitorError, ProcRoot};

/// Samples one process by its id.
///
/// CPU time is the sum of `task/*/schedstat` (exact, in nanoseconds). An exited thread keeps the
/// time of its last sample. `PID/stat` includes exited threads completely but counts in ticks of
/// 10 ms; where it exceeds the sum (a thread began and exited between two samples), the sample
/// takes its value and says so in [`ProcessSample::cpu_source`].
#[derive(Debug)]
pub struct ProcessSampler {
    root: ProcRoot,
    pid: u32,
    /// CPU nanoseconds of each live thread at the last sample.
    threads: HashMap<u32, u64>,
    /// CPU nanoseconds of sampled threads that have exited.
    ended_ns: u64,
    /// The total of the last sample; it never decreases.
    cpu_ns: u64,
}

/// The source of a sample's CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuSource {
    /// The sum over the threads' `schedstat`, exact to the nanosecond.
    Schedstat,
    /// The counter of a control group that holds the processes and nothing else: exact, processes
    /// that have ended included.
    ControlGroup,
    /// `PID/stat`, in ticks of 10 ms: the kernel has no `schedstat`, or threads exited between two
    /// samples and only the process total includes their time.
    Stat,
}

/// One thread of a sampled process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadSample {
    /// Thread id.
    pub tid: u32,
    /// Thread name, truncated by the kernel to 15 bytes.
    pub name: String,
    /// CPU time of this thread since it started, in nanoseconds.
    pub cpu_ns: u64,
    /// Time that it was ready to run and waited for a core, in nanoseconds.
    pub waited_ns: u64,
}

/// The state of a process at one time.
#[derive(Clone, Debug)]
pub struct ProcessSample {
    /// Time of the sample, on the caller's monotonic clock.
    pub at_ns: u64,
    /// CPU time of all threads since the process started, in nanoseconds.
    pub cpu_ns: u64,
    /// The source of `cpu_ns`.
    pub cpu_source: CpuSource,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
    /// Peak resident memory, in bytes.
    pub rss_max_bytes: u64,
    /// The live threads.
    pub threads: Vec<ThreadSample>,
    /// Open descriptors; `None` without the permission to read them.
    pub open_fds: Option<u64>,
    /// The cores on which the process may run.
    pub cores_allowed: Vec<usize>,
}

/// Resident memory of process `pid` of this machine, in bytes.
///
/// # Errors
/// [`MonitorError::ProcessGone`] when there is no such process; other errors when its `status`
/// cannot be read or parsed.
pub fn resident_bytes(pid: u32) -> Result<u64, MonitorError> {
    ProcessSampler::new(pid).resident_bytes()
}

impl ProcessSampler {
    /// Samples process `pid` of this machine.
    pub fn new(pid: u32) -> Self {
        Self::with_root(ProcRoot::default(), pid)
    }

    /// Samples process `pid` below `root`.
    pub fn with_root(root: ProcRoot, pid: u32) -> Self {
        Self { root, pid, threads: HashMap::new(), ended_ns: 0, cpu_ns: 0 }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Takes one sample, stamped `now_ns`.
    ///
    /// # Errors
    /// [`MonitorError::ProcessGone`] once the process has exited; other errors when a file cannot
    /// be read or parsed.
    pub fn sample(&mut self, now_ns: u64) -> Result<ProcessSample, MonitorError> {
        let stat: Stat = self.parse("stat")?;
        if matches!(stat.state, 'Z' | 'X' | 'x') {
            return Err(MonitorError::ProcessGone { pid: self.pid });
        }
        let status: Status = self.parse("status")?;
        let threads = self.threads()?;
        let (cpu_ns, cpu_source) = self.account(&threads, (stat.utime + stat.stime) * TICK_NS);
        Ok(ProcessSample {
            at_ns: now_ns,
            cpu_ns,
            cpu_source,
            rss_bytes: kib_as_bytes(status.vmrss),
            rss_max_bytes: kib_as_bytes(status.vmhwm),
            threads,
            open_fds: open_fds(&self.path("fd")),
            cores_allowed: status
                .cpus_allowed_list
                .unwrap_or_default()
                .into_iter()
                .flat_map(|(first, last)| first as usize..=last as usize)
                .collect(),
        })
    }

    /// Resident memory now, in bytes.
    ///
    /// # Errors
    /// As for [`ProcessSampler::sample`].
    pub fn resident_bytes(&self) -> Result<u64, MonitorError> {
        let status: Status = self.parse("status")?;
        Ok(kib_as_bytes(status.vmrss))
    }

    /// Adds up the threads and compares the sum with the process total in `PID/stat`.
    fn account(&mut self, threads: &[ThreadSample], stat_ns: u64) -> (u64, CpuSource) {
        let before = std::mem::take(&mut self.threads);
        self.threads = threads.iter().map(|thread| (thread.tid, thread.cpu_ns)).collect();
        for (tid, cpu_ns) in before {
            // A thread id with less time than before has been reused.
            if self.threads.get(&tid).is_none_or(|now_ns| *now_ns < cpu_ns) {
                self.ended_ns += cpu_ns;
            }
        }
        let live_ns: u64 = threads.iter().map(|thread| thread.cpu_ns).sum();
        let sum_ns = self.ended_ns + live_ns;
        let no_schedstat = live_ns == 0 && stat_ns > 0;
        // User and system time are each rounded, so two ticks are within the rounding error.
        let (value_ns, source) = if no_schedstat || stat_ns > sum_ns + 2 * TICK_NS {
            (stat_ns, CpuSource::Stat)
        } else {
            (sum_ns, CpuSource::Schedstat)
        };
        self.cpu_ns = self.cpu_ns.max(value_ns);
        (self.cpu_ns, source)
    }

    /// The live threads. A thread that exits meanwhile is left out.
    fn threads(&self) -> Result<Vec<ThreadSample>, MonitorError> {
        let path = self.path("task");
        let entries = std::fs::read_dir(&path)
            .map_err(|source| self.gone_or(MonitorError::Read { path: path.clone(), source }))?;
        let mut threads = Vec::new();
        for entry in entries.flatten() {
            let Some(tid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let directory = entry.path();
            let Ok(name) = std::fs::read_to_string(directory.join("comm")) else { continue };
            let (cpu_ns, waited_ns) = Schedstat::from_file(directory.join("schedstat"))
                .map_or((0, 0), |schedstat| (schedstat.sum_exec_runtime, schedstat.run_delay));
            threads.push(ThreadSample { tid, name: name.trim_end().to_owned(), cpu_ns, waited_ns });
        }
        threads.sort_unstable_by_key(|thread| thread.tid);
        Ok(threads)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.root.path(format!("{}/{name}", self.pid))
    }

    fn parse<T: FromRead>(&self, name: &str) -> Result<T, MonitorError> {
        self.root.parse(format!("{}/{name}", self.pid)).map_err(|error| self.gone_or(error))
    }

    /// Turns a read error into [`MonitorError::ProcessGone`] if the process has exited.
    fn gone_or(&self, error: MonitorError) -> MonitorError {
        match &error {
            MonitorError::Read { source, .. }
                // ESRCH: the process exited between opening and reading the file.
                if source.kind() == std::io::ErrorKind::NotFound
                    || source.raw_os_error() == Some(3) =>
            {
                match self.root.path("stat").exists() {
                    true => MonitorError::ProcessGone { pid: self.pid },
                    false => error,
                }
            }
            _ => error,
        }
    }
}

/// A `Vm..` field of `status`. The kernel omits them for processes without an address space.
fn kib_as_bytes(field: Option<u64>) -> u64 {
    field.unwrap_or(0) * 1024
}

/// Number of open descriptors. Since Linux 6.2 it is the size of the directory; counting the
/// entries of a broker with many connections takes milliseconds.
fn open_fds(folder: &std::path::Path) -> Option<u64> {
    #[cfg(target_os = "linux")]
    if let (Ok(system), Ok(metadata)) = (rustix::fs::statfs(folder), std::fs::metadata(folder))
        && system.f_type as u64 == 0x9fa0 // PROC_SUPER_MAGIC: the real /proc, not a copy
        && metadata.len() > 0
    {
        // The count requires the same permission as listing.
        std::fs::read_dir(folder).ok()?;
        return Some(metadata.len());
    }
    std::fs::read_dir(folder).ok().map(|fds| fds.count() as u64)
}

impl ProcessSample {
    /// CPU between `earlier` and `self`, one core = 100; 0 when no time has passed.
    pub fn cpu_percent_since(&self, earlier: &Self) -> f64 {
        match self.at_ns.saturating_sub(earlier.at_ns) {
            0 => 0.0,
            elapsed_ns => {
                self.cpu_ns.saturating_sub(earlier.cpu_ns) as f64 * 100.0 / elapsed_ns as f64
            }
        }
    }

    /// The longest time that one of the threads that `is_meant` by their names waited for a core
    /// between `earlier` and `self`, in percent; `None` without such threads or elapsed time.
    pub fn waited_percent_since(
        &self,
        earlier: &Self,
        is_meant: impl Fn(&str) -> bool,
    ) -> Option<f64> {
        let elapsed_ns = self.at_ns.checked_sub(earlier.at_ns).filter(|elapsed| *elapsed > 0)?;
        let waited = |thread: &ThreadSample| {
            let before = earlier.threads.iter().find(|before| before.tid == thread.tid)?;
            Some(thread.waited_ns.saturating_sub(before.waited_ns))
        };
        let threads = self.threads.iter().filter(|thread| is_meant(&thread.name));
        let longest_ns = threads.filter_map(waited).max()?;
        Some(longest_ns as f64 * 100.0 / elapsed_ns as f64)
    }

    /// CPU of each thread present in both samples, one core = 100.
    pub fn threads_percent_since(&self, earlier: &Self) -> Vec<(u32, f64)> {
        let elapsed_ns = self.at_ns.saturating_sub(earlier.at_ns);
        if elapsed_ns == 0 {
            return Vec::new();
        }
        let mut shares = Vec::new();
        for thread in &self.threads {
            if let Some(before) = earlier.threads.iter().find(|before| before.tid == thread.tid) {
                let cpu_ns = thread.cpu_ns.saturating_sub(before.cpu_ns);
                shares.push((thread.tid, cpu_ns as f64 * 100.0 / elapsed_ns as f64));
            }
        }
        shares
    }
}
