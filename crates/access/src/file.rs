//! Files of access control: read with a bound, and refused with the line that is wrong.

use std::fmt;
use std::io::{self, Read as _};
use std::path::Path;

/// No file is larger: a million users with the longest hashes take less.
pub const FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Why a file cannot be used. Never shows a password or a hash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct FileError {
    path: String,
    line: Option<usize>,
    what: String,
}

impl FileError {
    pub(crate) fn at(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: Some(line), what: what.into() }
    }

    pub(crate) fn whole(path: &str, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, what: what.into() }
    }

    /// The line that is wrong, if it is one.
    pub const fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.what),
            None => write!(f, "{}: {}", self.path, self.what),
        }
    }
}

/// Reads a text file of at most [`FILE_BYTES_MAX`] bytes.
///
/// # Errors
/// It cannot be read, is larger, is no ordinary file, or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    let shown = path.display().to_string();
    let unreadable =
        |error: io::Error| FileError::whole(&shown, format!("cannot read it: {error}"));
    // A FIFO would be waited for, a device has no end.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(FileError::whole(&shown, "it is no ordinary file"));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let what = format!("it is larger than {} MiB", FILE_BYTES_MAX / (1024 * 1024));
        return Err(FileError::whole(&shown, what));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|&&byte| byte == b'\n').count() + 1;
        FileError::at(&shown, line, "the text is not UTF-8")
    })
}

/// Of a name or a filter in an error.
const CHARS_MAX: usize = 64;

/// What others chose, for errors: escaped and cut.
pub(crate) fn cut(text: &str) -> String {
    text.chars().take(CHARS_MAX).collect::<String>().escape_debug().to_string()
}

/// The same in backticks.
pub(crate) fn shown(text: &str) -> String {
    format!("`{}`", cut(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_file_the_line_and_the_problem() {
        let path = std::env::temp_dir().join(format!("tacho-access-{}", std::process::id()));
        std::fs::write(&path, b"a\nb\n\xff\n").expect("a temporary file");
        let error = read_text(&path).expect_err("not UTF-8");
        assert_eq!(error.line(), Some(3));
        assert_eq!(error.to_string(), format!("{}:3: the text is not UTF-8", path.display()));
        std::fs::remove_file(&path).expect("it was written");
        let error = read_text(&path).expect_err("it is gone").to_string();
        assert!(error.contains("cannot read it"), "{error}");
        let error = read_text(&std::env::temp_dir()).expect_err("a folder").to_string();
        assert!(error.contains("no ordinary file"), "{error}");
    }
}
