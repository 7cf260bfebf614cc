//! Files that a scenario names: bytes and tables.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// A file as it was when the scenario was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Where it is.
    pub path: PathBuf,
    /// What is in it.
    pub bytes: Arc<[u8]>,
}

/// A CSV file with named columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Where it is.
    pub path: PathBuf,
    /// Names from its first line.
    pub columns: Arc<[String]>,
    /// A cell per column.
    pub rows: Arc<[Vec<String>]>,
}

impl DataFile {
    /// Reads a file.
    ///
    /// # Errors
    /// A sentence, when it cannot be read.
    pub fn read(path: &Path) -> Result<Self, String> {
        let bytes = std::fs::read(path)
            .map_err(|error| format!("cannot read '{}': {error}", path.display()))?;
        Ok(Self { path: path.to_owned(), bytes: bytes.into() })
    }
}

impl Table {
    /// Reads a CSV file whose first line names its columns.
    ///
    /// # Errors
    /// A sentence, when it cannot be read, has no rows, or rows of different lengths.
    pub fn read(path: &Path) -> Result<Self, String> {
        let DataFile { bytes, .. } = DataFile::read(path)?;
        let broken = |error: csv::Error| format!("'{}' is not CSV: {error}", path.display());
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::Headers).from_reader(&*bytes);
        let cells = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
        let columns: Vec<String> = cells(reader.headers().map_err(broken)?);
        let rows: Vec<Vec<String>> = reader
            .records()
            .map(|record| record.map(|record| cells(&record)).map_err(broken))
            .collect::<Result<_, String>>()?;
        if rows.is_empty() {
            return Err(format!("'{}' has no row below its line of names", path.display()));
        }
        Ok(Self { path: path.to_owned(), columns: columns.into(), rows: rows.into() })
    }

    /// The number of the column called `name`.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// A cell that is there and not empty.
    pub fn cell(&self, row: u64, column: &str) -> Option<&str> {
        let row = self.rows.get(usize::try_from(row).ok()?)?;
        let cell = row.get(self.column(column)?)?;
        (!cell.is_empty()).then_some(cell.as_str())
    }
}

impl Serialize for DataFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.path.display())
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.path.display())
    }
}
