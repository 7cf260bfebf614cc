//! Documents about the same workloads with several brokers: what `cargo xtask results` collects,
//! as Markdown and pictures, with what others have published beside it.
//!
//! The documents are a function of the record and of nothing else.

mod bifromq;
mod command;
mod curve;
mod dots;
mod guide;
mod nearest;
mod picture;
mod record;
mod sheet;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

pub(crate) use command::{Options, run};
use record::{Results, ResultsError};

/// What is written about a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Documents {
    /// Names and texts of the files.
    pub(crate) files: Vec<(String, String)>,
    /// The best of it, for the README of the repository.
    pub(crate) summary: String,
}

impl Documents {
    /// Writes about `results`.
    pub(crate) fn of(results: &Results) -> Self {
        match results.suite.as_str() {
            "bifromq" => bifromq::documents(results),
            _ => guide::documents(results),
        }
    }

    /// Puts all files into `folder`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), ResultsError> {
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            |error| ResultsError::File { path, error }
        };
        fs::create_dir_all(folder).map_err(failed(folder))?;
        for (name, text) in &self.files {
            let path = folder.join(name);
            fs::write(&path, text).map_err(failed(&path))?;
        }
        Ok(())
    }
}
