//! One second of a host: what every source delivers, whatever it speaks.

use serde::{Deserialize, Serialize};

/// A host over one interval, on the time axis of the machine that asked.
///
/// What a source cannot tell is absent: a broker's own Prometheus endpoint knows its process and
/// nothing of the host, collectd knows no pressure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostRow {
    /// End of the interval: CLOCK_MONOTONIC of the machine that asked, in nanoseconds.
    pub at_ns: u64,
    /// Length of the interval that rates and shares are about, in nanoseconds.
    pub length_ns: u64,
    /// What the host calls itself.
    pub host: String,
    /// The source that it came from, as `--monitor` names it.
    #[serde(default)]
    pub source: String,
    /// The target of the scenario that the source was bound to.
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
    /// TCP trouble.
    #[serde(default)]
    pub tcp: TcpRates,
    /// Open file descriptors of the whole machine.
    #[serde(default)]
    pub descriptors: Option<u64>,
    /// How many there may be.
    #[serde(default)]
    pub descriptors_max: Option<u64>,
    /// Pressure stall information; absent where the kernel has none.
    #[serde(default)]
    pub pressure: Option<Pressure>,
    /// Context switches per second.
    #[serde(default)]
    pub context_switches_per_s: Option<f64>,
    /// The processes that were asked for.
    #[serde(default)]
    pub processes: Vec<ProcessRow>,
    /// How far off `at_ns` may be; 0 on the same machine, absent where nothing bounds it.
    #[serde(default)]
    pub clock_error_ns: Option<u64>,
}

/// CPU time by state in percent of the interval; the states add up to 100.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuPercent {
    /// Programs.
    pub user: f64,
    /// Programs of low priority.
    pub nice: f64,
    /// The kernel for programs.
    pub system: f64,
    /// Hardware interrupts.
    pub irq: f64,
    /// Software interrupts: most of the network's receive path.
    pub softirq: f64,
    /// Nothing to do while a disk request was outstanding.
    pub iowait: f64,
    /// Time the hypervisor gave to somebody else.
    pub steal: f64,
    /// Nothing to do.
    pub idle: f64,
}

/// CPU of one core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreRow {
    /// Number of the core.
    pub core: usize,
    /// Its time by state.
    pub cpu: CpuPercent,
}

/// Memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryBytes {
    /// Installed.
    pub total: u64,
    /// Neither free nor buffers, cache or slab: what programs and the kernel hold.
    pub used: u64,
    /// Block device buffers.
    pub buffered: u64,
    /// Page cache.
    pub cached: u64,
    /// Unused.
    pub free: u64,
    /// Kernel objects that can be reclaimed.
    #[serde(default)]
    pub slab_reclaimable: Option<u64>,
    /// Kernel objects that cannot.
    #[serde(default)]
    pub slab_unreclaimable: Option<u64>,
    /// What programs could still get without swapping.
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
    /// Packets dropped on their way in.
    #[serde(default)]
    pub rx_drops_per_s: Option<f64>,
    /// Packets dropped on their way out.
    #[serde(default)]
    pub tx_drops_per_s: Option<f64>,
    /// What it can carry in each direction, where the system knows.
    #[serde(default)]
    pub speed_bytes_per_s: Option<f64>,
}

/// TCP trouble of the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpRates {
    /// Segments sent again, per second.
    #[serde(default)]
    pub retransmits_per_s: Option<f64>,
    /// Connections refused because an accept queue was full, per second.
    #[serde(default)]
    pub listen_overflows_per_s: Option<f64>,
    /// Connections dropped before they were accepted for any reason, per second.
    #[serde(default)]
    pub listen_drops_per_s: Option<f64>,
    /// Open connections.
    #[serde(default)]
    pub established: Option<u64>,
}

/// Share of the interval, in percent, in which some or all tasks waited for a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// Some task waited for a core.
    #[serde(default)]
    pub cpu_some: Option<f64>,
    /// Some task waited for a disk.
    #[serde(default)]
    pub io_some: Option<f64>,
    /// All tasks waited for a disk.
    #[serde(default)]
    pub io_full: Option<f64>,
    /// Some task waited for memory.
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
    /// Cores that its control group may use at most.
    #[serde(default)]
    pub cpu_limit_cores: Option<f64>,
    /// Memory that its control group may use at most.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// Share of the interval in which its control group was kept from running by its limit.
    #[serde(default)]
    pub throttled_percent: Option<f64>,
    /// The target of the scenario that this process is the broker of.
    #[serde(default)]
    pub target: Option<String>,
}

impl CpuPercent {
    /// The states, in the order of [`CpuPercent::states`].
    pub const STATES: [&str; 8] =
        ["user", "nice", "system", "irq", "softirq", "iowait", "steal", "idle"];

    /// From times or shares by state in any unit; all idle when there are none.
    pub(crate) fn of_shares(shares: [f64; 8]) -> Self {
        let total: f64 = shares.iter().sum();
        if total <= 0.0 {
            return Self { idle: 100.0, ..Self::default() };
        }
        let [user, nice, system, irq, softirq, iowait, steal, idle] =
            shares.map(|share| share * 100.0 / total);
        Self { user, nice, system, irq, softirq, iowait, steal, idle }
    }

    /// 1 - idle, as published reports count it: steal and I/O wait are busy.
    pub fn not_idle(&self) -> f64 {
        100.0 - self.idle
    }

    /// 1 - idle - steal, without I/O wait either: what this machine itself spent.
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

impl MemoryBytes {
    /// Memory in use in percent of what is installed: what is not available, or where the source
    /// does not know that, `used`.
    pub fn percent(&self) -> f64 {
        let used = self.available.map_or(self.used, |free| self.total.saturating_sub(free));
        match self.total {
            0 => 0.0,
            total => used as f64 * 100.0 / total as f64,
        }
    }
}
