//! The whole machine: CPU by state and core, memory, load average.

use procfs_core::Meminfo;

use crate::cpus::TICK_NS;
use crate::{CpuTimes, MemoryBytes, MonitorError, ProcRoot};

/// Samples the local machine.
#[derive(Clone, Debug, Default)]
pub struct HostSampler {
    root: ProcRoot,
}

/// The CPU time of one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreTimes {
    /// The core's number; offline cores are not listed.
    pub core: usize,
    /// Its time by state since boot.
    pub times: CpuTimes,
}

/// Mean number of runnable and uninterruptible tasks over 1, 5 and 15 minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadAverage {
    /// Over one minute.
    pub one: f64,
    /// Over five minutes.
    pub five: f64,
    /// Over fifteen minutes.
    pub fifteen: f64,
}

/// The state of the machine at one time.
#[derive(Clone, Debug, Default)]
pub struct HostSample {
    /// Time of the sample, on the caller's monotonic clock.
    pub at_ns: u64,
    /// Sum of all cores.
    pub cpu: CpuTimes,
    /// Each core.
    pub cores: Vec<CoreTimes>,
    /// Installed memory in bytes.
    pub memory_total_bytes: u64,
    /// Memory available to processes without swapping, in bytes.
    pub memory_available_bytes: u64,
    /// Memory by kind of use.
    pub memory: MemoryBytes,
    /// Load average.
    pub load: LoadAverage,
}

impl HostSampler {
    /// Reads below `root`.
    pub fn with_root(root: ProcRoot) -> Self {
        Self { root }
    }

    /// Takes one sample, stamped `now_ns`.
    ///
    /// # Errors
    /// `stat`, `meminfo` or `loadavg` is missing or does not have its documented format.
    pub fn sample(&self, now_ns: u64) -> Result<HostSample, MonitorError> {
        self.sample_with_stat(&self.root.text("stat")?, now_ns)
    }

    /// Takes one sample, given the content of `stat`.
    pub(crate) fn sample_with_stat(
        &self,
        stat: &str,
        now_ns: u64,
    ) -> Result<HostSample, MonitorError> {
        let (cpu, cores) = self.cpu(stat)?;
        let memory: Meminfo = self.root.parse("meminfo")?;
        let load: procfs_core::LoadAverage = self.root.parse("loadavg")?;
        Ok(HostSample {
            at_ns: now_ns,
            cpu,
            cores,
            memory_total_bytes: memory.mem_total,
            // Kernels before 3.14 do not estimate it; free memory plus caches approximates it.
            memory_available_bytes: memory
                .mem_available
                .unwrap_or(memory.mem_free + memory.buffers + memory.cached),
            memory: MemoryBytes {
                total: memory.mem_total,
                used: 0,
                buffered: memory.buffers,
                cached: memory.cached,
                free: memory.mem_free,
                slab_reclaimable: memory.s_reclaimable,
                slab_unreclaimable: memory.s_unreclaim,
                available: memory.mem_available,
            }
            .with_used(),
            load: LoadAverage {
                one: hundredths(load.one),
                five: hundredths(load.five),
                fifteen: hundredths(load.fifteen),
            },
        })
    }

    /// The `cpu` lines of `stat`: the sum, and each core by number.
    ///
    /// Not parsed by procfs-core, which numbers cores by position and so misnumbers them when one
    /// is offline.
    fn cpu(&self, text: &str) -> Result<(CpuTimes, Vec<CoreTimes>), MonitorError> {
        let malformed = |what: &str| MonitorError::Parse {
            path: self.root.path("stat"),
            what: what.to_owned(),
        };
        let mut total = None;
        let mut cores = Vec::new();
        for line in text.lines() {
            let mut fields = line.split_whitespace();
            let Some(number) = fields.next().and_then(|name| name.strip_prefix("cpu")) else {
                continue;
            };
            let times = CpuTimes::parse(fields)
                .ok_or_else(|| malformed("a cpu line has fewer than four numbers"))?;
            if number.is_empty() {
                total = Some(times);
            } else if let Ok(core) = number.parse() {
                cores.push(CoreTimes { core, times });
            }
        }
        Ok((total.ok_or_else(|| malformed("it has no cpu line"))?, cores))
    }
}

/// Rounds to the two decimals that the kernel writes, which `f32` does not represent exactly.
fn hundredths(load: f32) -> f64 {
    (f64::from(load) * 100.0).round() / 100.0
}

impl HostSample {
    /// CPU time by state between `earlier` and `self`, over all cores.
    pub fn cpu_since(&self, earlier: &Self) -> CpuTimes {
        self.cpu.since(&earlier.cpu)
    }

    /// CPU time by state between `earlier` and `self`, over those of `cores` present in both.
    pub fn cores_since(&self, earlier: &Self, cores: &[usize]) -> CpuTimes {
        let mut sum = CpuTimes::default();
        for core in self.cores.iter().filter(|core| cores.contains(&core.core)) {
            if let Some(before) = earlier.cores.iter().find(|before| before.core == core.core) {
                sum = sum.plus(&core.times.since(&before.times));
            }
        }
        sum
    }

    /// Whether the time that the kernel accounted to `cores` since `earlier` is within 5 % of the
    /// elapsed time. Where it is not (observed in virtual machines: 586 ticks in 500), its figures
    /// for single cores are unusable.
    pub fn cores_add_up_since(&self, earlier: &Self, cores: &[usize]) -> bool {
        let passed_ns = self.at_ns.saturating_sub(earlier.at_ns) as f64 * cores.len() as f64;
        let counted_ns = self.cores_since(earlier, cores).total() as f64 * TICK_NS as f64;
        // Two ticks per core: accounting is quantised at both ends of a short window.
        let slack_ns = (passed_ns * 0.05).max((2 * TICK_NS) as f64 * cores.len() as f64);
        (counted_ns - passed_ns).abs() <= slack_ns
    }

    /// 1 - idle of the whole machine between `earlier` and `self`, in percent.
    pub fn not_idle_percent_since(&self, earlier: &Self) -> f64 {
        self.cpu_since(earlier).not_idle_percent()
    }

    /// 1 - idle - steal of `cores` between `earlier` and `self`, in percent of those cores.
    pub fn busy_percent_since(&self, earlier: &Self, cores: &[usize]) -> f64 {
        self.cores_since(earlier, cores).busy_percent()
    }

    /// Memory in use in percent of the installed memory.
    pub fn memory_percent(&self) -> f64 {
        match self.memory_total_bytes {
            0 => 0.0,
            total => {
                total.saturating_sub(self.memory_available_bytes) as f64 * 100.0 / total as f64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_add_up_only_if_the_ticks_match_the_elapsed_time() {
        let sample = |at_ns, user, idle| HostSample {
            at_ns,
            cores: [0, 1]
                .map(|core| CoreTimes {
                    core,
                    times: CpuTimes { user, idle, ..CpuTimes::default() },
                })
                .to_vec(),
            ..HostSample::default()
        };
        let start = sample(0, 0, 0);
        let second = 1_000_000_000;
        assert!(sample(5 * second, 200, 300).cores_add_up_since(&start, &[0, 1]));
        assert!(sample(5 * second, 200, 280).cores_add_up_since(&start, &[0]));
        assert!(!sample(5 * second, 200, 386).cores_add_up_since(&start, &[0]));
        assert!(!sample(5 * second, 100, 320).cores_add_up_since(&start, &[0, 1]));
    }
}
