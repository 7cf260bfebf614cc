//! Directories that outlive a broker's process, but not the broker.

use std::path::{Path, PathBuf};

use crate::error::RigError;

/// A directory for a broker; dropping it removes it.
#[derive(Debug)]
pub struct DataDirectory(PathBuf);

impl DataDirectory {
    /// Creates it, empty.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn create(path: &Path) -> Result<Self, RigError> {
        let failed = |error| RigError::Write { path: path.to_owned(), error };
        std::fs::create_dir_all(path).map_err(failed)?;
        // The command may change its working directory.
        std::path::absolute(path).map(Self).map_err(failed)
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        // A remainder is in the run's directory, where it can be found.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
