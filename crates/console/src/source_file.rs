//! The scenario file of a ladder, a search or a comparison, as the run began: `source.json` in its
//! directory. The record itself has the scenarios of the steps only, which cannot be put together
//! again.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::regular;
use crate::whole_file::write_whole;

/// Name of the file.
const FILE: &str = "source.json";
/// A larger file was written by another program.
const BYTES_MAX: u64 = 64 << 20;

/// A scenario file or plan that runs are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// Where it was, with its whole path.
    path: PathBuf,
    /// What it said; absent where it has passwords, which are in no record.
    #[serde(default)]
    text: Option<String>,
}

impl SourceFile {
    /// The file at `path` with its text, unless that is to be kept nowhere.
    pub fn new(path: &Path, text: Option<String>) -> Self {
        Self { path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()), text }
    }

    /// Writes it into a run's directory.
    ///
    /// # Errors
    /// When the directory cannot be written to.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        write_whole(&directory.join(FILE), &serde_json::to_vec_pretty(self)?)
    }

    /// That of the run in `directory`; none where its scenario is no file, or of a single run.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let text = regular::read(&directory.join(FILE), BYTES_MAX).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Where it was.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What it said.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_comes_back_with_its_whole_path() {
        let place = tempfile::tempdir().expect("a folder");
        assert_eq!(SourceFile::read(place.path()), None);
        let source = SourceFile::new(Path::new("own.toml"), Some("a = 1".to_owned()));
        source.write(place.path()).expect("writes");
        assert_eq!(SourceFile::read(place.path()), Some(source.clone()));
        assert!(source.path().is_absolute() && source.path().ends_with("own.toml"));
        assert_eq!(source.text(), Some("a = 1"));
    }
}
