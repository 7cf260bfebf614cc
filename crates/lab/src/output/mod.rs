//! The files of a run directory.

mod directory;
mod hlog;
mod timeseries;

pub use directory::{OutputError, RunDirectory};
pub use hlog::HistogramLog;
pub use timeseries::SeriesWriter;
