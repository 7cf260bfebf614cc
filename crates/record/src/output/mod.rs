//! The files of a run directory.

mod brokers;
mod directory;
mod groups;
mod hgrm;
mod hlog;
mod hlog_reader;
mod jtl;
mod resources;
mod steps;
mod timeseries;

pub use brokers::BrokerWriter;
pub use directory::{OutputError, RunDirectory, json};
pub(crate) use groups::ROWS as GROUP_ROWS;
pub use groups::{GROUP_LOG, GroupWriter, group_tag};
pub use hgrm::write_percentiles;
pub use hlog::HistogramLog;
pub use hlog_reader::{HlogError, LoggedHistogram, LoggedHistograms};
pub use jtl::{AggregatedWriter, SAMPLE_ROWS_MAX, SampleRows, Thinned};
pub use resources::ResourceWriter;
pub use steps::write_steps;
pub use timeseries::{SERIES_COLUMNS, SeriesWriter, series_cells};
