//! The files of a run directory.

mod directory;
mod hlog;
mod resources;
mod timeseries;

pub use directory::{OutputError, RunDirectory};
pub use hlog::HistogramLog;
pub use resources::ResourceWriter;
pub use timeseries::SeriesWriter;
