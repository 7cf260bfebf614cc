//! The files of a run directory.

mod directory;
mod hlog;
mod junit;
mod markdown;
mod resources;
mod timeseries;

pub use directory::{OutputError, RunDirectory};
pub use hlog::HistogramLog;
pub use junit::junit;
pub use markdown::markdown;
pub use resources::ResourceWriter;
pub use timeseries::SeriesWriter;
