//! Why a page cannot be served.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use crate::access::AccessError;

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
    /// There are no tokens.
    #[error("cannot serve the console: {0}")]
    Access(#[from] AccessError),
    /// The folder of past runs cannot be read.
    #[error("cannot read {folder}: {error}")]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another console serves the folder.
    #[error("another console serves {0} already: open that one, or end it first")]
    Served(PathBuf),
    /// The folder is that of one run.
    #[error("{0} is itself a run directory")]
    IsRun(PathBuf),
}
