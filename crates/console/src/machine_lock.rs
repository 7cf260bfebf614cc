//! One load at a time on a machine: a lock that all programs of ours take which make load.
//!
//! It is a lock on a file, which the system releases with the process, and the file says for people
//! and for other programs which command has it.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::process::ProcessId;

/// Names another file, or with `none` no file.
const VARIABLE: &str = "TACHO_MACHINE_LOCK";
/// The file of the machine, the same for all users, with and without a session.
const DEFAULT: &str = "/tmp/tacho-machine.lock";
/// A larger file was written by another program.
const BYTES_MAX: usize = 64 << 10;
/// Time between two tries.
const TRY_EVERY: Duration = Duration::from_millis(100);
/// Tries before a lock counts as taken: a reader holds it for a moment.
const TRIES_MIN: usize = 5;

/// The program that has the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineHolder {
    /// Its process.
    #[serde(flatten)]
    pub process: ProcessId,
    /// Its command, without secrets.
    pub command: String,
    /// Where it was started.
    pub working_directory: String,
    /// Where its results go, once that is known.
    pub directory: Option<String>,
    /// Since when, RFC 3339 in UTC.
    pub since: String,
}

/// Why the machine could not be had.
#[derive(Debug, thiserror::Error)]
pub enum MachineLockError {
    /// The file cannot be used.
    #[error(
        "cannot lock {}, which keeps a second load off this machine: {error}; {VARIABLE} names \
         another file, or is 'none'", path.display()
    )]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another program has it, and waiting was given up.
    #[error("{0} has this machine")]
    Taken(Box<MachineHolder>),
}

/// The right to make load on this machine, given back on drop.
#[derive(Debug)]
pub struct MachineLock {
    /// Absent where no lock is taken.
    file: Option<File>,
    holder: MachineHolder,
}

impl MachineHolder {
    /// This process with its command.
    pub fn own(command: String, since: String) -> Self {
        let folder = std::env::current_dir().map(|folder| folder.display().to_string());
        Self {
            process: ProcessId::own(),
            command,
            working_directory: folder.unwrap_or_default(),
            directory: None,
            since,
        }
    }
}

impl fmt::Display for MachineHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.command.is_empty() {
            return f.write_str("another run");
        }
        let place = self.directory.as_ref().unwrap_or(&self.working_directory);
        write!(f, "'{}' (process {}, in {place}", self.command, self.process.pid)?;
        match self.since.is_empty() {
            true => f.write_str(")"),
            false => write!(f, ", since {})", self.since),
        }
    }
}

impl MachineLock {
    /// The file of the lock: what `TACHO_MACHINE_LOCK` names, else one for the whole machine. None
    /// with `none`, and for a program that was compiled without optimisation, whose figures are of
    /// no use and whose tests run side by side, unless a file is named.
    pub fn path() -> Option<PathBuf> {
        let named = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
        match named {
            Some(name) if name == "none" => None,
            Some(name) => Some(name.into()),
            None if cfg!(debug_assertions) => None,
            None => Some(DEFAULT.into()),
        }
    }

    /// Takes the lock on `path`, or none without one. While another program has it, `waits` is
    /// asked with that program; the answer `false` gives up. A program that the holder itself
    /// has started makes load on its behalf, and does not wait for it.
    ///
    /// # Errors
    /// When the file cannot be used, or waiting was given up.
    pub fn take(
        path: Option<&Path>,
        holder: MachineHolder,
        mut waits: impl FnMut(&MachineHolder) -> bool,
    ) -> Result<Self, MachineLockError> {
        let Some(path) = path else { return Ok(Self { file: None, holder }) };
        let failed = |error| MachineLockError::File { path: path.to_owned(), error };
        let mut tries = 0;
        loop {
            let file = open(path).map_err(failed)?;
            match file.try_lock() {
                // Otherwise the file was removed, and others lock another one.
                Ok(()) if is_at(&file, path) => {
                    let lock = Self { file: Some(file), holder };
                    lock.write().map_err(failed)?;
                    return Ok(lock);
                }
                Ok(()) => continue,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) => {}
            }
            tries += 1;
            let other = read(&file);
            if other.process.is_ancestor() {
                return Ok(Self { file: None, holder });
            }
            if tries >= TRIES_MIN && !waits(&other) {
                return Err(MachineLockError::Taken(Box::new(other)));
            }
            std::thread::sleep(TRY_EVERY);
        }
    }

    /// Tells others where the results go.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn tell_directory(&mut self, directory: &Path) -> io::Result<()> {
        let whole = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        self.holder.directory = Some(whole.display().to_string());
        self.write()
    }

    /// The program that has the lock on `path`; `None` while none has.
    pub fn holder(path: &Path) -> Option<MachineHolder> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(read(&file)),
            _ => None,
        }
    }

    fn write(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut text = serde_json::to_vec_pretty(&self.holder)?;
        text.push(b'\n');
        file.write_all_at(&text, 0)?;
        file.set_len(text.len() as u64)
    }
}

impl Drop for MachineLock {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // What stays says nothing either: the lock is free.
            let _ = file.set_len(0);
        }
    }
}

/// Opens the file, and makes it for all users where it is not there. The folder is writable for
/// all, so that a link is not followed, and nothing but a file of ours is opened.
fn open(path: &Path) -> io::Result<File> {
    let flags =
        OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => {
            let all_users = Mode::from_raw_mode(0o666);
            match rustix::fs::open(path, flags | OFlags::CREATE | OFlags::EXCL, all_users) {
                Ok(file) => {
                    // Whatever the mask of new files is here.
                    rustix::fs::fchmod(&file, all_users)?;
                    file
                }
                Err(rustix::io::Errno::EXIST) => rustix::fs::open(path, flags, Mode::empty())?,
                Err(error) => return Err(error.into()),
            }
        }
        opened => opened?,
    };
    let file = File::from(file);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Whether `path` still leads to `file`.
fn is_at(file: &File, path: &Path) -> bool {
    let same = |about: &fs::Metadata| (about.dev(), about.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(one), Ok(other)) => same(&one) == same(&other),
        _ => false,
    }
}

/// What the file says; nothing where it is just being written.
fn read(file: &File) -> MachineHolder {
    let mut text = vec![0; BYTES_MAX];
    let length = file.read_at(&mut text, 0).unwrap_or(0);
    text.truncate(length);
    serde_json::from_slice(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(command: &str) -> MachineHolder {
        // Of a process that does not exist: the test itself is the ancestor of nothing.
        let process = ProcessId { pid: u32::MAX, started_ticks: Some(1) };
        MachineHolder { process, ..MachineHolder::own(command.to_owned(), "now".to_owned()) }
    }

    #[test]
    fn a_second_program_is_told_who_has_the_machine() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("lock");
        assert_eq!(MachineLock::holder(&path), None);
        let mut first =
            MachineLock::take(Some(&path), holder("tacho run a"), |_| false).expect("is free");
        first.tell_directory(Path::new("/runs/1")).expect("writes");
        let seen = MachineLock::holder(&path).expect("is taken");
        assert_eq!(
            (seen.command.as_str(), seen.directory.as_deref()),
            ("tacho run a", Some("/runs/1"))
        );
        let mut asked = 0;
        let taken = MachineLock::take(Some(&path), holder("tacho run b"), |other| {
            asked += 1;
            assert_eq!(other, &seen);
            asked < 2
        });
        let error = taken.expect_err("is taken").to_string();
        assert_eq!(asked, 2);
        assert!(error.contains("'tacho run a'") && error.contains("/runs/1"), "{error}");
        drop(first);
        assert_eq!(MachineLock::holder(&path), None);
        let second = MachineLock::take(Some(&path), holder("tacho run b"), |_| false);
        assert_eq!(MachineLock::holder(&path).expect("is taken").command, "tacho run b");
        drop(second);
        assert_eq!(fs::metadata(&path).expect("stays").mode() & 0o777, 0o666);
    }

    #[test]
    fn a_lock_whose_file_was_removed_is_not_the_machines() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("lock");
        let first = MachineLock::take(Some(&path), holder("a"), |_| false).expect("is free");
        let mut waited = 0;
        let second = MachineLock::take(Some(&path), holder("b"), |_| {
            waited += 1;
            // A program that cleans up takes the file away, and the first one ends.
            let _ = fs::remove_file(&path);
            true
        });
        let _second = second.expect("another file");
        assert_eq!(waited, 1);
        assert_eq!(MachineLock::holder(&path).expect("is taken").command, "b");
        drop(first);
    }

    #[test]
    fn links_and_folders_are_refused() {
        let place = tempfile::tempdir().expect("a folder");
        let (file, link) = (place.path().join("file"), place.path().join("link"));
        fs::write(&file, "precious").expect("writes");
        std::os::unix::fs::symlink(&file, &link).expect("links");
        for odd in [&link, place.path()] {
            let error = MachineLock::take(Some(odd), holder("a"), |_| false).expect_err("is odd");
            assert!(error.to_string().contains(VARIABLE), "{error}");
        }
        assert_eq!(fs::read_to_string(&file).expect("reads"), "precious");
        assert!(MachineLock::take(None, holder("a"), |_| false).is_ok(), "without a lock");
    }
}
