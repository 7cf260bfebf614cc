//! A file that lines are appended to, and that is renamed when it is full: the audit log, and the
//! log of the program.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Bounds of a [`LineFile`], and its permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineFileOptions {
    /// Size at which the file is renamed to the same name with `.1`, an earlier one to `.2` and so
    /// on, and a new one is begun.
    pub bytes_max: u64,
    /// Files that are kept, with the one that is written.
    pub files_max: usize,
    /// Permissions of a new file, where the system has such.
    pub mode: u32,
    /// What becomes of a full file that cannot be renamed.
    pub stuck: StuckFile,
}

/// What becomes of a full file that cannot be renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StuckFile {
    /// No line is written to it.
    Stops,
    /// It grows on, by its size before it is renamed again.
    Grows,
}

/// A file that lines are appended to.
#[derive(Debug)]
pub struct LineFile {
    path: PathBuf,
    options: LineFileOptions,
    /// Absent after an error.
    open: Option<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    bytes: u64,
    /// The last line is not whole.
    is_torn: bool,
}

impl LineFile {
    /// # Errors
    /// The file cannot be opened or created, or is no ordinary file.
    pub fn open(path: PathBuf, options: LineFileOptions) -> io::Result<Self> {
        let open = Some(OpenFile::at(&path, options.mode)?);
        Ok(Self { path, options, open })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file anew with the next line: it may have been moved away.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// Opens the file anew now.
    ///
    /// # Errors
    /// As [`LineFile::open`]; the file that was open stays.
    pub fn reopen(&mut self) -> io::Result<()> {
        self.open = Some(OpenFile::at(&self.path, self.options.mode)?);
        Ok(())
    }

    /// Appends a line.
    ///
    /// # Errors
    /// It cannot be written; the next one is tried again.
    pub fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => OpenFile::at(&self.path, self.options.mode)?,
        };
        if open.bytes > 0 && open.bytes + line.len() as u64 > self.options.bytes_max {
            open = match (self.rotated(), self.options.stuck) {
                (Ok(new), _) => new,
                (Err(error), StuckFile::Stops) => return Err(error),
                (Err(_), StuckFile::Grows) => OpenFile { bytes: 0, ..open },
            };
        }
        let result = open.append(line);
        self.open = Some(open);
        result
    }

    /// A new file in the place of the full one.
    fn rotated(&self) -> io::Result<OpenFile> {
        for number in (2..self.options.files_max).rev() {
            // Not all of them are there yet.
            let _ = fs::rename(self.numbered(number - 1), self.numbered(number));
        }
        match self.options.files_max {
            0 | 1 => fs::remove_file(&self.path)?,
            _ => fs::rename(&self.path, self.numbered(1))?,
        }
        OpenFile::at(&self.path, self.options.mode)
    }

    fn numbered(&self, number: usize) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    }
}

impl OpenFile {
    fn at(path: &Path, mode: u32) -> io::Result<Self> {
        // A FIFO would be waited for.
        match fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => {
                return Err(io::Error::new(ErrorKind::InvalidInput, "it is no ordinary file"));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
        #[cfg(not(unix))]
        let _ = mode;
        let mut file = options.open(path)?;
        let bytes = file.metadata()?.len();
        let mut last = [b'\n'];
        if bytes > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        Ok(Self { file, bytes, is_torn: last != [b'\n'] })
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.file.write_all(b"\n")?;
            (self.bytes, self.is_torn) = (self.bytes + 1, false);
        }
        self.is_torn = true;
        self.file.write_all(line)?;
        (self.bytes, self.is_torn) = (self.bytes + line.len() as u64, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_full_file_that_cannot_be_renamed_stops_or_grows() {
        for stuck in [StuckFile::Stops, StuckFile::Grows] {
            let folder = TempDir::new().expect("a folder");
            let path = folder.path().join("log");
            let options = LineFileOptions { bytes_max: 8, files_max: 2, mode: 0o600, stuck };
            let mut file = LineFile::open(path.clone(), options).expect("opens");
            // A folder with something in it is in the place of the predecessor.
            fs::create_dir_all(folder.path().join("log.1/x")).expect("makes");
            file.append(b"one one\n").expect("fits");
            assert_eq!(file.append(b"two\n").is_err(), stuck == StuckFile::Stops);
            let expected = ["one one\n", "one one\ntwo\n"][usize::from(stuck == StuckFile::Grows)];
            assert_eq!(fs::read_to_string(&path).expect("is there"), expected);
        }
    }
}
