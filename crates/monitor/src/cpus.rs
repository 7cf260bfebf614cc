//! CPU time by state, and core lists.

/// The kernel's unit of CPU time in `/proc/stat` and `/proc/PID/stat`, in nanoseconds.
///
/// `USER_HZ` is 100 on every architecture that Tacho runs on; it is part of the kernel's ABI and
/// independent of the timer frequency that the kernel was built with.
pub(crate) const TICK_NS: u64 = 10_000_000;

/// CPU time by state since boot, in ticks of 10 ms, as `/proc/stat` counts it.
///
/// Guest time is part of `user` and `nice` and therefore not listed separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// User mode.
    pub user: u64,
    /// User mode at low priority.
    pub nice: u64,
    /// Kernel mode on behalf of processes.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle while a disk request was outstanding.
    pub iowait: u64,
    /// Hardware interrupts.
    pub irq: u64,
    /// Software interrupts: most of the network's receive path.
    pub softirq: u64,
    /// Time that the hypervisor gave to other guests.
    pub steal: u64,
}

impl CpuTimes {
    /// Parses the numbers after `cpu` or `cpuN` in a line of `/proc/stat`.
    ///
    /// Returns `None` without the first four numbers; old kernels lack the later ones.
    pub(crate) fn parse<'a>(mut fields: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut next = || fields.next()?.parse::<u64>().ok();
        let mut times = Self {
            user: next()?,
            nice: next()?,
            system: next()?,
            idle: next()?,
            ..Self::default()
        };
        times.iowait = next().unwrap_or(0);
        times.irq = next().unwrap_or(0);
        times.softirq = next().unwrap_or(0);
        times.steal = next().unwrap_or(0);
        Some(times)
    }

    /// Sum of all states.
    pub fn total(&self) -> u64 {
        self.user
            + self.nice
            + self.system
            + self.idle
            + self.iowait
            + self.irq
            + self.softirq
            + self.steal
    }

    /// The time between `earlier` and `self`, state by state.
    ///
    /// The kernel may decrease `idle` and `iowait` slightly; such a state counts as zero.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            nice: self.nice.saturating_sub(earlier.nice),
            system: self.system.saturating_sub(earlier.system),
            idle: self.idle.saturating_sub(earlier.idle),
            iowait: self.iowait.saturating_sub(earlier.iowait),
            irq: self.irq.saturating_sub(earlier.irq),
            softirq: self.softirq.saturating_sub(earlier.softirq),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }

    /// The sum of both, state by state.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            user: self.user + other.user,
            nice: self.nice + other.nice,
            system: self.system + other.system,
            idle: self.idle + other.idle,
            iowait: self.iowait + other.iowait,
            irq: self.irq + other.irq,
            softirq: self.softirq + other.softirq,
            steal: self.steal + other.steal,
        }
    }

    /// `part` in percent of the total; 0 when no time has passed.
    fn percent(&self, part: u64) -> f64 {
        match self.total() {
            0 => 0.0,
            total => part as f64 * 100.0 / total as f64,
        }
    }

    /// 1 - idle in percent, as published reports define it: steal and I/O wait count as busy.
    pub fn not_idle_percent(&self) -> f64 {
        self.percent(self.total() - self.idle)
    }

    /// 1 - idle - steal in percent: what this machine itself used. I/O wait counts as idle here,
    /// since a core that waits for a disk could run something else.
    pub fn busy_percent(&self) -> f64 {
        self.percent(self.total() - self.idle - self.iowait - self.steal)
    }

    /// Time in user mode and in the kernel on behalf of processes, in nanoseconds; without
    /// interrupts.
    pub fn programs_ns(&self) -> u64 {
        (self.user + self.nice + self.system) * TICK_NS
    }

    /// Interrupt work that is charged to no process, in percent: hard and soft interrupts.
    pub fn interrupts_percent(&self) -> f64 {
        self.percent(self.irq + self.softirq)
    }

    /// Steal in percent.
    pub fn steal_percent(&self) -> f64 {
        self.percent(self.steal)
    }
}

/// Parses the kernel's core list format, such as `0-3,8`; `None` for any other text.
pub fn parse_cpu_list(list: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        match part.split_once('-') {
            Some((first, last)) => {
                let first: usize = first.trim().parse().ok()?;
                let last: usize = last.trim().parse().ok()?;
                // Machines have a few thousand cores at most; a wider range is not a core list.
                if last < first || last - first > 65_535 {
                    return None;
                }
                cores.extend(first..=last);
            }
            None => cores.push(part.trim().parse().ok()?),
        }
    }
    Some(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(line: &str) -> CpuTimes {
        CpuTimes::parse(line.split_whitespace()).expect("parses")
    }

    #[test]
    fn busy_excludes_idle_and_steal() {
        let window = times("110 0 220 1600 10 0 20 40").since(&times("100 0 200 1500 0 0 0 0"));
        // 10 user, 20 system, 20 softirq, 100 idle, 10 iowait, 40 steal: 200 in all.
        assert_eq!(window.total(), 200);
        assert!((window.not_idle_percent() - 50.0).abs() < 1e-9);
        assert!((window.busy_percent() - 25.0).abs() < 1e-9);
        assert!((window.steal_percent() - 20.0).abs() < 1e-9);
        assert_eq!(window.programs_ns(), 300_000_000);
    }

    #[test]
    fn a_decreased_state_counts_as_zero() {
        let window = times("10 0 0 90").since(&times("0 0 0 100"));
        assert_eq!(window.idle, 0);
        assert!((window.busy_percent() - 100.0).abs() < 1e-9);
        assert_eq!(CpuTimes::default().busy_percent(), 0.0);
    }

    #[test]
    fn core_lists() {
        assert_eq!(parse_cpu_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_cpu_list("5"), Some(vec![5]));
        assert_eq!(parse_cpu_list(""), Some(vec![]));
        assert_eq!(parse_cpu_list("3-1"), None);
        assert_eq!(parse_cpu_list("0-4294967295"), None);
        assert_eq!(parse_cpu_list("a"), None);
    }
}
