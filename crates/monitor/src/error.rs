//! Why a sample could not be taken.

use std::path::PathBuf;

/// Why a sample could not be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MonitorError {
    /// The process has exited or never existed.
    #[error("process {pid} is not running")]
    ProcessGone {
        /// The process id.
        pid: u32,
    },
    /// A file below the root could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file below the root does not have its documented format.
    #[error("cannot parse {}: {what}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}
