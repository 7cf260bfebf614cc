//! The machine: CPU by state and core, memory, load average.

use procfs_core::Meminfo;

use crate::cpus::TICK_NS;
use crate::{CpuTimes, MemoryBytes, MonitorError, ProcRoot};

/// Samples the machine this runs on.
#[derive(Clone, Debug, Default)]
pub struct HostSampler {
    root: ProcRoot,
}

/// The CPU time of one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreTimes {
    /// The core's number; offline cores are missing from the list.
    pub core: usize,
    /// Its time by state since boot.
    pub times: CpuTimes,
}

/// Mean number of runnable and uninterruptible tasks over the last 1, 5 and 15 minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadAverage {
    /// Over one minute.
    pub one: f64,
    /// Over five minutes.
    pub five: f64,
    /// Over fifteen minutes.
    pub fifteen: f64,
}

/// The machine at one moment.
#[derive(Clone, Debug, Default)]
pub struct HostSample {
    /// When, in nanoseconds of the caller's monotonic clock.
    pub at_ns: u64,
    /// All cores together.
    pub cpu: CpuTimes,
    /// Core by core.
    pub cores: Vec<CoreTimes>,
    /// Installed memory in bytes.
    pub memory_total_bytes: u64,
    /// Memory that programs could still get without swapping, in bytes.
    pub memory_available_bytes: u64,
    /// Memory by use.
    pub memory: MemoryBytes,
    /// Load average.
    pub load: LoadAverage,
}

impl HostSampler {
    /// A sampler that reads below `root`.
    pub fn with_root(root: ProcRoot) -> Self {
        Self { root }
    }

    /// Takes one sample, stamped `now_ns`.
    ///
    /// # Errors
    /// When `stat`, `meminfo` or `loadavg` is missing or is not what the kernel documents.
    pub fn sample(&self, now_ns: u64) -> Result<HostSample, MonitorError> {
        self.sample_of(&self.root.text("stat")?, now_ns)
    }

    /// Takes one sample whose `stat` was read already.
    pub(crate) fn sample_of(&self, stat: &str, now_ns: u64) -> Result<HostSample, MonitorError> {
        let (cpu, cores) = self.cpu(stat)?;
        let memory: Meminfo = self.root.parse("meminfo")?;
        let load: procfs_core::LoadAverage = self.root.parse("loadavg")?;
        Ok(HostSample {
            at_ns: now_ns,
            cpu,
            cores,
            memory_total_bytes: memory.mem_total,
            // Kernels before 3.14 do not estimate it; free plus caches is what they offered.
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

    /// The `cpu` lines of `stat`: the sum, and the cores under their own numbers.
    ///
    /// Read here and not through procfs-core, which numbers cores by position and so mixes them
    /// up when one is offline.
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

/// As the kernel writes it: two digits, without what a short float makes of them.
fn hundredths(load: f32) -> f64 {
    (f64::from(load) * 100.0).round() / 100.0
}

impl HostSample {
    /// CPU time by state between `earlier` and this, over all cores.
    pub fn cpu_since(&self, earlier: &Self) -> CpuTimes {
        self.cpu.since(&earlier.cpu)
    }

    /// CPU time by state between `earlier` and this, over those of `cores` present in both.
    pub fn cores_since(&self, earlier: &Self, cores: &[usize]) -> CpuTimes {
        let mut sum = CpuTimes::default();
        for core in self.cores.iter().filter(|core| cores.contains(&core.core)) {
            if let Some(before) = earlier.cores.iter().find(|before| before.core == core.core) {
                sum = sum.plus(&core.times.since(&before.times));
            }
        }
        sum
    }

    /// Does the time that the kernel counted for `cores` since `earlier` add up to the time that
    /// passed, within 5 %? Where it does not (seen in virtual machines: 586 ticks of 500), what it
    /// says about single cores is worth nothing.
    pub fn cores_add_up_since(&self, earlier: &Self, cores: &[usize]) -> bool {
        let passed_ns = self.at_ns.saturating_sub(earlier.at_ns) as f64 * cores.len() as f64;
        let counted_ns = self.cores_since(earlier, cores).total() as f64 * TICK_NS as f64;
        // Two ticks per core: a short window is cut at both ends.
        let slack_ns = (passed_ns * 0.05).max((2 * TICK_NS) as f64 * cores.len() as f64);
        (counted_ns - passed_ns).abs() <= slack_ns
    }

    /// 1 - idle of the whole machine between `earlier` and this, in percent.
    pub fn not_idle_percent_since(&self, earlier: &Self) -> f64 {
        self.cpu_since(earlier).not_idle_percent()
    }

    /// 1 - idle - steal of `cores` between `earlier` and this, in percent of those cores.
    pub fn busy_percent_since(&self, earlier: &Self, cores: &[usize]) -> f64 {
        self.cores_since(earlier, cores).busy_percent()
    }

    /// Memory in use in percent of what is installed.
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
    fn cores_add_up_only_if_the_counts_are_the_time_that_passed() {
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
