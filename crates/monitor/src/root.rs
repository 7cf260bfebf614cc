//! The directory below which everything is read.

use std::path::{Path, PathBuf};

use procfs_core::FromRead;

use crate::MonitorError;

/// Where the process file system is mounted; `/proc` by default.
#[derive(Clone, Debug)]
pub struct ProcRoot(PathBuf);

impl Default for ProcRoot {
    fn default() -> Self {
        Self(PathBuf::from("/proc"))
    }
}

impl ProcRoot {
    /// Uses `path` in place of `/proc`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The path of `name` below the root.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// The text of the file `name` below the root.
    pub(crate) fn text(&self, name: impl AsRef<Path>) -> Result<String, MonitorError> {
        let path = self.path(name);
        std::fs::read_to_string(&path).map_err(|source| MonitorError::Read { path, source })
    }

    /// The file `name` below the root, parsed.
    pub(crate) fn parse<T: FromRead>(&self, name: impl AsRef<Path>) -> Result<T, MonitorError> {
        let text = self.text(name.as_ref())?;
        T::from_read(text.as_bytes())
            .map_err(|error| MonitorError::Parse { path: self.path(name), what: error.to_string() })
    }
}
