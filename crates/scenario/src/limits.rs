//! Limits of the machine that generates the load.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::format::{rate, thousands};

/// Smallest payload: the measurement header.
pub const PAYLOAD_BYTES_MIN: u64 = 24;

/// Descriptors that a run needs beside one per client: files, timers, the report.
pub const DESCRIPTORS_RESERVED: u64 = 64;

/// Largest payload: MQTT packets end at 256 MiB, topic and properties included.
pub const PAYLOAD_BYTES_MAX: u64 = 268_000_000;

/// The largest MQTT packet: five bytes of header, and the largest remaining length.
pub(crate) const PACKET_BYTES_MAX: u64 = 5 + 268_435_455;

/// Limits of the machine that generates the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open files per process: the hard limit, since the soft one can be raised to it.
    pub descriptors_max: u64,
    /// Local ports that one source address has for one address of the broker.
    pub ports_per_address: u64,
    /// Memory that is available, in bytes.
    pub memory_bytes: u64,
    /// Cores that this process may use.
    pub cores: u64,
}

impl Limits {
    /// No limits: for checking a scenario that another machine will run.
    pub const NONE: Self = Self {
        descriptors_max: u64::MAX,
        ports_per_address: u64::MAX,
        memory_bytes: u64::MAX,
        cores: u64::MAX,
    };

    /// The limits of this process.
    pub fn of_this_process() -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        Self {
            descriptors_max: limit.maximum.unwrap_or(u64::MAX),
            ports_per_address: local_ports().unwrap_or(u64::MAX),
            memory_bytes: available_memory().unwrap_or(u64::MAX),
            cores,
        }
    }
}

/// Ports between the two numbers of Linux's range for outgoing connections.
fn local_ports() -> Option<u64> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>().ok());
    let (first, last) = (numbers.next()??, numbers.next()??);
    Some(last.checked_sub(first)? + 1)
}

/// `MemAvailable` of Linux.
fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// A resource that a scenario needs and this machine lacks. The sentence begins with "needs".
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "resource", rename_all = "snake_case")]
pub enum Shortage {
    /// Too few open files per process. Exact.
    #[error(
        "needs {needed} descriptors, this system allows {available} per process ('ulimit -Hn')"
    )]
    Descriptors {
        /// One per client, and a few for files.
        needed: u64,
        /// The hard limit.
        available: u64,
    },
    /// Too few local ports for connections to one address. Exact.
    #[error(
        "needs {needed} local ports, this system has {available} per source address \
         (net.ipv4.ip_local_port_range)"
    )]
    Ports {
        /// Connections from one source address to one broker.
        needed: u64,
        /// Ports in the range.
        available: u64,
    },
    /// Too little memory for clients and schedules. An estimate from below.
    #[error("needs {} MiB of memory, {} MiB are available", needed >> 20, available >> 20)]
    Memory {
        /// Bytes.
        needed: u64,
        /// Bytes.
        available: u64,
    },
    /// More messages than the generator's cores can send and receive. An estimate.
    #[error(
        "needs about {needed} generator cores for {} messages/s in and {} out, at {} per core; \
         {available} here",
        rate(*in_per_s), rate(*out_per_s), thousands(*per_core)
    )]
    Cores {
        /// Whole cores.
        needed: u64,
        /// Cores for the generator.
        available: u64,
        /// Messages to the brokers per second.
        in_per_s: f64,
        /// Messages from the brokers per second.
        out_per_s: f64,
        /// The expected rate of one core, sent and received.
        per_core: u64,
    },
    /// The messages go from one broker to another, and only some of the brokers are named: those
    /// that the run starts cannot be known to the others.
    #[error("needs brokers that are bridged to each other: {}", arguments.join(" "))]
    Bridge {
        /// The arguments to give.
        arguments: Vec<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_limits() {
        let limits = Limits::of_this_process();
        assert!(limits.descriptors_max > 16 && limits.cores > 0);
        assert!(limits.memory_bytes > 1 << 20 && limits.ports_per_address > 0);
    }

    #[test]
    fn shortages_are_sentences() {
        let shortage = Shortage::Descriptors { needed: 200_064, available: 20_000 };
        assert!(shortage.to_string().starts_with("needs 200064 descriptors, this system allows"));
        let shortage = Shortage::Memory { needed: 3 << 20, available: 1 << 20 };
        assert_eq!(shortage.to_string(), "needs 3 MiB of memory, 1 MiB are available");
    }
}
