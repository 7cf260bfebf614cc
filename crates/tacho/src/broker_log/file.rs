//! A log file that is renamed when it is large, and opened anew when it was moved away.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tacho_broker::{LineFile, LineFileOptions, StuckFile};

/// Readable for the owner and the group only: lines name clients and users.
const MODE: u32 = 0o640;

/// A log file. Clones are the same file.
#[derive(Clone)]
pub(super) struct LogFile(Arc<Mutex<OpenLog>>);

struct OpenLog {
    file: LineFile,
    /// Standard error has been told that it cannot be written.
    has_failed: bool,
}

impl LogFile {
    /// Opens the file, which is made if it is missing.
    pub(super) fn open(path: &Path, bytes_max: u64, files_max: usize) -> io::Result<Self> {
        // Where others rename the file, this program may not.
        let stuck = StuckFile::Grows;
        let options = LineFileOptions { bytes_max, files_max, mode: MODE, stuck };
        let file = LineFile::open(path.to_owned(), options)?;
        Ok(Self(Arc::new(Mutex::new(OpenLog { file, has_failed: false }))))
    }

    /// Opens it anew: it may have been moved away, as by logrotate.
    pub(super) fn reopen(&self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).file.reopen()
    }
}

impl Write for LogFile {
    /// What cannot be written is dropped: there is no other place to say it than standard error.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let result = open.file.append(line);
        let had_failed = std::mem::replace(&mut open.has_failed, result.is_err());
        if let (Err(error), false) = (result, had_failed) {
            eprintln!("cannot write to the log file {}: {error}", open.file.path().display());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap_or_default()
    }

    #[test]
    fn a_large_file_is_renamed_and_the_oldest_one_removed() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("log");
        let mut log = LogFile::open(&path, 10, 3).expect("opens");
        for line in ["one one\n", "two two\n", "three 3\n", "four 4\n", "5\n"] {
            log.write_all(line.as_bytes()).expect("never fails");
        }
        let kept = ["log", "log.1", "log.2"].map(|name| text(&folder.path().join(name)));
        assert_eq!(kept, ["four 4\n5\n", "three 3\n", "two two\n"]);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 3);
        // What is there counts when it is opened.
        let mut log = LogFile::open(&path, 10, 1).expect("opens");
        log.write_all(b"six\n").expect("never fails");
        assert_eq!(text(&path), "six\n");
        assert_eq!(text(&folder.path().join("log.1")), "three 3\n");
    }

    #[test]
    fn a_file_that_was_moved_away_is_opened_anew() {
        let folder = TempDir::new().expect("a folder");
        let (path, moved) = (folder.path().join("log"), folder.path().join("moved"));
        let mut log = LogFile::open(&path, 1_000, 5).expect("opens");
        log.write_all(b"one\n").expect("never fails");
        log.reopen().expect("opens");
        fs::rename(&path, &moved).expect("moves");
        log.write_all(b"two\n").expect("never fails");
        log.reopen().expect("opens");
        log.write_all(b"three\n").expect("never fails");
        assert_eq!((&*text(&moved), &*text(&path)), ("one\ntwo\n", "three\n"));
        fs::remove_file(&path).expect("removes");
        fs::create_dir(&path).expect("makes");
        assert!(log.reopen().is_err());
        log.write_all(b"four\n").expect("never fails");
    }
}
