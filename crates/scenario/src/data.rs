//! Files that a scenario names: bytes and tables.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::rows::Rows;

/// A file as it was when the scenario was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its content.
    pub bytes: Arc<[u8]>,
}

/// A CSV file with named columns.
#[derive(Clone, PartialEq, Eq)]
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
    /// Reads a CSV file whose columns are named by its first line, or by `how`.
    ///
    /// # Errors
    /// A sentence, when it cannot be read, has no rows, or rows of different lengths.
    pub fn read(path: &Path, how: &Rows) -> Result<Self, String> {
        let DataFile { bytes, .. } = DataFile::read(path)?;
        let broken = |error: csv::Error| format!("'{}' is not CSV: {error}", path.display());
        let named = how.columns.is_empty();
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::Headers)
            .delimiter(how.delimiter)
            .has_headers(named)
            // Lines that are no rows may have another form.
            .flexible(how.skip > 0)
            .from_reader(&*bytes);
        let cells = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
        let columns: Vec<String> = match named {
            true => cells(reader.headers().map_err(broken)?),
            false => how.columns.clone(),
        };
        let rows: Vec<Vec<String>> = reader
            .records()
            .skip(how.skip as usize)
            .map(|record| record.map(|record| cells(&record)).map_err(broken))
            .collect::<Result<_, String>>()?;
        let path_shown = path.display();
        if rows.is_empty() {
            let below = if named { "below its line of names" } else { "in it" };
            return Err(format!("'{path_shown}' has no row {below}"));
        }
        if let Some(at) = rows.iter().position(|row| row.len() < columns.len()) {
            return Err(format!(
                "row {} of '{path_shown}' has {} cells for {} columns",
                at + 1,
                rows[at].len(),
                columns.len()
            ));
        }
        Ok(Self { path: path.to_owned(), columns: columns.into(), rows: rows.into() })
    }

    /// The number of the column called `name`.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// A cell that exists and is not empty.
    pub fn cell(&self, row: u64, column: &str) -> Option<&str> {
        let row = self.rows.get(usize::try_from(row).ok()?)?;
        let cell = row.get(self.column(column)?)?;
        (!cell.is_empty()).then_some(cell.as_str())
    }
}

/// Never the cells: some tables hold passwords.
impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = f.debug_struct("Table");
        table.field("path", &self.path).field("rows", &self.rows.len()).finish_non_exhaustive()
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
