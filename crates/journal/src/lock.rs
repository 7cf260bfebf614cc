//! One process per data directory, and no other user can write there.
//!
//! Two locks keep a second process out: one on the directory itself, which cannot be removed
//! without the data, and one on the file `lock`, for file systems that cannot lock directories
//! (NFS) and for versions that know no other. While the journal is open, the commit thread looks
//! whether the path still leads to the locked directory and the locked file: what is committed
//! elsewhere would be missing after a restart, and another process may be at work there.

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags, openat, stat, statat};

use crate::error::OpenError;
use crate::storage::{DIRECTORY_MODE, FILE_MODE};

/// Locked by the process that uses the directory. It is empty and never removed.
const FILE: &str = "lock";

/// Group and others may write.
const OTHERS_WRITE: u32 = 0o022;

/// The right to use a directory. Released when dropped, and when the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    directory: File,
    place: FileId,
    /// The directory itself is locked, and not only the file.
    holds_directory: bool,
    /// None where a directory is read that never had one.
    file: Mutex<Option<LockFile>>,
}

#[derive(Debug)]
struct LockFile {
    place: FileId,
    _file: File,
}

/// What tells a file or directory from every other one of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

/// Whether the directory is still what was locked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Custody {
    /// It is.
    Kept,
    /// The file `lock` was removed or replaced; it is there again and locked.
    Mended,
    /// Its path leads elsewhere, or another process may use it.
    Displaced(String),
}

impl Lock {
    /// Creates the directory if it does not exist, and locks it for writing.
    pub(crate) fn take(directory: &Path) -> Result<Self, OpenError> {
        let name = directory.display();
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(DIRECTORY_MODE);
        builder.create(directory).map_err(OpenError::io(format!("cannot create {name}")))?;
        let lock = Self::of(directory)?;
        check_mode(directory, &lock.directory)?;
        // The directory first: a process that is refused must not make a file in it.
        let holds_directory = lock.taken(lock.directory.try_lock(), true)?;
        let lock = Self { holds_directory, ..lock };
        let file = open_lock_file(&lock.directory);
        let file = file.map_err(OpenError::io(format!("cannot open {name}/{FILE}")))?;
        lock.taken(file.try_lock(), false)?;
        lock.keep(file)
    }

    /// Locks a directory for reading, shared with other readers.
    ///
    /// A directory without a lock file was never used, or is a copy.
    pub(crate) fn share(directory: &Path) -> Result<Self, OpenError> {
        let name = directory.display();
        let lock = Self::of(directory)?;
        lock.taken(lock.directory.try_lock_shared(), true)?;
        match openat(&lock.directory, FILE, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => {
                let file = File::from(file);
                lock.taken(file.try_lock_shared(), false)?;
                lock.keep(file)
            }
            Err(rustix::io::Errno::NOENT) => Ok(lock),
            Err(error) => Err(OpenError::io(format!("cannot open {name}/{FILE}"))(error.into())),
        }
    }

    /// The locked directory.
    pub(crate) const fn directory(&self) -> &File {
        &self.directory
    }

    /// Looks whether the directory is still what was locked: two calls of `stat`.
    pub(crate) fn custody(&self) -> Custody {
        let name = self.path.display();
        match stat(&self.path).map(FileId::from_stat) {
            Ok(place) if place == self.place => {}
            Ok(_) => return Custody::Displaced(format!("{name} is another directory by now")),
            Err(error) => return Custody::Displaced(format!("{name} cannot be found: {error}")),
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let place = statat(&self.directory, FILE, AtFlags::empty()).map(FileId::from_stat);
        match (place, &*file) {
            (Ok(place), Some(held)) if place == held.place => Custody::Kept,
            (_, None) => Custody::Kept,
            _ if !self.holds_directory => Custody::Displaced(format!(
                "{name}/{FILE} was removed or replaced, and the file system cannot lock directories"
            )),
            _ => match self.lock_again() {
                Ok(again) => {
                    *file = Some(again);
                    Custody::Mended
                }
                Err(why) => Custody::Displaced(format!("{name}/{FILE} was removed, and {why}")),
            },
        }
    }

    /// Makes and locks the file again: the directory is locked, so that no other process of this
    /// version has been here.
    fn lock_again(&self) -> Result<LockFile, String> {
        let file = open_lock_file(&self.directory)
            .map_err(|error| format!("it cannot be made again: {error}"))?;
        file.try_lock().map_err(|_| "another process has locked a new one".to_owned())?;
        LockFile::new(file).map_err(|error| format!("it cannot be made again: {error}"))
    }

    /// An open directory, not locked yet.
    fn of(path: &Path) -> Result<Self, OpenError> {
        let what = || format!("cannot read {}", path.display());
        // The working directory may change.
        let path = std::path::absolute(path).map_err(OpenError::io(what()))?;
        let directory = File::open(&path).map_err(OpenError::io(what()))?;
        let place = FileId::of(&directory).map_err(OpenError::io(what()))?;
        if !directory.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            let error = io::Error::from(io::ErrorKind::NotADirectory);
            return Err(OpenError::io(what())(error));
        }
        let file = Mutex::new(None);
        Ok(Self { path, directory, place, holds_directory: false, file })
    }

    fn keep(self, file: File) -> Result<Self, OpenError> {
        let what = format!("cannot read {}/{FILE}", self.path.display());
        let file = LockFile::new(file).map_err(OpenError::io(what))?;
        Ok(Self { file: Mutex::new(Some(file)), ..self })
    }

    /// Whether a lock was taken. That of a directory may be unknown to the file system.
    fn taken(
        &self,
        result: Result<(), TryLockError>,
        is_directory: bool,
    ) -> Result<bool, OpenError> {
        let directory = self.path.display().to_string();
        match result {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Err(OpenError::Locked { directory }),
            Err(TryLockError::Error(error)) if is_directory => {
                tracing::warn!(
                    %error,
                    directory,
                    "the file system cannot lock directories: only the file `lock` keeps others out"
                );
                Ok(false)
            }
            Err(TryLockError::Error(error)) => {
                Err(OpenError::io(format!("cannot lock {directory}/{FILE}"))(error))
            }
        }
    }
}

impl LockFile {
    fn new(file: File) -> io::Result<Self> {
        Ok(Self { place: FileId::of(&file)?, _file: file })
    }
}

impl FileId {
    fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }

    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    const fn from_stat(stat: rustix::fs::Stat) -> Self {
        Self { device: stat.st_dev as u64, inode: stat.st_ino as u64 }
    }
}

fn open_lock_file(directory: &File) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
    Ok(openat(directory, FILE, flags, Mode::from_raw_mode(FILE_MODE))?.into())
}

/// A user who can write there could forge messages and sessions.
fn check_mode(path: &Path, directory: &File) -> Result<(), OpenError> {
    let name = path.display().to_string();
    let metadata = directory.metadata();
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
    use std::fs;

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
    fn a_removed_lock_file_lets_no_second_broker_in_and_is_made_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join(FILE);
        let lock = Lock::take(directory.path()).expect("taken");
        assert_eq!(lock.custody(), Custody::Kept);
        fs::remove_file(&file).expect("removed");
        assert!(matches!(Lock::take(directory.path()), Err(OpenError::Locked { .. })));
        assert!(matches!(Lock::share(directory.path()), Err(OpenError::Locked { .. })));
        assert!(!file.exists(), "who is refused leaves nothing");
        assert_eq!(lock.custody(), Custody::Mended);
        assert_eq!(lock.custody(), Custody::Kept);
        let made = File::open(&file).expect("made again");
        assert!(matches!(made.try_lock(), Err(TryLockError::WouldBlock)), "and locked");
        // A former version knows only the file.
        fs::remove_file(&file).expect("removed");
        let other = File::create(&file).expect("made");
        other.try_lock().expect("locked");
        let Custody::Displaced(why) = lock.custody() else { panic!("another process is here") };
        assert!(why.contains("another process"), "{why}");
        drop(other);
        assert_eq!(lock.custody(), Custody::Mended);
    }

    #[test]
    fn where_directories_cannot_be_locked_a_removed_lock_file_is_not_forgiven() {
        let directory = tempfile::tempdir().expect("a directory");
        let lock = Lock::take(directory.path()).expect("taken");
        lock.directory.unlock().expect("unlocked");
        let lock = Lock { holds_directory: false, ..lock };
        assert_eq!(lock.custody(), Custody::Kept);
        fs::remove_file(directory.path().join(FILE)).expect("removed");
        // A second one may have come, and gone.
        drop(Lock::take(directory.path()).expect("nothing keeps it out"));
        for _ in 0..2 {
            assert!(matches!(lock.custody(), Custody::Displaced(_)));
        }
    }

    #[test]
    fn a_directory_that_was_moved_or_removed_is_noticed() {
        let outer = tempfile::tempdir().expect("a directory");
        let (path, away) = (outer.path().join("data"), outer.path().join("away"));
        let lock = Lock::take(&path).expect("taken");
        fs::rename(&path, &away).expect("moved");
        let Custody::Displaced(why) = lock.custody() else { panic!("it is gone") };
        assert!(why.contains("data cannot be found"), "{why}");
        let second = Lock::take(&path).expect("another directory");
        let Custody::Displaced(why) = lock.custody() else { panic!("it was replaced") };
        assert!(why.contains("data is another directory"), "{why}");
        assert_eq!(second.custody(), Custody::Kept);
        fs::remove_dir_all(&path).expect("removed");
        fs::rename(&away, &path).expect("moved back");
        assert_eq!(lock.custody(), Custody::Kept);
        assert!(matches!(second.custody(), Custody::Displaced(_)));
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
