//! The file of the audit log: appended to, and replaced when it is full.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// A file that lines are appended to. One that is full is renamed to the same name with `.1`, in
/// place of an earlier one.
#[derive(Debug)]
pub(crate) struct AuditFile {
    path: PathBuf,
    bytes_max: u64,
    /// Absent after an error.
    open: Option<OpenFile>,
    /// An error was logged, and nothing was written since.
    is_failing: bool,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    bytes: u64,
    /// The last line is not whole.
    is_torn: bool,
}

impl AuditFile {
    /// # Errors
    /// The file cannot be opened or created, or is no ordinary file.
    pub(crate) fn open(path: PathBuf, bytes_max: u64) -> io::Result<Self> {
        let open = Some(OpenFile::at(&path)?);
        Ok(Self { path, bytes_max, open, is_failing: false })
    }

    /// Opens the file anew with the next line: it may have been moved away.
    pub(super) fn reopen(&mut self) {
        self.open = None;
    }

    /// Appends a line; false if it cannot be written, which is logged once.
    pub(super) fn write(&mut self, line: &str) -> bool {
        match self.append(line) {
            Ok(()) => {
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!("the audit log {} is written again", self.path.display());
                }
                true
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    let path = self.path.display();
                    tracing::error!("the audit log {path} cannot be written: {error}");
                }
                false
            }
        }
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => OpenFile::at(&self.path)?,
        };
        if open.bytes > 0 && open.bytes + line.len() as u64 > self.bytes_max {
            std::fs::rename(&self.path, predecessor(&self.path))?;
            open = OpenFile::at(&self.path)?;
        }
        let result = open.append(line);
        self.open = Some(open);
        result
    }
}

impl OpenFile {
    fn at(path: &Path) -> io::Result<Self> {
        // A FIFO would be waited for.
        match std::fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => {
                return Err(io::Error::new(ErrorKind::InvalidInput, "it is no ordinary file"));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        let bytes = file.metadata()?.len();
        let mut last = [b'\n'];
        if bytes > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        Ok(Self { file, bytes, is_torn: last != [b'\n'] })
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        if self.is_torn {
            self.file.write_all(b"\n")?;
            (self.bytes, self.is_torn) = (self.bytes + 1, false);
        }
        self.is_torn = true;
        self.file.write_all(line.as_bytes())?;
        (self.bytes, self.is_torn) = (self.bytes + line.len() as u64, false);
        Ok(())
    }
}

/// Where a full file goes.
fn predecessor(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

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
