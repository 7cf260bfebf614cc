//! A row as a list of named metrics, as in `resources.csv` and in summaries.

use crate::row::HostRow;

/// One metric of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name, one of [`METRICS`].
    pub name: &'static str,
    /// The core, interface, disk, mount point or process; absent for metrics of the whole host.
    pub instance: Option<String>,
    /// Its value, in the unit at the end of the name.
    pub value: f64,
}

/// All names in [`HostRow::metrics`], in its order.
pub const METRICS: [&str; 62] = [
    "cpu_not_idle_percent",
    "cpu_busy_percent",
    "cpu_user_percent",
    "cpu_nice_percent",
    "cpu_system_percent",
    "cpu_irq_percent",
    "cpu_softirq_percent",
    "cpu_iowait_percent",
    "cpu_steal_percent",
    "cpu_idle_percent",
    "core_not_idle_percent",
    "core_softirq_percent",
    "load_1m",
    "load_5m",
    "load_15m",
    "memory_used_percent",
    "memory_total_bytes",
    "memory_used_bytes",
    "memory_buffered_bytes",
    "memory_cached_bytes",
    "memory_free_bytes",
    "memory_slab_reclaimable_bytes",
    "memory_slab_unreclaimable_bytes",
    "net_rx_bytes_per_s",
    "net_tx_bytes_per_s",
    "net_rx_packets_per_s",
    "net_tx_packets_per_s",
    "net_rx_drops_per_s",
    "net_tx_drops_per_s",
    "net_rx_errors_per_s",
    "net_tx_errors_per_s",
    "net_speed_bytes_per_s",
    "disk_read_bytes_per_s",
    "disk_written_bytes_per_s",
    "disk_reads_per_s",
    "disk_writes_per_s",
    "disk_busy_percent",
    "disk_read_wait_us",
    "disk_write_wait_us",
    "filesystem_total_bytes",
    "filesystem_used_bytes",
    "filesystem_available_bytes",
    "filesystem_used_percent",
    "tcp_retransmits_per_s",
    "tcp_listen_overflows_per_s",
    "tcp_listen_drops_per_s",
    "tcp_established",
    "descriptors",
    "pressure_cpu_some_percent",
    "pressure_io_some_percent",
    "pressure_io_full_percent",
    "pressure_memory_some_percent",
    "pressure_memory_full_percent",
    "context_switches_per_s",
    "process_cpu_percent",
    "process_rss_bytes",
    "process_threads",
    "process_descriptors",
    "process_cpu_limit_cores",
    "process_memory_limit_bytes",
    "process_throttled_percent",
    "clock_error_us",
];

/// Collects the metrics that are present.
struct Collected(Vec<Metric>);

impl Collected {
    fn host(&mut self, name: &'static str, value: impl Into<Option<f64>>) {
        self.instance(name, None, value);
    }

    fn instance(
        &mut self,
        name: &'static str,
        instance: Option<&str>,
        value: impl Into<Option<f64>>,
    ) {
        // A source may send NaN or infinities; files and summaries cannot represent them.
        if let Some(value) = value.into().filter(|value| value.is_finite()) {
            self.0.push(Metric { name, instance: instance.map(str::to_owned), value });
        }
    }
}

impl HostRow {
    /// Every metric that the row has.
    pub fn metrics(&self) -> Vec<Metric> {
        let mut all = Collected(Vec::with_capacity(METRICS.len()));
        self.cpu_metrics(&mut all);
        self.memory_metrics(&mut all);
        self.network_metrics(&mut all);
        self.kernel_metrics(&mut all);
        self.process_metrics(&mut all);
        all.host("clock_error_us", self.clock_error_ns.map(|error_ns| error_ns as f64 / 1e3));
        all.0
    }

    fn cpu_metrics(&self, all: &mut Collected) {
        if let Some(cpu) = &self.cpu {
            all.host("cpu_not_idle_percent", cpu.not_idle());
            all.host("cpu_busy_percent", cpu.busy());
            all.host("cpu_user_percent", cpu.user);
            all.host("cpu_nice_percent", cpu.nice);
            all.host("cpu_system_percent", cpu.system);
            all.host("cpu_irq_percent", cpu.irq);
            all.host("cpu_softirq_percent", cpu.softirq);
            all.host("cpu_iowait_percent", cpu.iowait);
            all.host("cpu_steal_percent", cpu.steal);
            all.host("cpu_idle_percent", cpu.idle);
        }
        for core in &self.cores {
            let name = core.core.to_string();
            all.instance("core_not_idle_percent", Some(&name), core.cpu.not_idle());
            all.instance("core_softirq_percent", Some(&name), core.cpu.softirq);
        }
        if let Some([one, five, fifteen]) = self.load {
            all.host("load_1m", one);
            all.host("load_5m", five);
            all.host("load_15m", fifteen);
        }
    }

    fn memory_metrics(&self, all: &mut Collected) {
        let Some(memory) = &self.memory else { return };
        all.host("memory_used_percent", memory.percent());
        all.host("memory_total_bytes", memory.total as f64);
        all.host("memory_used_bytes", memory.used as f64);
        all.host("memory_buffered_bytes", memory.buffered as f64);
        all.host("memory_cached_bytes", memory.cached as f64);
        all.host("memory_free_bytes", memory.free as f64);
        let float = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64);
        all.host("memory_slab_reclaimable_bytes", float(memory.slab_reclaimable));
        all.host("memory_slab_unreclaimable_bytes", float(memory.slab_unreclaimable));
    }

    fn network_metrics(&self, all: &mut Collected) {
        for interface in &self.interfaces {
            let name = Some(interface.name.as_str());
            all.instance("net_rx_bytes_per_s", name, interface.rx_bytes_per_s);
            all.instance("net_tx_bytes_per_s", name, interface.tx_bytes_per_s);
            all.instance("net_rx_packets_per_s", name, interface.rx_packets_per_s);
            all.instance("net_tx_packets_per_s", name, interface.tx_packets_per_s);
            all.instance("net_rx_drops_per_s", name, interface.rx_drops_per_s);
            all.instance("net_tx_drops_per_s", name, interface.tx_drops_per_s);
            all.instance("net_rx_errors_per_s", name, interface.rx_errors_per_s);
            all.instance("net_tx_errors_per_s", name, interface.tx_errors_per_s);
            all.instance("net_speed_bytes_per_s", name, interface.speed_bytes_per_s);
        }
        self.disk_metrics(all);
        all.host("tcp_retransmits_per_s", self.tcp.retransmits_per_s);
        all.host("tcp_listen_overflows_per_s", self.tcp.listen_overflows_per_s);
        all.host("tcp_listen_drops_per_s", self.tcp.listen_drops_per_s);
        all.host("tcp_established", self.tcp.established.map(|count| count as f64));
    }

    fn disk_metrics(&self, all: &mut Collected) {
        for disk in &self.disks {
            let name = Some(disk.name.as_str());
            all.instance("disk_read_bytes_per_s", name, disk.read_bytes_per_s);
            all.instance("disk_written_bytes_per_s", name, disk.written_bytes_per_s);
            all.instance("disk_reads_per_s", name, disk.reads_per_s);
            all.instance("disk_writes_per_s", name, disk.writes_per_s);
            all.instance("disk_busy_percent", name, disk.busy_percent);
            all.instance("disk_read_wait_us", name, disk.read_wait_us);
            all.instance("disk_write_wait_us", name, disk.write_wait_us);
        }
        for system in &self.file_systems {
            let name = Some(system.mount_point.as_str());
            all.instance("filesystem_total_bytes", name, system.total as f64);
            all.instance("filesystem_used_bytes", name, system.used as f64);
            all.instance("filesystem_available_bytes", name, system.available as f64);
            all.instance("filesystem_used_percent", name, system.percent());
        }
    }

    fn kernel_metrics(&self, all: &mut Collected) {
        all.host("descriptors", self.descriptors.map(|count| count as f64));
        if let Some(pressure) = &self.pressure {
            all.host("pressure_cpu_some_percent", pressure.cpu_some);
            all.host("pressure_io_some_percent", pressure.io_some);
            all.host("pressure_io_full_percent", pressure.io_full);
            all.host("pressure_memory_some_percent", pressure.memory_some);
            all.host("pressure_memory_full_percent", pressure.memory_full);
        }
        all.host("context_switches_per_s", self.context_switches_per_s);
    }

    fn process_metrics(&self, all: &mut Collected) {
        let float = |count: Option<u64>| count.map(|count| count as f64);
        for process in &self.processes {
            let label = match process.pid {
                Some(pid) => format!("{}:{pid}", process.name),
                None => process.name.clone(),
            };
            // Several brokers on one host are told apart by their targets.
            let label = match &process.target {
                Some(target) => format!("{target} {label}"),
                None => label,
            };
            let name = Some(label.as_str());
            all.instance("process_cpu_percent", name, process.cpu_percent);
            all.instance("process_rss_bytes", name, float(process.rss_bytes));
            all.instance("process_threads", name, float(process.threads));
            all.instance("process_descriptors", name, float(process.descriptors));
            all.instance("process_cpu_limit_cores", name, process.cpu_limit_cores);
            all.instance("process_memory_limit_bytes", name, float(process.memory_limit_bytes));
            all.instance("process_throttled_percent", name, process.throttled_percent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{
        CoreRow, CpuPercent, DiskRates, FileSystemBytes, InterfaceRates, MemoryBytes, Pressure,
        ProcessRow, TcpRates,
    };

    /// A row with every metric.
    fn full() -> HostRow {
        let some = Some(1.0);
        HostRow {
            cpu: Some(CpuPercent { idle: 25.0, steal: 5.0, user: 70.0, ..CpuPercent::default() }),
            cores: vec![CoreRow::default()],
            load: Some([1.0, 2.0, 3.0]),
            memory: Some(MemoryBytes {
                total: 100,
                used: 60,
                slab_reclaimable: Some(1),
                slab_unreclaimable: Some(1),
                available: Some(30),
                ..MemoryBytes::default()
            }),
            interfaces: vec![InterfaceRates {
                name: "eth0".to_owned(),
                rx_packets_per_s: some,
                tx_packets_per_s: some,
                rx_drops_per_s: some,
                tx_drops_per_s: some,
                rx_errors_per_s: some,
                tx_errors_per_s: some,
                speed_bytes_per_s: some,
                ..InterfaceRates::default()
            }],
            disks: vec![DiskRates {
                name: "sda".to_owned(),
                busy_percent: some,
                read_wait_us: some,
                write_wait_us: some,
                ..DiskRates::default()
            }],
            file_systems: vec![FileSystemBytes {
                mount_point: "/".to_owned(),
                total: 100,
                used: 30,
                available: 60,
            }],
            tcp: TcpRates {
                retransmits_per_s: some,
                listen_overflows_per_s: some,
                listen_drops_per_s: some,
                established: Some(1),
            },
            descriptors: Some(1),
            pressure: Some(Pressure {
                cpu_some: some,
                io_some: some,
                io_full: some,
                memory_some: some,
                memory_full: some,
            }),
            context_switches_per_s: some,
            processes: vec![ProcessRow {
                name: "broker".to_owned(),
                pid: Some(7),
                cpu_percent: some,
                rss_bytes: Some(1),
                threads: Some(1),
                descriptors: Some(1),
                cpu_limit_cores: some,
                memory_limit_bytes: Some(1),
                throttled_percent: some,
                target: None,
            }],
            clock_error_ns: Some(1500),
            ..HostRow::default()
        }
    }

    #[test]
    fn a_row_is_rebuilt_from_its_metrics() {
        let row = full();
        let mut again = HostRow::default();
        for metric in row.metrics() {
            assert!(again.set_metric(metric.name, metric.instance.as_deref(), metric.value));
        }
        assert!(!again.set_metric("net_of_somebody", Some("eth0"), 1.0));
        assert!(!again.set_metric("disk_of_somebody", Some("sda"), 1.0));
        assert!(!again.set_metric("cpu", None, 1.0));
        let memory = row.memory.map(|memory| MemoryBytes { available: None, ..memory });
        let (cores, processes) = (Vec::new(), Vec::new());
        assert_eq!(again, HostRow { memory, cores, processes, ..row });
    }

    #[test]
    fn a_full_row_has_every_metric_in_order() {
        let metrics = full().metrics();
        let names: Vec<&str> = metrics.iter().map(|metric| metric.name).collect();
        assert_eq!(names, METRICS);
        let value = |name: &str| metrics.iter().find(|metric| metric.name == name).cloned();
        assert_eq!(value("cpu_not_idle_percent").map(|metric| metric.value), Some(75.0));
        assert_eq!(value("cpu_busy_percent").map(|metric| metric.value), Some(70.0));
        assert_eq!(value("memory_used_percent").map(|metric| metric.value), Some(70.0));
        assert_eq!(value("clock_error_us").map(|metric| metric.value), Some(1.5));
        let process = value("process_rss_bytes").and_then(|metric| metric.instance);
        assert_eq!(process.as_deref(), Some("broker:7"));
    }

    #[test]
    fn unknown_metrics_are_absent() {
        assert!(HostRow::default().metrics().is_empty());
        let row = HostRow { load: Some([f64::NAN, f64::INFINITY, 1.0]), ..HostRow::default() };
        assert_eq!(row.metrics().len(), 1);
    }

    #[test]
    fn a_row_survives_json() {
        let row = full();
        let json = serde_json::to_string(&row).expect("serialises");
        assert_eq!(serde_json::from_str::<HostRow>(&json).expect("parses"), row);
    }
}
