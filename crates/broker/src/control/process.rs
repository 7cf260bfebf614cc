//! Resources of the process, under the standard names of Prometheus clients.

use std::fs;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::exposition::{Exposition, Kind};

/// Writes what the system provides; other systems than Linux provide little.
pub(super) fn write(exposition: &mut Exposition) {
    let mut gauge = |name: &str, help: &str, value: Option<f64>| {
        if let Some(value) = value {
            exposition.family(name, help, Kind::Gauge).sample(&[], value);
        }
    };
    let memory = ProcessMemory::read();
    gauge(
        "process_resident_memory_bytes",
        "Resident memory of the process.",
        memory.map(|memory| memory.resident_bytes as f64),
    );
    gauge(
        "process_virtual_memory_bytes",
        "Virtual memory of the process.",
        memory.map(|memory| memory.virtual_bytes as f64),
    );
    gauge(
        "process_open_fds",
        "Open file descriptors of the process.",
        open_descriptors().map(|count| count as f64),
    );
    gauge(
        "process_max_fds",
        "Limit on open file descriptors of the process.",
        getrlimit(Resource::Nofile).current.map(|limit| limit as f64),
    );
    gauge("process_threads", "Threads of the process.", memory.map(|memory| memory.threads as f64));
    gauge(
        "process_start_time_seconds",
        "Start time of the process in seconds since 1970.",
        start_time(),
    );
    let name = "process_cpu_seconds_total";
    let help = "CPU time of all threads of the process, in user and kernel mode.";
    exposition.family(name, help, Kind::Counter).sample(&[], cpu().as_secs_f64());
}

/// CPU time of all threads.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Memory and threads of the process as the kernel counts them. `tacho-monitor` reads the same of
/// other processes; the broker does not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessMemory {
    pub(super) resident_bytes: u64,
    virtual_bytes: u64,
    /// Resident memory that is not backed by files: heap, stacks, tables.
    pub(super) anonymous_bytes: u64,
    threads: u64,
}

impl ProcessMemory {
    /// `None` where the system does not provide it.
    pub(super) fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/self/status").ok()?)
    }

    fn parse(status: &str) -> Option<Self> {
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line?.split_whitespace().next()?.parse::<u64>().ok()
        };
        let bytes = |name: &str| number(name).map(|kib| kib * 1024);
        Some(Self {
            resident_bytes: bytes("VmRSS")?,
            virtual_bytes: bytes("VmSize")?,
            anonymous_bytes: bytes("RssAnon")?,
            threads: number("Threads")?,
        })
    }
}

/// Newer kernels report the count as the size of the directory; on older ones it is listed.
pub(super) fn open_descriptors() -> Option<u64> {
    let folder = "/proc/self/fd";
    match fs::metadata(folder).ok()?.len() {
        0 => Some(fs::read_dir(folder).ok()?.count() as u64),
        count => Some(count),
    }
}

fn start_time() -> Option<f64> {
    start_time_of(
        &fs::read_to_string("/proc/self/stat").ok()?,
        &fs::read_to_string("/proc/stat").ok()?,
    )
}

fn start_time_of(own: &str, machine: &str) -> Option<f64> {
    /// Clock ticks per second in `/proc`, on every architecture that Rust supports.
    const TICKS: f64 = 100.0;
    // The program name may contain anything, so fields are counted from its last parenthesis: the
    // state is field 3, the start time field 22.
    let (_, fields) = own.rsplit_once(')')?;
    let ticks: f64 = fields.split_whitespace().nth(22 - 3)?.parse().ok()?;
    let booted = machine.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(booted.trim().parse::<f64>().ok()? + ticks / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_parsed() {
        let status = "Name:\tx\nVmSize:\t  300 kB\nVmRSS:\t      200 kB\nRssAnon:\t  100 kB\n\
                      Threads:\t7\n";
        let expected = ProcessMemory {
            resident_bytes: 200 << 10,
            virtual_bytes: 300 << 10,
            anonymous_bytes: 100 << 10,
            threads: 7,
        };
        assert_eq!(ProcessMemory::parse(status), Some(expected));
        assert_eq!(ProcessMemory::parse("Name:\tx\n"), None);
        let own = "42 (a ) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 250 20";
        assert_eq!(start_time_of(own, "cpu 1 2\nbtime 1000\n"), Some(1002.5));
        assert_eq!(start_time_of("42 (x) S", "btime 1000\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn all_values_of_this_process_are_read() {
        let memory = ProcessMemory::read().expect("/proc");
        assert!(memory.resident_bytes > 0 && memory.threads > 0);
        assert!(memory.virtual_bytes >= memory.resident_bytes);
        assert!(open_descriptors().is_some_and(|count| count > 2));
        let age = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs_f64()
            - start_time().expect("/proc");
        // Rounding may make it a little negative; a test binary runs for minutes at most.
        assert!((-5.0..36_000.0).contains(&age), "{age}");
    }
}
