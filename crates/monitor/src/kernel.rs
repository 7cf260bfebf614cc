//! Kernel-wide metrics: descriptors, pressure, context switches, host name.

use crate::ProcRoot;
use crate::row::Pressure;

/// Open descriptors and their limit, from `sys/fs/file-nr`.
pub(crate) fn descriptors(root: &ProcRoot) -> Option<(u64, u64)> {
    let text = root.text("sys/fs/file-nr").ok()?;
    let mut fields = text.split_whitespace().map(|field| field.parse::<u64>().ok());
    let allocated = fields.next()??;
    let free = fields.next()??;
    Some((allocated.saturating_sub(free), fields.next()??))
}

/// Context switches since boot, from the content of `stat`.
pub(crate) fn context_switches(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("ctxt ")?.trim().parse().ok())
}

/// The machine's host name.
pub(crate) fn host_name(root: &ProcRoot) -> String {
    let name = root.text("sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

/// Stall time since boot in microseconds; `None` where the kernel does not account it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PressureCounters {
    cpu_some: Option<u64>,
    io_some: Option<u64>,
    io_full: Option<u64>,
    memory_some: Option<u64>,
    memory_full: Option<u64>,
}

impl PressureCounters {
    /// Reads the files below `pressure`.
    pub(crate) fn read(root: &ProcRoot) -> Self {
        let read = |resource: &str| root.text(format!("pressure/{resource}")).unwrap_or_default();
        let (cpu, io, memory) = (read("cpu"), read("io"), read("memory"));
        Self {
            cpu_some: total(&cpu, "some"),
            io_some: total(&io, "some"),
            io_full: total(&io, "full"),
            memory_some: total(&memory, "some"),
            memory_full: total(&memory, "full"),
        }
    }

    /// Sets the stall time of one resource, by its name in node_exporter's metrics.
    pub(crate) fn set(&mut self, name: &str, micros: u64) {
        let counter = match name {
            "cpu_waiting" => &mut self.cpu_some,
            "io_waiting" => &mut self.io_some,
            "io_stalled" => &mut self.io_full,
            "memory_waiting" => &mut self.memory_some,
            "memory_stalled" => &mut self.memory_full,
            _ => return,
        };
        *counter = Some(micros);
    }

    /// Shares of the time since `earlier`; `None` where the kernel has no pressure accounting.
    pub(crate) fn since(&self, earlier: &Self, elapsed_ns: u64) -> Option<Pressure> {
        if *self == Self::default() || elapsed_ns == 0 {
            return None;
        }
        let share = |now: Option<u64>, before: Option<u64>| {
            let waited_ns = now?.saturating_sub(before?).saturating_mul(1000);
            Some((waited_ns as f64 * 100.0 / elapsed_ns as f64).min(100.0))
        };
        Some(Pressure {
            cpu_some: share(self.cpu_some, earlier.cpu_some),
            io_some: share(self.io_some, earlier.io_some),
            io_full: share(self.io_full, earlier.io_full),
            memory_some: share(self.memory_some, earlier.memory_some),
            memory_full: share(self.memory_full, earlier.memory_full),
        })
    }
}

/// The `total=` field of line `kind` in a pressure file.
fn total(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
    line.split_whitespace().find_map(|field| field.strip_prefix("total=")?.parse().ok())
}
