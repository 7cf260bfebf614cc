//! The file of the audit log: appended to, and replaced when it is full.

use std::io;
use std::path::PathBuf;

use crate::line_file::{LineFile, LineFileOptions, StuckFile};

/// A file that lines are appended to. One that is full is renamed to the same name with `.1`, in
/// place of an earlier one.
#[derive(Debug)]
pub(crate) struct AuditFile {
    file: LineFile,
    /// An error was logged, and nothing was written since.
    is_failing: bool,
}

impl AuditFile {
    /// # Errors
    /// The file cannot be opened or created, or is no ordinary file.
    pub(crate) fn open(path: PathBuf, bytes_max: u64) -> io::Result<Self> {
        let stuck = StuckFile::Stops;
        let options = LineFileOptions { bytes_max, files_max: 2, mode: 0o600, stuck };
        Ok(Self { file: LineFile::open(path, options)?, is_failing: false })
    }

    /// Opens the file anew with the next line: it may have been moved away.
    pub(super) fn reopen(&mut self) {
        self.file.close();
    }

    /// Appends a line; false if it cannot be written, which is logged once.
    pub(super) fn write(&mut self, line: &str) -> bool {
        let result = self.file.append(line.as_bytes());
        let path = self.file.path().display();
        match result {
            Ok(()) => {
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!("the audit log {path} is written again");
                }
                true
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::error!("the audit log {path} cannot be written: {error}");
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use tempfile::TempDir;

    use super::*;

    /// Where a full file goes.
    fn predecessor(path: &Path) -> PathBuf {
        path.with_file_name("audit.1")
    }

    #[test]
    fn a_full_file_makes_room_and_one_predecessor_stays() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("audit");
        let mut file = AuditFile::open(path.clone(), 8).expect("opens");
        for line in ["aaa\n", "bbb\n", "ccc\n", "ddd\n", "longer than a file\n"] {
            assert!(file.write(line));
        }
        assert_eq!(fs::read_to_string(predecessor(&path)).expect("is there"), "ccc\nddd\n");
        assert_eq!(fs::read_to_string(&path).expect("is there"), "longer than a file\n");
        assert_eq!(fs::read_dir(folder.path()).expect("is there").count(), 2);
    }

    #[test]
    fn a_line_that_was_torn_does_not_spoil_the_next() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("audit");
        fs::write(&path, "half of a li").expect("writes");
        let mut file = AuditFile::open(path.clone(), 1_000).expect("opens");
        assert!(file.write("next\n"));
        assert_eq!(fs::read_to_string(&path).expect("is there"), "half of a li\nnext\n");
    }

    #[test]
    fn a_file_that_was_moved_away_is_made_again() {
        let folder = TempDir::new().expect("a folder");
        let (path, moved) = (folder.path().join("audit"), folder.path().join("moved"));
        let mut file = AuditFile::open(path.clone(), 1_000).expect("opens");
        assert!(file.write("a\n"));
        fs::rename(&path, &moved).expect("is there");
        file.reopen();
        assert!(file.write("b\n"));
        assert_eq!(fs::read_to_string(&moved).expect("is there"), "a\n");
        assert_eq!(fs::read_to_string(&path).expect("is there"), "b\n");
        // In its place is something else for a while.
        fs::remove_file(&path).expect("is there");
        fs::create_dir(&path).expect("is new");
        file.reopen();
        assert!(!file.write("c\n"));
        fs::remove_dir(&path).expect("is there");
        assert!(file.write("d\n"));
        assert_eq!(fs::read_to_string(&path).expect("is there"), "d\n");
        assert!(AuditFile::open(folder.path().to_owned(), 1_000).is_err());
    }
}
