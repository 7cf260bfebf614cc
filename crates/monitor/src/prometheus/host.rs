//! Maps known Prometheus metrics to rows.

use std::collections::BTreeMap;

use super::text::{Sample, samples};
use crate::disk::{self, DiskCounters};
use crate::kernel::PressureCounters;
use crate::network::{self, InterfaceCounters, TcpCounters};
use crate::row::{CoreRow, CpuPercent, FileSystemBytes, HostRow, MemoryBytes, ProcessRow};

/// Limit on tracked cores and on interfaces: the endpoint is not trusted.
const INSTANCES_MAX: usize = 4096;

/// An endpoint with its last response, from which rates follow.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// Host name to use when the endpoint does not provide one.
    name: String,
    last: Option<Scrape>,
}

/// The metrics in one response.
#[derive(Clone, Debug, Default)]
struct Scrape {
    at_ns: u64,
    host: Option<String>,
    /// Seconds by state, per core.
    cores: BTreeMap<usize, [f64; 8]>,
    load: [Option<f64>; 3],
    memory: MemoryBytes,
    interfaces: BTreeMap<String, InterfaceCounters>,
    disks: BTreeMap<String, DiskCounters>,
    file_systems: BTreeMap<String, ToldFileSystem>,
    tcp: TcpCounters,
    descriptors: Option<u64>,
    descriptors_max: Option<u64>,
    pressure: PressureCounters,
    context_switches: Option<u64>,
    /// It has metrics of a host, not only of one process.
    is_host: bool,
    process: ProcessCounters,
}

/// Space of a file system.
#[derive(Clone, Debug, Default)]
struct ToldFileSystem {
    device: String,
    total: u64,
    free: u64,
    available: u64,
}

/// The metrics of the responding process.
#[derive(Clone, Copy, Debug, Default)]
struct ProcessCounters {
    cpu_s: Option<f64>,
    rss_bytes: Option<u64>,
    threads: Option<u64>,
    descriptors: Option<u64>,
}

impl Endpoint {
    /// An endpoint whose host is named `name` unless its metrics name it.
    pub(crate) fn new(name: String) -> Self {
        Self { name, last: None }
    }

    /// Parses a response received at `at_ns`. The first one is the baseline and returns no row.
    ///
    /// # Errors
    /// The response has no metrics of a host or a process.
    pub(crate) fn parse(&mut self, text: &str, at_ns: u64) -> Result<Option<HostRow>, String> {
        let mut now = Scrape { at_ns, ..Scrape::default() };
        samples(text).for_each(|sample| now.add(&sample));
        if !now.is_host && now.process.cpu_s.is_none() && now.process.rss_bytes.is_none() {
            return Err(
                "the response has neither node_exporter's metrics nor process_cpu_seconds_\
                        total or process_resident_memory_bytes"
                    .to_owned(),
            );
        }
        let before = self.last.replace(now.clone());
        Ok(before.map(|before| now.since(&before, &self.name)))
    }
}

impl Scrape {
    fn add(&mut self, sample: &Sample) {
        let Some(name) = sample.name.strip_prefix("node_") else {
            self.process.add(sample);
            return;
        };
        let whole = self::whole(sample.value);
        let micros = self::whole(sample.value * 1e6);
        if let Some(memory) = name.strip_prefix("memory_") {
            self.add_memory(memory, whole);
        } else if let Some(metric) = name.strip_prefix("network_") {
            self.add_interface(metric, sample, whole);
        } else if let Some(metric) = name.strip_prefix("disk_") {
            self.add_disk(metric, sample, whole);
        } else if let Some(metric) = name.strip_prefix("filesystem_") {
            self.add_file_system(metric, sample, whole);
        } else if name == "cpu_seconds_total" {
            self.add_cpu(sample);
        } else if let Some(pressure) = name.strip_prefix("pressure_") {
            self.pressure.set(pressure.trim_end_matches("_seconds_total"), micros);
        } else {
            match name {
                "load1" => self.load[0] = Some(sample.value),
                "load5" => self.load[1] = Some(sample.value),
                "load15" => self.load[2] = Some(sample.value),
                "netstat_Tcp_RetransSegs" => self.tcp.retransmits = Some(whole),
                "netstat_Tcp_CurrEstab" => self.tcp.established = Some(whole),
                "netstat_TcpExt_ListenOverflows" => self.tcp.listen_overflows = Some(whole),
                "netstat_TcpExt_ListenDrops" => self.tcp.listen_drops = Some(whole),
                "filefd_allocated" => self.descriptors = Some(whole),
                "filefd_maximum" => self.descriptors_max = Some(whole),
                "context_switches_total" => self.context_switches = Some(whole),
                "uname_info" => self.host = sample.label("nodename").map(str::to_owned),
                _ => {}
            }
        }
    }

    fn add_cpu(&mut self, sample: &Sample) {
        let mode = sample.label("mode");
        let state = CpuPercent::STATES.iter().position(|known| Some(*known) == mode);
        let core = sample.label("cpu").and_then(|core| core.parse().ok());
        let (Some(state), Some(core)) = (state, core) else { return };
        self.is_host = true;
        if self.cores.len() < INSTANCES_MAX || self.cores.contains_key(&core) {
            self.cores.entry(core).or_default()[state] = sample.value;
        }
    }

    fn add_memory(&mut self, name: &str, bytes: u64) {
        let memory = &mut self.memory;
        match name {
            "MemTotal_bytes" => memory.total = bytes,
            "MemFree_bytes" => memory.free = bytes,
            "Buffers_bytes" => memory.buffered = bytes,
            "Cached_bytes" => memory.cached = bytes,
            "SReclaimable_bytes" => memory.slab_reclaimable = Some(bytes),
            "SUnreclaim_bytes" => memory.slab_unreclaimable = Some(bytes),
            "MemAvailable_bytes" => memory.available = Some(bytes),
            _ => return,
        }
        self.is_host = true;
    }

    fn add_interface(&mut self, metric: &str, sample: &Sample, count: u64) {
        let Some(name) = sample.label("device") else { return };
        let Some(interface) = tracked(&mut self.interfaces, name) else { return };
        match metric {
            "receive_bytes_total" => interface.rx_bytes = count,
            "transmit_bytes_total" => interface.tx_bytes = count,
            "receive_packets_total" => interface.rx_packets = Some(count),
            "transmit_packets_total" => interface.tx_packets = Some(count),
            "receive_drop_total" => interface.rx_drops = Some(count),
            "transmit_drop_total" => interface.tx_drops = Some(count),
            "receive_errs_total" => interface.rx_errors = Some(count),
            "transmit_errs_total" => interface.tx_errors = Some(count),
            _ => {}
        }
    }

    fn add_disk(&mut self, metric: &str, sample: &Sample, count: u64) {
        let Some(name) = sample.label("device") else { return };
        let Some(disk) = tracked(&mut self.disks, name) else { return };
        let millis = whole(sample.value * 1e3);
        match metric {
            "reads_completed_total" => disk.reads = count,
            "writes_completed_total" => disk.writes = count,
            "read_bytes_total" => disk.read_bytes = count,
            "written_bytes_total" => disk.written_bytes = count,
            "read_time_seconds_total" => disk.read_ms = Some(millis),
            "write_time_seconds_total" => disk.write_ms = Some(millis),
            "io_time_seconds_total" => disk.busy_ms = Some(millis),
            _ => {}
        }
    }

    fn add_file_system(&mut self, metric: &str, sample: &Sample, bytes: u64) {
        let (Some(point), Some(device)) = (sample.label("mountpoint"), sample.label("device"))
        else {
            return;
        };
        if !device.starts_with("/dev/") && point != "/" {
            return;
        }
        let Some(system) = tracked(&mut self.file_systems, point) else { return };
        device.clone_into(&mut system.device);
        match metric {
            "size_bytes" => system.total = bytes,
            "free_bytes" => system.free = bytes,
            "avail_bytes" => system.available = bytes,
            _ => {}
        }
    }

    fn since(&self, before: &Self, name: &str) -> HostRow {
        let length_ns = self.at_ns.saturating_sub(before.at_ns);
        let seconds = length_ns as f64 / 1e9;
        let mut sum = [0.0; 8];
        let mut cores = Vec::new();
        for (core, now) in &self.cores {
            let Some(before) = before.cores.get(core) else { continue };
            let spent: [f64; 8] =
                std::array::from_fn(|state| (now[state] - before[state]).max(0.0));
            sum.iter_mut().zip(spent).for_each(|(sum, spent)| *sum += spent);
            cores.push(CoreRow { core: *core, cpu: CpuPercent::from_shares(spent) });
        }
        let load = match self.load {
            [Some(one), Some(five), Some(fifteen)] => Some([one, five, fifteen]),
            _ => None,
        };
        HostRow {
            at_ns: self.at_ns,
            length_ns,
            host: self.host.clone().unwrap_or_else(|| name.to_owned()),
            cpu: (!cores.is_empty()).then(|| CpuPercent::from_shares(sum)),
            cores,
            load,
            memory: (self.memory.total > 0).then(|| self.memory.with_used()),
            interfaces: network::interface_rates(&self.traffic(), &before.traffic(), seconds),
            disks: disk::disk_rates(&self.used_disks(), &before.used_disks(), seconds),
            file_systems: self.spaces(),
            tcp: network::tcp_rates(&self.tcp, &before.tcp, seconds),
            descriptors: self.descriptors,
            descriptors_max: self.descriptors_max,
            pressure: self.pressure.since(&before.pressure, length_ns),
            context_switches_per_s: network::rate(
                self.context_switches,
                before.context_switches,
                seconds,
            ),
            // On node_exporter's endpoint the process is node_exporter itself.
            processes: match self.is_host {
                true => Vec::new(),
                false => vec![self.process.since(&before.process, name, seconds)],
            },
            ..HostRow::default()
        }
    }

    /// Disks that have done something.
    fn used_disks(&self) -> Vec<DiskCounters> {
        let named = self
            .disks
            .iter()
            .map(|(name, counters)| DiskCounters { name: name.clone(), ..counters.clone() });
        named.filter(DiskCounters::is_used).collect()
    }

    /// File systems, each device by the shortest of its mount points.
    fn spaces(&self) -> Vec<FileSystemBytes> {
        let mut all: Vec<_> = self.file_systems.iter().filter(|(_, one)| one.total > 0).collect();
        all.sort_by_key(|(point, _)| point.len());
        let mut devices: Vec<&str> = Vec::new();
        all.retain(|(_, system)| {
            let is_new = !devices.contains(&system.device.as_str());
            devices.push(&system.device);
            is_new
        });
        let bytes = |(point, system): (&String, &ToldFileSystem)| FileSystemBytes {
            mount_point: point.clone(),
            total: system.total,
            used: system.total.saturating_sub(system.free),
            available: system.available,
        };
        all.into_iter().map(bytes).collect()
    }

    /// Interfaces that have carried traffic.
    fn traffic(&self) -> Vec<InterfaceCounters> {
        let used = self
            .interfaces
            .iter()
            .filter(|(_, counters)| counters.rx_bytes + counters.tx_bytes > 0);
        used.map(|(name, counters)| InterfaceCounters { name: name.clone(), ..counters.clone() })
            .collect()
    }
}

/// The entry called `name`, a new one within the limit on instances.
fn tracked<'m, T: Default>(all: &'m mut BTreeMap<String, T>, name: &str) -> Option<&'m mut T> {
    if all.len() >= INSTANCES_MAX && !all.contains_key(name) {
        return None;
    }
    Some(all.entry(name.to_owned()).or_default())
}

/// A count, bounded so that sums of a few do not overflow.
fn whole(value: f64) -> u64 {
    (value as u64).min(1 << 53)
}

impl ProcessCounters {
    fn add(&mut self, sample: &Sample) {
        let whole = whole(sample.value);
        match sample.name.as_str() {
            "process_cpu_seconds_total" => self.cpu_s = Some(sample.value),
            "process_resident_memory_bytes" => self.rss_bytes = Some(whole),
            "process_open_fds" => self.descriptors = Some(whole),
            "process_num_threads" | "process_threads" => self.threads = Some(whole),
            _ => {}
        }
    }

    fn since(&self, before: &Self, name: &str, seconds: f64) -> ProcessRow {
        let cpu = self.cpu_s.zip(before.cpu_s).filter(|_| seconds > 0.0);
        ProcessRow {
            name: name.to_owned(),
            cpu_percent: cpu.map(|(now, before)| (now - before).max(0.0) * 100.0 / seconds),
            rss_bytes: self.rss_bytes,
            threads: self.threads,
            descriptors: self.descriptors,
            ..ProcessRow::default()
        }
    }
}
