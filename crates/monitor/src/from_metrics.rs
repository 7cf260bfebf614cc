//! Rebuilds a row from named metrics: the rows of `resources.csv`.

use crate::row::{
    CpuPercent, DiskRates, FileSystemBytes, HostRow, InterfaceRates, MemoryBytes, Pressure,
};

impl HostRow {
    /// Sets one metric by its name in [`HostRow::metrics`]. Derived metrics are ignored, and so are
    /// those of cores and processes, which do not have all fields of their rows. Returns false for
    /// an unknown name.
    pub fn set_metric(&mut self, metric: &str, instance: Option<&str>, value: f64) -> bool {
        self.take_cpu(metric, value)
            || self.take_memory(metric, value)
            || self.take_network(metric, instance.unwrap_or_default(), value)
            || self.take_disk(metric, instance.unwrap_or_default(), value)
            || self.take_file_system(metric, instance.unwrap_or_default(), value)
            || self.take_kernel(metric, value)
            || crate::METRICS.contains(&metric)
    }

    fn take_cpu(&mut self, metric: &str, value: f64) -> bool {
        let state = |cpu: &mut CpuPercent| -> Option<()> {
            *match metric {
                "cpu_user_percent" => &mut cpu.user,
                "cpu_nice_percent" => &mut cpu.nice,
                "cpu_system_percent" => &mut cpu.system,
                "cpu_irq_percent" => &mut cpu.irq,
                "cpu_softirq_percent" => &mut cpu.softirq,
                "cpu_iowait_percent" => &mut cpu.iowait,
                "cpu_steal_percent" => &mut cpu.steal,
                "cpu_idle_percent" => &mut cpu.idle,
                _ => return None,
            } = value;
            Some(())
        };
        let mut cpu = self.cpu.unwrap_or_default();
        if state(&mut cpu).is_some() {
            self.cpu = Some(cpu);
            return true;
        }
        let number = match metric {
            "load_1m" => 0,
            "load_5m" => 1,
            "load_15m" => 2,
            _ => return false,
        };
        self.load.get_or_insert_default()[number] = value;
        true
    }

    fn take_memory(&mut self, metric: &str, value: f64) -> bool {
        let bytes = value as u64;
        let mut memory: MemoryBytes = self.memory.unwrap_or_default();
        match metric {
            "memory_total_bytes" => memory.total = bytes,
            "memory_used_bytes" => memory.used = bytes,
            "memory_buffered_bytes" => memory.buffered = bytes,
            "memory_cached_bytes" => memory.cached = bytes,
            "memory_free_bytes" => memory.free = bytes,
            "memory_slab_reclaimable_bytes" => memory.slab_reclaimable = Some(bytes),
            "memory_slab_unreclaimable_bytes" => memory.slab_unreclaimable = Some(bytes),
            _ => return false,
        }
        self.memory = Some(memory);
        true
    }

    fn take_network(&mut self, metric: &str, name: &str, value: f64) -> bool {
        let tcp = &mut self.tcp;
        match metric {
            "tcp_retransmits_per_s" => tcp.retransmits_per_s = Some(value),
            "tcp_listen_overflows_per_s" => tcp.listen_overflows_per_s = Some(value),
            "tcp_listen_drops_per_s" => tcp.listen_drops_per_s = Some(value),
            "tcp_established" => tcp.established = Some(value as u64),
            _ => return self.take_interface(metric, name, value),
        }
        true
    }

    fn take_interface(&mut self, metric: &str, name: &str, value: f64) -> bool {
        if !metric.starts_with("net_") {
            return false;
        }
        let new = || InterfaceRates { name: name.to_owned(), ..InterfaceRates::default() };
        let interface = entry(&mut self.interfaces, |known| known.name == name, new);
        match metric {
            "net_rx_bytes_per_s" => interface.rx_bytes_per_s = value,
            "net_tx_bytes_per_s" => interface.tx_bytes_per_s = value,
            "net_rx_packets_per_s" => interface.rx_packets_per_s = Some(value),
            "net_tx_packets_per_s" => interface.tx_packets_per_s = Some(value),
            "net_rx_drops_per_s" => interface.rx_drops_per_s = Some(value),
            "net_tx_drops_per_s" => interface.tx_drops_per_s = Some(value),
            "net_rx_errors_per_s" => interface.rx_errors_per_s = Some(value),
            "net_tx_errors_per_s" => interface.tx_errors_per_s = Some(value),
            "net_speed_bytes_per_s" => interface.speed_bytes_per_s = Some(value),
            _ => return false,
        }
        true
    }

    fn take_disk(&mut self, metric: &str, name: &str, value: f64) -> bool {
        let field = |disk: &mut DiskRates| {
            match metric {
                "disk_read_bytes_per_s" => disk.read_bytes_per_s = value,
                "disk_written_bytes_per_s" => disk.written_bytes_per_s = value,
                "disk_reads_per_s" => disk.reads_per_s = value,
                "disk_writes_per_s" => disk.writes_per_s = value,
                "disk_busy_percent" => disk.busy_percent = Some(value),
                "disk_read_wait_us" => disk.read_wait_us = Some(value),
                "disk_write_wait_us" => disk.write_wait_us = Some(value),
                _ => return false,
            }
            true
        };
        if !metric.starts_with("disk_") {
            return false;
        }
        let new = || DiskRates { name: name.to_owned(), ..DiskRates::default() };
        field(entry(&mut self.disks, |known| known.name == name, new))
    }

    fn take_file_system(&mut self, metric: &str, point: &str, value: f64) -> bool {
        let bytes = value as u64;
        let field = |system: &mut FileSystemBytes| {
            match metric {
                "filesystem_total_bytes" => system.total = bytes,
                "filesystem_used_bytes" => system.used = bytes,
                "filesystem_available_bytes" => system.available = bytes,
                _ => return false,
            }
            true
        };
        if !metric.starts_with("filesystem_") {
            return false;
        }
        let new =
            || FileSystemBytes { mount_point: point.to_owned(), ..FileSystemBytes::default() };
        field(entry(&mut self.file_systems, |known| known.mount_point == point, new))
    }

    fn take_kernel(&mut self, metric: &str, value: f64) -> bool {
        let mut pressure: Pressure = self.pressure.unwrap_or_default();
        let share = match metric {
            "pressure_cpu_some_percent" => &mut pressure.cpu_some,
            "pressure_io_some_percent" => &mut pressure.io_some,
            "pressure_io_full_percent" => &mut pressure.io_full,
            "pressure_memory_some_percent" => &mut pressure.memory_some,
            "pressure_memory_full_percent" => &mut pressure.memory_full,
            _ => {
                match metric {
                    "descriptors" => self.descriptors = Some(value as u64),
                    "context_switches_per_s" => self.context_switches_per_s = Some(value),
                    "clock_error_us" => self.clock_error_ns = Some((value * 1e3) as u64),
                    _ => return false,
                }
                return true;
            }
        };
        *share = Some(value);
        self.pressure = Some(pressure);
        true
    }
}

/// The first of `all` that `is_it`, or a new one.
fn entry<T>(all: &mut Vec<T>, is_it: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let known = all.iter().position(is_it);
    let index = known.unwrap_or_else(|| {
        all.push(new());
        all.len() - 1
    });
    // Invariant: the index is of an element that was found or added just now.
    &mut all[index]
}
