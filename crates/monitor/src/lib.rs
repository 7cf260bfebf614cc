//! What processes and their hosts spend: sampled from Linux's `/proc`, or told by others.
//!
//! - [`MachineSampler`]: this machine and some of its processes, a [`HostRow`] per sample. Below it
//!   [`HostSampler`] and [`ProcessSampler`], which hold running totals; a figure over a window is
//!   the difference of two samples. Samplers are pulled and know no clock.
//! - [`Watch`]: sources in the background, a thread each: this machine, an agent elsewhere, a
//!   Prometheus endpoint, collectd ([`SourceSpec`]). All deliver rows whose times are on this
//!   machine's monotonic clock, with a bound of the error where there is one ([`ClockMap`]).
//! - [`AgentServer`]: offers this machine's rows to others who know the [`Token`].
//! - [`HostRow::metrics`]: a row as named figures, for files and summaries.
//!
//! Everything is read below a [`ProcRoot`], so that tests (and containers that mount the host's
//! `/proc` elsewhere) can point it at another directory. On systems without `/proc` every sample
//! is an error that says so; callers then report the figures as absent. What comes over the network
//! is bounded: lines, packets, answers, hosts, series, clients, and rows that nobody takes.

mod agent;
mod cgroup;
mod clock;
mod collectd;
mod cpus;
mod error;
mod find;
mod from_metrics;
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
pub use process::{CpuSource, ProcessSample, ProcessSampler, ThreadSample, resident_bytes};
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
