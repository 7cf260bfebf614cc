//! TOML files of access control: parsed with a bound, and refused with the line that is wrong.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;

use crate::file::FileError;

/// What the parser takes is a multiple of the text.
const TEXT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Parses a text; `path` is for errors.
pub(crate) fn parse_text<T: DeserializeOwned>(path: &str, text: &str) -> Result<T, FileError> {
    if text.len() > TEXT_BYTES_MAX {
        let mib = TEXT_BYTES_MAX / (1024 * 1024);
        return Err(FileError::whole(path, format!("it is larger than {mib} MiB")));
    }
    toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        FileError::at(path, line_of(text, &span), error.message())
    })
}

/// What is wrong with an entry, and where.
pub(crate) struct Wrong {
    /// Absent: the entry as a whole.
    at: Option<Range<usize>>,
    what: String,
}

impl Wrong {
    pub(crate) fn of<T>(value: &Spanned<T>, what: impl Into<String>) -> Self {
        Self { at: Some(value.span()), what: what.into() }
    }

    pub(crate) fn whole(what: impl Into<String>) -> Self {
        Self { at: None, what: what.into() }
    }

    /// The error; `entry` is where the entry stands.
    pub(crate) fn in_file(self, path: &str, text: &str, entry: &Range<usize>) -> FileError {
        let span = self.at.as_ref().unwrap_or(entry);
        FileError::at(path, line_of(text, span), self.what)
    }
}

pub(crate) fn line_of(text: &str, span: &Range<usize>) -> usize {
    let before = text.as_bytes().iter().take(span.start);
    before.filter(|&&byte| byte == b'\n').count() + 1
}
