//! A directory that is complete or not there: it is filled beside its place, and renamed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::{BackupError, files_of};
use crate::storage::{DIRECTORY_MODE, Files};

/// What the name has at its end until the directory is complete.
const ENDING: &str = ".part";

/// A directory that is being filled; what is not finished is removed.
pub(super) struct Staging {
    part: PathBuf,
    directory: PathBuf,
    is_finished: bool,
}

impl Staging {
    /// For a directory that is not there, or empty; the one above it must be there.
    pub(super) fn begin(directory: &Path) -> Result<Self, BackupError> {
        let shown = directory.display();
        let what = || format!("cannot create {shown}");
        let Some(name) = directory.file_name() else {
            return Err(BackupError::Exists(shown.to_string()));
        };
        match fs::read_dir(directory).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(false) => return Err(BackupError::Exists(shown.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(BackupError::io(what())(error)),
        }
        let mut name = name.to_owned();
        name.push(ENDING);
        let part = directory.with_file_name(name);
        match DirBuilder::new().mode(DIRECTORY_MODE).create(&part) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(BackupError::Interrupted(part.display().to_string()));
            }
            Err(error) => return Err(BackupError::io(what())(error)),
        }
        Ok(Self { part, directory: directory.to_owned(), is_finished: false })
    }

    /// Where it is for now.
    pub(super) fn path(&self) -> &Path {
        &self.part
    }

    pub(super) fn files(&self) -> Result<Files, BackupError> {
        files_of(&self.part)
    }

    /// It is complete: it gets its name.
    pub(super) fn finish(mut self) -> Result<(), BackupError> {
        let what = || format!("cannot create {}", self.directory.display());
        fs::rename(&self.part, &self.directory).map_err(BackupError::io(what()))?;
        self.is_finished = true;
        let above = self.directory.parent().filter(|above| !above.as_os_str().is_empty());
        let above = File::open(above.unwrap_or_else(|| Path::new(".")));
        above.and_then(|above| above.sync_all()).map_err(BackupError::io(what()))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.is_finished {
            // What stays behind is named by the next attempt.
            let _ = fs::remove_dir_all(&self.part);
        }
    }
}
