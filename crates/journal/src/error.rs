//! Errors of opening and reading a journal.

use std::io;

use thiserror::Error;

/// A journal cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory or a file in it cannot be used.
    #[error("{what}: {source}")]
    Io {
        /// The failed operation, with the file name.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// Another process uses the directory.
    #[error("{directory} is in use by another broker: stop that one, or choose another directory")]
    Locked {
        /// The directory.
        directory: String,
    },
    /// Other users can write to the directory.
    #[error(
        "{directory} can be written by other users (mode {mode:o}): \
         make it the broker's own with `chmod go-w {directory}`"
    )]
    Writable {
        /// The directory.
        directory: String,
        /// Its mode.
        mode: u32,
    },
    /// The directory contains no journal.
    #[error(
        "{directory} holds no journal: name the directory given to the broker as its data directory"
    )]
    NoJournal {
        /// The directory.
        directory: String,
    },
    /// The directory is a backup.
    #[error(
        "{directory} is a backup, whose files may belong to another directory as well: \
         `tacho journal restore {directory} DIR` makes a data directory of it"
    )]
    Backup {
        /// The directory.
        directory: String,
    },
    /// Written by a version of Tacho whose format this one does not know.
    #[error(
        "{file} has format {found}, this version reads and writes format {known}: \
         use the version of Tacho that wrote it, or another directory"
    )]
    Format {
        /// The segment.
        file: String,
        /// Its format.
        found: u16,
        /// The format of this version.
        known: u16,
    },
}

impl OpenError {
    /// For `map_err`: adds the failed operation.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// A message cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Its commit is not complete yet. Try again after the next one.
    #[error("the message is not committed yet")]
    NotYet,
    /// It was removed, or never existed.
    #[error("the message has been removed")]
    Gone,
    /// The disk returned other content than was written.
    #[error("the message is damaged on the disk")]
    Damaged,
    /// The disk cannot be read.
    #[error("the message cannot be read: {0}")]
    Io(#[from] io::Error),
}
