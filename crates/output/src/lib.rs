//! Figures that leave the program while they arise: to InfluxDB, Prometheus, OpenTelemetry, or to
//! files that other programs follow.
//!
//! ```text
//! OutputPoint -> Outputs::send -> a bounded queue and a thread per target -> encoder -> service
//! ```
//!
//! - [`point`]: a point is one subject (a load, a group, a host) in one window: counts, gauges, and
//!   latencies as [`Buckets`]. A percentile is computed from the buckets of the window that it is
//!   named after; percentiles are never averaged.
//! - [`target`]: where to, as `--out` states it, parsed and checked before anything starts.
//! - `encode`: a wire format each.
//! - `sender`: a thread of the lowest priority per target. Its queue and its backlog are bounded;
//!   points that do not fit, or that the service does not take, are counted as lost
//!   ([`OutputAccount`]). The measuring threads never wait for it.
//!
//! The crate knows neither MQTT nor runs: its users say what their figures are called.

mod buckets;
mod encode;
mod outputs;
pub mod point;
mod sender;
pub mod target;

pub use buckets::{Buckets, LatencyStatistics, NamedPercentile};
pub use encode::exposition;
pub use outputs::{OutputSetting, Outputs};
pub use point::{
    FigureKind, OutputItem, OutputNote, OutputPoint, PointFigure, PointSeries, PointTag, PointTags,
    PointWindow, TableRow,
};
pub use sender::{OutputAccount, OutputStartError, tls_config, tls_identity};
pub use target::{OutputTarget, TargetError};
