//! The file in a run's directory that says that the run goes on.
//!
//! The process that runs holds a lock on it: a file that is not locked was left behind by a
//! process that was killed, and is ignored.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::process::ProcessId;
use crate::regular;

/// Name of the file.
const FILE: &str = "running.json";
/// A larger file was written by another program.
const BYTES_MAX: u64 = 64 << 10;

/// A run that goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// The process that runs it.
    #[serde(flatten)]
    pub process: ProcessId,
    /// `run`, `ladder`, `capacity` or `suite`.
    pub kind: String,
    /// Name of the scenario or suite.
    pub scenario: String,
    /// When it began, RFC 3339 in UTC.
    pub started_at: String,
    /// Address of its live page, where it has one.
    pub page: Option<String>,
}

/// The file of a run that goes on; dropping it removes the file.
#[derive(Debug)]
pub struct RunningFile {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl RunningFile {
    /// Writes the file into the run's directory.
    ///
    /// # Errors
    /// When the file cannot be written or locked.
    pub fn create(directory: &Path, running: &Running) -> io::Result<Self> {
        let path = directory.join(FILE);
        let mut file = File::create(&path)?;
        // A reader holds the lock for a moment.
        file.lock()?;
        file.write_all(&serde_json::to_vec_pretty(running)?)?;
        Ok(Self { path, _file: file })
    }
}

impl Drop for RunningFile {
    fn drop(&mut self) {
        // A file that stays says that the run has ended, too: its lock is free.
        let _ = fs::remove_file(&self.path);
    }
}

impl Running {
    /// The state of a run from its directory; `None` unless the run is in progress.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let (file, _) = regular::open(&directory.join(FILE)).ok()?;
        let Err(TryLockError::WouldBlock) = file.try_lock_shared() else { return None };
        let mut text = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut text).ok()?;
        let mut running: Self = serde_json::from_slice(&text).ok()?;
        // It becomes a link.
        running.page = running.page.filter(|page| page.starts_with("http://"));
        Some(running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_that_goes_on_tells_about_itself() {
        let place = tempfile::tempdir().expect("a folder");
        assert_eq!(Running::read(place.path()), None);
        let running = Running {
            process: ProcessId { pid: 7, started_ticks: Some(1) },
            page: Some("http://127.0.0.1:9740/".to_owned()),
            ..Running::default()
        };
        let file = RunningFile::create(place.path(), &running).expect("is written");
        assert_eq!(Running::read(place.path()).as_ref(), Some(&running));
        drop(file);
        assert!(!place.path().join(FILE).exists());
        // As a process that was killed leaves it.
        fs::write(place.path().join(FILE), serde_json::to_vec(&running).expect("is JSON"))
            .expect("writes");
        assert_eq!(Running::read(place.path()), None);
        let hostile = Running { page: Some("javascript:alert(1)".to_owned()), ..running };
        let _file = RunningFile::create(place.path(), &hostile).expect("is written");
        assert_eq!(Running::read(place.path()).expect("it runs").page, None);
    }
}
