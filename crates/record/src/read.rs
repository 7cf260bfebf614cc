//! Records, read back.

use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::comparison::Comparison;
use crate::run::RunRecord;
use crate::version::SCHEMA_VERSION;

/// A larger file is none of ours.
const BYTES_MAX: u64 = 256 << 20;

/// A file of a run directory that could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file does not have the format of its name.
    #[error("{} is damaged or of another version: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        source: serde_json::Error,
    },
    /// Written by a later version.
    #[error(
        "{} was written by a later version: its form is {version}, this program knows {ours}",
        path.display()
    )]
    Newer {
        /// The directory.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The newest one known.
        ours: u32,
    },
}

/// The record in the run directory `path`; `None` where there is none.
///
/// # Errors
/// When it cannot be read, is damaged, or was written by a later version.
pub fn read_record(path: &Path) -> Result<Option<RunRecord>, ReadError> {
    let record: Option<RunRecord> = read_json(&path.join("summary.json"))?;
    let newer = |record: &&RunRecord| record.schema_version > SCHEMA_VERSION;
    if let Some(record) = record.as_ref().filter(newer) {
        let (path, version) = (path.to_owned(), record.schema_version);
        return Err(ReadError::Newer { path, version, ours: SCHEMA_VERSION });
    }
    Ok(record)
}

/// The record of a comparison in the directory `path`; `None` where there is none.
///
/// # Errors
/// When it cannot be read, is damaged, or was written by a later version.
pub fn read_comparison(path: &Path) -> Result<Option<Comparison>, ReadError> {
    let comparison: Option<Comparison> = read_json(&path.join("comparison.json"))?;
    let newer = |one: &&Comparison| one.schema_version > SCHEMA_VERSION;
    match comparison.as_ref().filter(newer) {
        None => Ok(comparison),
        Some(newer) => {
            let (path, version) = (path.to_owned(), newer.schema_version);
            Err(ReadError::Newer { path, version, ours: SCHEMA_VERSION })
        }
    }
}

/// A file of JSON; `None` where there is none.
///
/// # Errors
/// When it cannot be read, or is not of this form.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ReadError> {
    let unreadable = |source| ReadError::Unreadable { path: path.to_owned(), source };
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
        Ok(about) if about.len() > BYTES_MAX => {
            return Err(unreadable(std::io::Error::other("it is too large for one of ours")));
        }
        Ok(_) => {}
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|source| ReadError::Damaged { path: path.to_owned(), source })
}
