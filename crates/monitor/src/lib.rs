//! What a process and its host spend, sampled from Linux's `/proc`.
//!
//! Two samplers, both pulled by the caller (nothing here starts a thread or reads a clock):
//!
//! - [`ProcessSampler`]: one process by its id: CPU nanoseconds of all its threads, resident
//!   memory, threads, open descriptors, the cores it may use.
//! - [`HostSampler`]: the machine: CPU time by state in total and per core, memory, load average.
//!
//! Samples hold running totals; a figure over a window is the difference of two samples
//! ([`ProcessSample::cpu_percent_since`], [`HostSample::busy_percent_since`], ...).
//!
//! Everything is read below a [`ProcRoot`], so that tests (and containers that mount the host's
//! `/proc` elsewhere) can point it at another directory. On systems without `/proc` every sample
//! is an error that says so; callers then report the figures as absent.

mod agent;
mod cgroup;
mod clock;
mod collectd;
mod cpus;
mod error;
mod find;
mod host;
mod kernel;
mod machine;
mod metric;
mod network;
mod process;
mod prometheus;
mod root;
mod row;
mod source;
mod watch;

pub use agent::{AgentCounts, AgentError, AgentServer, Token, TokenError};
pub use clock::{ClockMap, Exchange, MappedTime, now_ns};
pub use cpus::{CpuTimes, parse_cpu_list};
pub use error::MonitorError;
pub use find::find_processes;
pub use host::{CoreTimes, HostSample, HostSampler, LoadAverage};
pub use machine::MachineSampler;
pub use metric::{METRICS, Metric};
pub use process::{CpuSource, ProcessSample, ProcessSampler, ThreadSample};
pub use root::ProcRoot;
pub use row::{
    CoreRow, CpuPercent, HostRow, InterfaceRates, MemoryBytes, Pressure, ProcessRow, TcpRates,
};
pub use source::{
    INTERVAL, MonitorSpec, ProcessSelector, SourceError, SourceSpec, TokenSource, WatchedProcess,
    interval,
};

pub use watch::{SourceReport, Watch, WatchError};

/// The environment variable that holds the token of an agent, on both sides.
pub const TOKEN_VARIABLE: &str = "TACHO_MONITOR_TOKEN";
