//! A log file that is renamed when it is large, and opened anew when it was moved away.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A log file. Clones are the same file.
#[derive(Clone)]
pub(super) struct LogFile(Arc<Mutex<OpenFile>>);

struct OpenFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
    files_max: usize,
    /// Standard error has been told that it cannot be written.
    has_failed: bool,
}

impl LogFile {
    /// Opens the file, which is made if it is missing.
    pub(super) fn open(path: &Path, bytes_max: u64, files_max: usize) -> io::Result<Self> {
        let file = append(path)?;
        let bytes = file.metadata()?.len();
        let path = path.to_owned();
        let open = OpenFile { path, file, bytes, bytes_max, files_max, has_failed: false };
        Ok(Self(Arc::new(Mutex::new(open))))
    }

    /// Opens it anew if another file, or none, has its name, as after logrotate.
    pub(super) fn reopen(&self) -> io::Result<()> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |named: fs::Metadata, own: fs::Metadata| {
            (named.dev(), named.ino()) == (own.dev(), own.ino())
        };
        let is_same = match (fs::metadata(&open.path), open.file.metadata()) {
            (Ok(named), Ok(own)) => same(named, own),
            _ => false,
        };
        if is_same { Ok(()) } else { open.begin_anew() }
    }
}

impl Write for LogFile {
    /// What cannot be written is dropped: there is no other place to say it than standard error.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.bytes > 0 && open.bytes + line.len() as u64 > open.bytes_max {
            open.rotate();
        }
        match open.file.write_all(line) {
            Ok(()) => (open.bytes, open.has_failed) = (open.bytes + line.len() as u64, false),
            Err(error) if !std::mem::replace(&mut open.has_failed, true) => {
                eprintln!("cannot write to the log file {}: {error}", open.path.display());
            }
            Err(_) => {}
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl OpenFile {
    /// Renames it to `.1`, the former one to `.2` and so on, and begins anew. Where that fails the
    /// same file goes on.
    fn rotate(&mut self) {
        for number in (1..self.files_max).rev() {
            let _ = fs::rename(self.numbered(number - 1), self.numbered(number));
        }
        if self.files_max == 1 {
            let _ = fs::remove_file(&self.path);
        }
        if self.begin_anew().is_err() {
            // Not at the next line again.
            self.bytes = 0;
        }
    }

    fn numbered(&self, number: usize) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        if number > 0 {
            name.push(format!(".{number}"));
        }
        name.into()
    }

    fn begin_anew(&mut self) -> io::Result<()> {
        let file = append(&self.path)?;
        self.bytes = file.metadata()?.len();
        self.file = file;
        Ok(())
    }
}

/// Readable for the owner and the group only: lines name clients and users.
fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o640).open(path)
}

#[cfg(test)]
mod tests {
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
