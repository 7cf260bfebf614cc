//! Why a page cannot be served.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

/// Why a page cannot be served.
#[derive(Debug, Error)]
pub enum ConsoleError {
    /// The address cannot be taken.
    #[error("cannot serve pages on {address}: {error}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The server cannot be started.
    #[error("cannot serve pages: {0}")]
    Serve(io::Error),
    /// There is no secret for the page.
    #[error("cannot serve the live page: {0}")]
    Token(tacho_monitor::TokenError),
    /// The folder of past runs cannot be read.
    #[error("cannot read {folder}: {error}")]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The folder is that of one run.
    #[error("{0} is itself a run directory")]
    IsRun(PathBuf),
}
