//! One interval of a host: the common format of all sources.

use serde::{Deserialize, Serialize};

use crate::cpus::CpuTimes;

/// The source of rows about the machine of this process, as `--monitor` names it.
pub(crate) const LOCAL: &str = "local";

/// A host over one interval, on the local machine's time axis.
///
/// Metrics that a source does not provide are absent: a broker's own Prometheus endpoint covers its
/// process but not the host, collectd has no pressure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostRow {
    /// End of the interval: CLOCK_MONOTONIC of the receiving machine, in nanoseconds.
    pub at_ns: u64,
    /// Length of the interval for rates and shares, in nanoseconds.
    pub length_ns: u64,
    /// Host name.
    pub host: String,
    /// The source of the row, as written in `--monitor`.
    #[serde(default)]
    pub source: String,
    /// The scenario target that the source is bound to.
    #[serde(default)]
    pub target: Option<String>,
    /// CPU of the whole machine by state.
    #[serde(default)]
    pub cpu: Option<CpuPercent>,
    /// CPU by core.
    #[serde(default)]
    pub cores: Vec<CoreRow>,
    /// Mean number of runnable and uninterruptible tasks over 1, 5 and 15 minutes.
    #[serde(default)]
    pub load: Option<[f64; 3]>,
    /// Memory.
    #[serde(default)]
    pub memory: Option<MemoryBytes>,
    /// Network interfaces.
    #[serde(default)]
    pub interfaces: Vec<InterfaceRates>,
    /// Disks: block devices without their partitions.
    #[serde(default)]
    pub disks: Vec<DiskRates>,
    /// Space of the file systems on disks.
    #[serde(default)]
    pub file_systems: Vec<FileSystemBytes>,
    /// TCP error rates.
    #[serde(default)]
    pub tcp: TcpRates,
    /// Open file descriptors of the whole machine.
    #[serde(default)]
    pub descriptors: Option<u64>,
    /// Limit on open file descriptors.
    #[serde(default)]
    pub descriptors_max: Option<u64>,
    /// Pressure stall information; absent where the kernel has none.
    #[serde(default)]
    pub pressure: Option<Pressure>,
    /// Context switches per second.
    #[serde(default)]
    pub context_switches_per_s: Option<f64>,
    /// The selected processes.
    #[serde(default)]
    pub processes: Vec<ProcessRow>,
    /// Error bound of `at_ns`; 0 on the same machine, absent where there is no bound.
    #[serde(default)]
    pub clock_error_ns: Option<u64>,
}

impl HostRow {
    /// Is it about the machine of this process?
    pub fn is_local(&self) -> bool {
        self.source == LOCAL
    }
}

/// CPU time by state in percent of the interval; the states add up to 100.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuPercent {
    /// User mode.
    pub user: f64,
    /// User mode at low priority.
    pub nice: f64,
    /// Kernel mode on behalf of processes.
    pub system: f64,
    /// Hardware interrupts.
    pub irq: f64,
    /// Software interrupts: most of the network's receive path.
    pub softirq: f64,
    /// Idle while a disk request was outstanding.
    pub iowait: f64,
    /// Time that the hypervisor gave to other guests.
    pub steal: f64,
    /// Idle.
    pub idle: f64,
}

/// CPU time of one core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreRow {
    /// The core's number.
    pub core: usize,
    /// Its time by state.
    pub cpu: CpuPercent,
}

/// Memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryBytes {
    /// Installed.
    pub total: u64,
    /// Held by processes and the kernel: neither free nor buffers, cache or slab.
    pub used: u64,
    /// Block device buffers.
    pub buffered: u64,
    /// Page cache.
    pub cached: u64,
    /// Unused.
    pub free: u64,
    /// Reclaimable kernel objects.
    #[serde(default)]
    pub slab_reclaimable: Option<u64>,
    /// Unreclaimable kernel objects.
    #[serde(default)]
    pub slab_unreclaimable: Option<u64>,
    /// Available to processes without swapping.
    #[serde(default)]
    pub available: Option<u64>,
}

/// Traffic of one network interface, per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InterfaceRates {
    /// Name.
    pub name: String,
    /// Bytes received.
    pub rx_bytes_per_s: f64,
    /// Bytes sent.
    pub tx_bytes_per_s: f64,
    /// Packets received.
    #[serde(default)]
    pub rx_packets_per_s: Option<f64>,
    /// Packets sent.
    #[serde(default)]
    pub tx_packets_per_s: Option<f64>,
    /// Received packets dropped.
    #[serde(default)]
    pub rx_drops_per_s: Option<f64>,
    /// Outgoing packets dropped.
    #[serde(default)]
    pub tx_drops_per_s: Option<f64>,
    /// Receive errors.
    #[serde(default)]
    pub rx_errors_per_s: Option<f64>,
    /// Transmit errors.
    #[serde(default)]
    pub tx_errors_per_s: Option<f64>,
    /// Link speed in each direction, where the system knows it.
    #[serde(default)]
    pub speed_bytes_per_s: Option<f64>,
}

/// What one disk did, per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskRates {
    /// Name of the device.
    pub name: String,
    /// Bytes read.
    pub read_bytes_per_s: f64,
    /// Bytes written.
    pub written_bytes_per_s: f64,
    /// Completed reads.
    pub reads_per_s: f64,
    /// Completed writes.
    pub writes_per_s: f64,
    /// Share of the interval in which a request was under way; a device that serves many requests
    /// at once is not full at 100.
    #[serde(default)]
    pub busy_percent: Option<f64>,
    /// Mean time of a read, waiting included; absent where there was none.
    #[serde(default)]
    pub read_wait_us: Option<f64>,
    /// The same of a write.
    #[serde(default)]
    pub write_wait_us: Option<f64>,
}

/// Space of a file system, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystemBytes {
    /// Where it is mounted.
    pub mount_point: String,
    /// All of it.
    pub total: u64,
    /// Occupied.
    pub used: u64,
    /// What is left for programs; less than is free where some is reserved for the administrator.
    pub available: u64,
}

/// TCP error rates and connections of the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpRates {
    /// Segments retransmitted, per second.
    #[serde(default)]
    pub retransmits_per_s: Option<f64>,
    /// Connections refused because an accept queue was full, per second.
    #[serde(default)]
    pub listen_overflows_per_s: Option<f64>,
    /// Connections dropped before they were accepted, for any reason, per second.
    #[serde(default)]
    pub listen_drops_per_s: Option<f64>,
    /// Open connections.
    #[serde(default)]
    pub established: Option<u64>,
}

/// Pressure stall: share of the interval, in percent, in which tasks waited for a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// Some tasks waited for a core.
    #[serde(default)]
    pub cpu_some: Option<f64>,
    /// Some tasks waited for I/O.
    #[serde(default)]
    pub io_some: Option<f64>,
    /// All tasks waited for I/O.
    #[serde(default)]
    pub io_full: Option<f64>,
    /// Some tasks waited for memory.
    #[serde(default)]
    pub memory_some: Option<f64>,
    /// All tasks waited for memory.
    #[serde(default)]
    pub memory_full: Option<f64>,
}

/// One process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessRow {
    /// Name.
    pub name: String,
    /// Process id, where it is known.
    #[serde(default)]
    pub pid: Option<u32>,
    /// CPU of all its threads, one core = 100.
    #[serde(default)]
    pub cpu_percent: Option<f64>,
    /// Resident memory in bytes.
    #[serde(default)]
    pub rss_bytes: Option<u64>,
    /// Threads.
    #[serde(default)]
    pub threads: Option<u64>,
    /// Open file descriptors.
    #[serde(default)]
    pub descriptors: Option<u64>,
    /// CPU limit of its control group, in cores.
    #[serde(default)]
    pub cpu_limit_cores: Option<f64>,
    /// Memory limit of its control group.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// Share of the interval in which the CPU limit throttled its control group.
    #[serde(default)]
    pub throttled_percent: Option<f64>,
    /// The scenario target whose broker this process is.
    #[serde(default)]
    pub target: Option<String>,
}

impl CpuPercent {
    /// The states, in the order of [`CpuPercent::states`].
    pub const STATES: [&str; 8] =
        ["user", "nice", "system", "irq", "softirq", "iowait", "steal", "idle"];

    /// From CPU times by state.
    pub(crate) fn from_times(times: &CpuTimes) -> Self {
        let ticks = [
            times.user,
            times.nice,
            times.system,
            times.irq,
            times.softirq,
            times.iowait,
            times.steal,
            times.idle,
        ];
        Self::from_shares(ticks.map(|ticks| ticks as f64))
    }

    /// From times or shares by state, in any unit; all idle when they are all zero.
    pub(crate) fn from_shares(shares: [f64; 8]) -> Self {
        let total: f64 = shares.iter().sum();
        if total <= 0.0 {
            return Self { idle: 100.0, ..Self::default() };
        }
        let [user, nice, system, irq, softirq, iowait, steal, idle] =
            shares.map(|share| share * 100.0 / total);
        Self { user, nice, system, irq, softirq, iowait, steal, idle }
    }

    /// 1 - idle, as published reports define it: steal and I/O wait count as busy.
    pub fn not_idle(&self) -> f64 {
        100.0 - self.idle
    }

    /// 1 - idle - steal - I/O wait: what this machine itself used.
    pub fn busy(&self) -> f64 {
        self.user + self.nice + self.system + self.irq + self.softirq
    }

    /// The states by name.
    pub fn states(&self) -> [(&'static str, f64); 8] {
        let shares = [
            self.user,
            self.nice,
            self.system,
            self.irq,
            self.softirq,
            self.iowait,
            self.steal,
            self.idle,
        ];
        std::array::from_fn(|state| (Self::STATES[state], shares[state]))
    }
}

impl FileSystemBytes {
    /// Occupied space in percent of what programs can occupy at most, as `df` has it.
    pub fn percent(&self) -> f64 {
        match self.used.saturating_add(self.available) {
            0 => 0.0,
            most => self.used as f64 * 100.0 / most as f64,
        }
    }
}

impl MemoryBytes {
    /// With `used` set to the remainder, as collectd computes it.
    pub(crate) fn with_used(mut self) -> Self {
        let slab = self.slab_reclaimable.unwrap_or(0) + self.slab_unreclaimable.unwrap_or(0);
        let others = self.free + self.buffered + self.cached + slab;
        self.used = self.total.saturating_sub(others);
        self
    }

    /// Memory in use in percent of the installed memory: total minus `available`, or `used` where
    /// the source does not provide that.
    pub fn percent(&self) -> f64 {
        let used = self.available.map_or(self.used, |free| self.total.saturating_sub(free));
        match self.total {
            0 => 0.0,
            total => used as f64 * 100.0 / total as f64,
        }
    }
}
