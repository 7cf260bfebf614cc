//! One process per data directory, and no other user can write there.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::error::OpenError;
use crate::storage::{DIRECTORY_MODE, FILE_MODE};

/// Locked by the process that uses the directory. It is empty and never removed.
const FILE: &str = "lock";

/// Group and others may write.
const OTHERS_WRITE: u32 = 0o022;

/// The right to use a directory. Released when dropped, and when the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: Option<File>,
}

impl Lock {
    /// Creates the directory if it does not exist, and locks it for writing.
    pub(crate) fn take(directory: &Path) -> Result<Self, OpenError> {
        let name = directory.display();
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(DIRECTORY_MODE);
        builder.create(directory).map_err(OpenError::io(format!("cannot create {name}")))?;
        check_mode(directory)?;
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
        let file = options.open(directory.join(FILE));
        let file = file.map_err(OpenError::io(format!("cannot open {name}/{FILE}")))?;
        let result = file.try_lock();
        Self::taken(directory, file, result)
    }

    /// Locks a directory for reading, shared with other readers.
    ///
    /// A directory without a lock file was never used, or is a copy: it needs no lock.
    pub(crate) fn share(directory: &Path) -> Result<Self, OpenError> {
        let name = directory.display();
        fs::read_dir(directory).map_err(OpenError::io(format!("cannot read {name}")))?;
        match File::open(directory.join(FILE)) {
            Ok(file) => {
                let result = file.try_lock_shared();
                Self::taken(directory, file, result)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self { _file: None }),
            Err(error) => Err(OpenError::io(format!("cannot open {name}/{FILE}"))(error)),
        }
    }

    fn taken(
        directory: &Path,
        file: File,
        result: Result<(), TryLockError>,
    ) -> Result<Self, OpenError> {
        let directory = directory.display().to_string();
        match result {
            Ok(()) => Ok(Self { _file: Some(file) }),
            Err(TryLockError::WouldBlock) => Err(OpenError::Locked { directory }),
            Err(TryLockError::Error(error)) => {
                Err(OpenError::io(format!("cannot lock {directory}/{FILE}"))(error))
            }
        }
    }
}

/// A user who can write there could forge messages and sessions.
fn check_mode(directory: &Path) -> Result<(), OpenError> {
    let name = directory.display().to_string();
    let metadata = fs::metadata(directory);
    let metadata =
        metadata.map_err(OpenError::io(format!("cannot read the permissions of {name}")))?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & OTHERS_WRITE != 0 {
        return Err(OpenError::Writable { directory: name, mode });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_created_for_its_owner_alone() {
        let outer = tempfile::tempdir().expect("a directory");
        let directory = outer.path().join("a/b");
        let _lock = Lock::take(&directory).expect("made and taken");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(mode(&directory.join(FILE)), 0o600);
    }

    #[test]
    fn a_second_broker_is_refused_until_the_first_ends() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = Lock::take(directory.path()).expect("taken");
        let error = Lock::take(directory.path()).expect_err("in use");
        assert!(matches!(error, OpenError::Locked { .. }));
        let name = directory.path().display().to_string();
        assert!(error.to_string().contains(&name), "{error}");
        assert!(matches!(Lock::share(directory.path()), Err(OpenError::Locked { .. })));
        drop(first);
        Lock::take(directory.path()).expect("free again");
    }

    #[test]
    fn several_processes_may_read_a_directory_without_a_writer() {
        let directory = tempfile::tempdir().expect("a directory");
        Lock::share(directory.path()).expect("never used");
        drop(Lock::take(directory.path()).expect("taken"));
        let _one = Lock::share(directory.path()).expect("to read");
        let _two = Lock::share(directory.path()).expect("to read");
        assert!(matches!(Lock::take(directory.path()), Err(OpenError::Locked { .. })));
        assert!(Lock::share(&directory.path().join("none")).is_err());
    }

    #[test]
    fn a_directory_that_others_can_write_is_refused() {
        for mode in [0o770, 0o702, 0o777] {
            let directory = tempfile::tempdir().expect("a directory");
            let permissions = fs::Permissions::from_mode(mode);
            fs::set_permissions(directory.path(), permissions).expect("changed");
            let error = Lock::take(directory.path()).expect_err("writable by others");
            assert!(error.to_string().contains("chmod go-w"), "{error}");
            assert!(error.to_string().contains(&format!("{mode:o}")), "{error}");
        }
    }
}
