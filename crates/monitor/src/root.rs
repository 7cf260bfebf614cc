//! The directories below which all files are read.

use std::path::{Path, PathBuf};

use procfs_core::FromRead;

use crate::MonitorError;

/// The mount points of the kernel's file systems, and the folder of the system's configuration;
/// `/proc`, `/sys` and `/etc` by default.
#[derive(Clone, Debug)]
pub struct ProcRoot {
    proc: PathBuf,
    sys: PathBuf,
    etc: PathBuf,
}

impl Default for ProcRoot {
    fn default() -> Self {
        let [proc, sys, etc] = ["/proc", "/sys", "/etc"].map(PathBuf::from);
        Self { proc, sys, etc }
    }
}

impl ProcRoot {
    /// Uses `path` in place of `/proc`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { proc: path.into(), ..Self::default() }
    }

    /// Uses `path` in place of `/sys`.
    #[must_use]
    pub fn with_sys(mut self, path: impl Into<PathBuf>) -> Self {
        self.sys = path.into();
        self
    }

    /// Uses `path` in place of `/etc`.
    #[must_use]
    pub fn with_etc(mut self, path: impl Into<PathBuf>) -> Self {
        self.etc = path.into();
        self
    }

    /// The path of `name` below the root.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.proc.join(name)
    }

    /// The path of `name` below `/sys`.
    pub(crate) fn sys(&self, name: impl AsRef<Path>) -> PathBuf {
        self.sys.join(name)
    }

    /// The path of `name` below `/etc`.
    pub(crate) fn etc(&self, name: impl AsRef<Path>) -> PathBuf {
        self.etc.join(name)
    }

    /// The content of the file `name` below the root.
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
