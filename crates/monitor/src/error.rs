//! Why a sample could not be taken.

use std::path::PathBuf;

/// A sample that could not be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MonitorError {
    /// The process has ended (or never existed).
    #[error("process {pid} is not running any more")]
    ProcessGone {
        /// The process id that was asked for.
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
    /// A file below the root does not have the form that the kernel documents.
    #[error("cannot understand {}: {what}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}
