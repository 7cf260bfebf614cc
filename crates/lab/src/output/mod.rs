//! The files of a run directory.

mod brokers;
mod directory;
mod hgrm;
mod hlog;
mod jtl;
pub(crate) mod junit;
mod markdown;
mod resources;
mod steps;
mod timeseries;

pub use brokers::BrokerWriter;
pub(crate) use directory::json;
pub use directory::{OutputError, RunDirectory};
pub use hgrm::write_percentiles;
pub use hlog::HistogramLog;
pub use jtl::JtlWriter;
pub use junit::junit;
pub use markdown::markdown;
pub(crate) use markdown::text as markdown_text;
pub use resources::ResourceWriter;
pub use steps::write_steps;
pub use timeseries::SeriesWriter;
