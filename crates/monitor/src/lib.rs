//! Resource usage of hosts and processes: sampled from Linux's `/proc`, or received from elsewhere.
//!
//! - [`MachineSampler`]: this machine and selected processes, one [`HostRow`] per sample. It builds
//!   on [`HostSampler`] and [`ProcessSampler`], which return running totals; a figure over a window
//!   is the difference of two samples. Samplers read no clock: the caller passes the time.
//! - [`Watch`]: background sources, one thread each: this machine, a remote agent, a Prometheus
//!   endpoint, collectd ([`SourceSpec`]). The times of all rows are on this machine's monotonic
//!   clock, with an error bound where one is known ([`ClockMap`]).
//! - [`AgentServer`]: serves this machine's rows to clients that hold the [`Token`].
//! - [`describe_host`]: what this machine is; an agent sends the same of its own.
//! - [`HostRow::metrics`]: a row as named metrics, for files and summaries.
//!
//! All files are read below a [`ProcRoot`], so that tests (and containers that mount the host's
//! `/proc` elsewhere) can use another directory. On systems without `/proc` every sample returns an
//! error; callers then report the metrics as absent. Everything received from the network is
//! bounded: lines, packets, responses, hosts, series, clients, and queued rows.

mod agent;
mod cgroup;
mod clock;
mod collectd;
mod cpus;
mod describe;
mod description;
mod disk;
mod error;
mod find;
mod from_metrics;
mod host;
mod kernel;
mod machine;
mod metric;
mod mount;
mod network;
mod process;
mod prometheus;
mod root;
mod row;
mod source;
mod table;
mod tree;
mod watch;

pub use agent::{AgentCounts, AgentError, AgentServer, TOKEN_VARIABLE, Token, TokenError};
pub use clock::{ClockMap, Exchange, MappedTime, now_ns};
pub use cpus::{CpuTimes, parse_cpu_list};
pub use describe::describe_host;
pub use description::{DataDisk, HostDescription, KERNEL_SETTINGS};
pub use error::MonitorError;
pub use find::find_processes;
pub use host::{CoreTimes, HostSample, HostSampler, LoadAverage};
pub use machine::MachineSampler;
pub use metric::{METRICS, Metric};
pub use network::retransmitted_segments;
pub use process::{CpuSource, ProcessSample, ProcessSampler, ThreadSample, resident_bytes};
pub use root::ProcRoot;
pub use row::{
    CoreRow, CpuPercent, DiskRates, FileSystemBytes, HostRow, InterfaceRates, MemoryBytes,
    Pressure, ProcessRow, TcpRates,
};
pub use source::{
    INTERVAL, MonitorSpec, ProcessSelector, SourceError, SourceSpec, TokenSource, WatchedProcess,
    interval,
};
pub use table::{OtherPrograms, ProcessTable};
pub use tree::ProcessTreeSampler;
pub use watch::{SourceReport, Watch, WatchError};
