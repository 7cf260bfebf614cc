//! Assembles the readings of several hosts into rows.

use std::collections::{BTreeMap, HashMap};

use super::packet::{DataValue, Reading};
use crate::disk::without_partitions;
use crate::row::{
    CoreRow, CpuPercent, DiskRates, FileSystemBytes, HostRow, InterfaceRates, MemoryBytes,
    ProcessRow,
};

/// Limit on tracked hosts: datagrams are not authenticated.
const HOSTS_MAX: usize = 16;

/// Limit on tracked identifiers per host, and on gauges of a round.
const SERIES_MAX: usize = 8192;

/// Limit on disks and on file systems of a round.
const DISKS_MAX: usize = 256;

/// collectd's default interval.
const INTERVAL_NS: u64 = 10_000_000_000;

/// All hosts that send to one address.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    hosts: BTreeMap<String, Host>,
    refused: u64,
}

/// One host: the round of readings in progress, and the previous counters for rates.
#[derive(Debug, Default)]
struct Host {
    round: Round,
    /// Time of the last row, on the sender's clock.
    last_ns: Option<u64>,
    counters: HashMap<Series, (u64, Vec<f64>)>,
    /// Local clock minus the sender's clock: the minimum observed, since a reading cannot arrive
    /// before it was taken.
    offset_ns: Option<i128>,
    /// When the last reading arrived, on the local clock.
    heard_ns: u64,
}

/// An identifier without its host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Series {
    plugin: String,
    plugin_instance: String,
    kind: String,
    type_instance: String,
}

/// Readings of one interval.
#[derive(Debug, Default)]
struct Round {
    /// Time of its first reading.
    began_ns: Option<u64>,
    time_ns: u64,
    interval_ns: u64,
    /// Readings that no counter bounds.
    gauges: usize,
    /// Shares by state of each core; `None` is the whole machine.
    cpu: BTreeMap<Option<usize>, [f64; 8]>,
    load: Option<[f64; 3]>,
    memory: BTreeMap<String, f64>,
    interfaces: BTreeMap<String, InterfaceRates>,
    disks: BTreeMap<String, DiskRates>,
    file_systems: BTreeMap<String, Space>,
    processes: BTreeMap<String, ProcessRow>,
    row: HostRow,
}

/// Bytes of a file system by state.
#[derive(Clone, Copy, Debug, Default)]
struct Space {
    used: Option<f64>,
    free: Option<f64>,
    reserved: Option<f64>,
}

impl Hosts {
    /// Readings rejected because of the limits on hosts and series.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Adds a reading that arrived at `now_ns`; returns the row that it completes.
    ///
    /// A host's plugins take their readings at about the same time. The first reading that is more
    /// than half an interval newer than its round begins the next one: the network plugin keeps
    /// the order, but may delay the tail of a round until its buffer is full.
    pub(crate) fn add(&mut self, reading: &Reading, now_ns: u64) -> Option<HostRow> {
        if !self.hosts.contains_key(&reading.host) && self.hosts.len() >= HOSTS_MAX {
            self.refused += 1;
            return None;
        }
        let host = self.hosts.entry(reading.host.clone()).or_default();
        host.heard_ns = now_ns;
        let offset_ns = i128::from(now_ns) - i128::from(reading.time_ns);
        // A jump by several intervals: the sender's clock was set back.
        let slack_ns = 3 * i128::from(host.round.interval_ns.max(INTERVAL_NS));
        host.offset_ns = Some(match host.offset_ns {
            Some(least_ns) if offset_ns <= least_ns + slack_ns => least_ns.min(offset_ns),
            _ => offset_ns,
        });
        let began_ns = host.round.began_ns.unwrap_or(reading.time_ns);
        let half_ns = host.round.interval_ns.max(1_000_000) / 2;
        let done = match reading.time_ns > began_ns.saturating_add(half_ns) {
            true => host.finish(&reading.host),
            false => None,
        };
        if !host.add(reading) {
            self.refused += 1;
        }
        done
    }

    /// Rows of hosts that have sent nothing for two intervals before `now_ns`.
    pub(crate) fn overdue(&mut self, now_ns: u64) -> Vec<HostRow> {
        let silent = self.hosts.iter_mut().filter(|(_, host)| {
            now_ns.saturating_sub(host.heard_ns) > 2 * host.round.interval_ns.max(INTERVAL_NS / 10)
        });
        silent.filter_map(|(name, host)| host.finish(name)).collect()
    }

    /// Rows of all rounds in progress.
    pub(crate) fn flush(&mut self) -> Vec<HostRow> {
        self.hosts.iter_mut().filter_map(|(name, host)| host.finish(name)).collect()
    }
}

impl Host {
    /// Ends the round; `None` when it has no known metric.
    fn finish(&mut self, name: &str) -> Option<HostRow> {
        let round = std::mem::take(&mut self.round);
        self.round.interval_ns = round.interval_ns;
        round.began_ns?;
        let length_ns = match self.last_ns {
            Some(last_ns) => round.time_ns.saturating_sub(last_ns),
            None => round.interval_ns,
        };
        self.last_ns = Some(round.time_ns);
        let mut row = round.into_row();
        if row.metrics().is_empty() {
            return None;
        }
        let at_ns = i128::from(row.at_ns) + self.offset_ns?;
        row.at_ns = u64::try_from(at_ns).unwrap_or(0);
        row.length_ns = length_ns;
        row.host = name.to_owned();
        Some(row)
    }

    /// Adds a reading to the round; false when the limit on series is exceeded.
    fn add(&mut self, reading: &Reading) -> bool {
        self.round.began_ns = Some(self.round.began_ns.unwrap_or(reading.time_ns));
        self.round.time_ns = self.round.time_ns.max(reading.time_ns);
        self.round.interval_ns = match reading.interval_ns {
            0 if self.round.interval_ns == 0 => INTERVAL_NS,
            0 => self.round.interval_ns,
            interval_ns => interval_ns,
        };
        let Some(figures) = self.figures(reading) else {
            return self.counters.len() < SERIES_MAX && self.round.gauges < SERIES_MAX;
        };
        self.round.add(reading, &figures);
        true
    }

    /// Gauges unchanged, counters as rates per second; `None` before the second reading of a
    /// counter and beyond the limit on gauges.
    fn figures(&mut self, reading: &Reading) -> Option<Vec<f64>> {
        if let [DataValue::Gauge(_), ..] = reading.values[..] {
            if self.round.gauges >= SERIES_MAX {
                return None;
            }
            self.round.gauges += 1;
            let gauge = |value: &DataValue| match value {
                DataValue::Gauge(value) => *value,
                _ => f64::NAN,
            };
            return Some(reading.values.iter().map(gauge).collect());
        }
        let raw: Vec<f64> = reading
            .values
            .iter()
            .map(|value| match *value {
                DataValue::Counter(count) | DataValue::Absolute(count) => count as f64,
                DataValue::Gauge(value) => value,
                DataValue::Derive(value) => value as f64,
            })
            .collect();
        let series = Series {
            plugin: reading.plugin.clone(),
            plugin_instance: reading.plugin_instance.clone(),
            kind: reading.kind.clone(),
            type_instance: reading.type_instance.clone(),
        };
        if !self.counters.contains_key(&series) && self.counters.len() >= SERIES_MAX {
            return None;
        }
        let absolute = matches!(reading.values.first(), Some(DataValue::Absolute(_)));
        let before = self.counters.insert(series, (reading.time_ns, raw.clone()));
        let (before_ns, before) = before?;
        let seconds = reading.time_ns.saturating_sub(before_ns) as f64 / 1e9;
        if seconds <= 0.0 || before.len() != raw.len() {
            return None;
        }
        let rate = |(now, before): (&f64, &f64)| match absolute {
            true => now / seconds,
            // A counter that decreased was reset.
            false if now < before => now / seconds,
            false => (now - before) / seconds,
        };
        Some(raw.iter().zip(&before).map(rate).collect())
    }
}

impl Round {
    fn add(&mut self, reading: &Reading, figures: &[f64]) {
        let first = figures.first().copied().unwrap_or(f64::NAN);
        if !first.is_finite() {
            return;
        }
        let instance = reading.plugin_instance.as_str();
        match (reading.plugin.as_str(), reading.kind.as_str()) {
            ("cpu", "percent" | "cpu") => self.add_cpu(instance, &reading.type_instance, first),
            ("memory", "memory") => {
                self.memory.insert(reading.type_instance.clone(), first);
            }
            ("load", "load") => self.load = figures.try_into().ok(),
            ("interface", kind) => {
                // Before version 5 the interface was the type instance.
                let name = if instance.is_empty() { &reading.type_instance } else { instance };
                self.add_interface(name, kind, figures);
            }
            ("disk", kind) if !instance.is_empty() => self.add_disk(instance, kind, figures),
            ("df", "df_complex") if !instance.is_empty() => {
                self.add_space(instance, &reading.type_instance, first);
            }
            ("processes", kind) if !instance.is_empty() => {
                self.add_process(instance, kind, figures);
            }
            ("contextswitch", "contextswitch") => self.row.context_switches_per_s = Some(first),
            ("protocols", "protocol_counter") => {
                let tcp = &mut self.row.tcp;
                match (instance, reading.type_instance.as_str()) {
                    ("Tcp", "RetransSegs") => tcp.retransmits_per_s = Some(first),
                    ("TcpExt", "ListenOverflows") => tcp.listen_overflows_per_s = Some(first),
                    ("TcpExt", "ListenDrops") => tcp.listen_drops_per_s = Some(first),
                    _ => {}
                }
            }
            ("fhcount", "file_handles") => match reading.type_instance.as_str() {
                "used" => self.row.descriptors = Some(first as u64),
                "max" => self.row.descriptors_max = Some(first as u64),
                _ => {}
            },
            _ => {}
        }
    }

    fn add_cpu(&mut self, core: &str, state: &str, share: f64) {
        let name = match state {
            "interrupt" => "irq",
            "wait" => "iowait",
            other => other,
        };
        let index = CpuPercent::STATES.iter().position(|known| *known == name);
        let core = if core.is_empty() { Ok(None) } else { core.parse().map(Some) };
        if let (Some(index), Ok(core)) = (index, core) {
            self.cpu.entry(core).or_default()[index] = share.max(0.0);
        }
    }

    fn add_interface(&mut self, name: &str, kind: &str, figures: &[f64]) {
        let [rx, tx] = figures[..] else { return };
        let interface = self.interfaces.entry(name.to_owned()).or_default();
        match kind {
            "if_octets" => (interface.rx_bytes_per_s, interface.tx_bytes_per_s) = (rx, tx),
            "if_packets" => {
                (interface.rx_packets_per_s, interface.tx_packets_per_s) = (Some(rx), Some(tx));
            }
            "if_dropped" => {
                (interface.rx_drops_per_s, interface.tx_drops_per_s) = (Some(rx), Some(tx));
            }
            "if_errors" => {
                (interface.rx_errors_per_s, interface.tx_errors_per_s) = (Some(rx), Some(tx));
            }
            _ => {}
        }
    }

    fn add_disk(&mut self, name: &str, kind: &str, figures: &[f64]) {
        let [read, written] = figures[..] else { return };
        if self.disks.len() >= DISKS_MAX && !self.disks.contains_key(name) {
            return;
        }
        let disk = self.disks.entry(name.to_owned()).or_default();
        match kind {
            "disk_octets" => (disk.read_bytes_per_s, disk.written_bytes_per_s) = (read, written),
            "disk_ops" => (disk.reads_per_s, disk.writes_per_s) = (read, written),
            // Its rate is the mean time of an operation in milliseconds; 0 without one.
            "disk_time" => {
                let wait_us = |millis: f64| (millis > 0.0).then_some(millis * 1e3);
                (disk.read_wait_us, disk.write_wait_us) = (wait_us(read), wait_us(written));
            }
            // Milliseconds per second in which a request was under way; the second is weighted.
            "disk_io_time" => disk.busy_percent = Some((read / 10.0).min(100.0)),
            _ => {}
        }
    }

    fn add_space(&mut self, name: &str, state: &str, bytes: f64) {
        let is_full = self.file_systems.len() >= DISKS_MAX;
        if is_full && !self.file_systems.contains_key(name) {
            return;
        }
        let system = self.file_systems.entry(name.to_owned()).or_default();
        match state {
            "used" => system.used = Some(bytes),
            "free" => system.free = Some(bytes),
            "reserved" => system.reserved = Some(bytes),
            _ => {}
        }
    }

    fn add_process(&mut self, name: &str, kind: &str, figures: &[f64]) {
        let process = self.processes.entry(name.to_owned()).or_default();
        match (kind, figures) {
            // Microseconds of CPU per second: user and system.
            ("ps_cputime", [user, system]) => process.cpu_percent = Some((user + system) / 1e4),
            ("ps_rss", [bytes]) => process.rss_bytes = Some(*bytes as u64),
            ("ps_count", [_, threads]) => process.threads = Some(*threads as u64),
            ("file_handles", [open]) => process.descriptors = Some(*open as u64),
            _ => {}
        }
    }

    fn into_row(self) -> HostRow {
        let mut row = self.row;
        row.at_ns = self.time_ns;
        let mut sum = [0.0; 8];
        for (core, shares) in &self.cpu {
            if let Some(core) = core {
                sum.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
                row.cores.push(CoreRow { core: *core, cpu: CpuPercent::from_shares(*shares) });
            }
        }
        let whole = self.cpu.get(&None).copied();
        row.cpu =
            whole.or_else(|| (!row.cores.is_empty()).then_some(sum)).map(CpuPercent::from_shares);
        row.load = self.load;
        row.memory = memory(&self.memory);
        let named = |(name, interface)| InterfaceRates { name, ..interface };
        row.interfaces = self.interfaces.into_iter().map(named).collect();
        let named = |(name, disk)| DiskRates { name, ..disk };
        row.disks = without_partitions(self.disks.into_iter().map(named).collect());
        row.file_systems = self.file_systems.iter().filter_map(file_system).collect();
        let named = |(name, process)| ProcessRow { name, ..process };
        row.processes = self.processes.into_iter().map(named).collect();
        row
    }
}

/// The memory plugin's parts add up to the installed memory.
fn memory(parts: &BTreeMap<String, f64>) -> Option<MemoryBytes> {
    let part = |name: &str| parts.get(name).map(|bytes| bytes.max(0.0) as u64);
    let used = part("used")?;
    let (slab_reclaimable, slab_unreclaimable) = (part("slab_recl"), part("slab_unrecl"));
    let [buffered, cached, free] =
        ["buffered", "cached", "free"].map(|name| part(name).unwrap_or(0));
    let slab = slab_reclaimable.unwrap_or(0).saturating_add(slab_unreclaimable.unwrap_or(0));
    let caches = buffered.saturating_add(cached).saturating_add(slab);
    Some(MemoryBytes {
        total: used.saturating_add(free).saturating_add(caches),
        used,
        buffered,
        cached,
        free,
        slab_reclaimable,
        slab_unreclaimable,
        available: None,
    })
}

/// The parts of the plugin `df`: what is reserved is neither used nor available.
fn file_system((name, space): (&String, &Space)) -> Option<FileSystemBytes> {
    let whole = |bytes: f64| bytes.max(0.0) as u64;
    let (used, available) = (whole(space.used?), whole(space.free?));
    let reserved = space.reserved.map_or(0, whole);
    Some(FileSystemBytes {
        // The plugin writes slashes as hyphens, and the root as a word.
        mount_point: if name == "root" { "/".to_owned() } else { name.clone() },
        total: used.saturating_add(available).saturating_add(reserved),
        used,
        available,
    })
}
