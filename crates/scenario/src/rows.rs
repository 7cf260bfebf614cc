//! How the rows of a table are dealt out to clients.

use serde::{Serialize, Serializer};

use super::template::ClientPlace;

/// How a table of credentials is read, and which row a client gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rows {
    /// Names of the columns; empty where the first line of the file has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// The separator of two cells.
    #[serde(serialize_with = "as_text")]
    pub delimiter: u8,
    /// Lines in front that are no rows, where `columns` has the names.
    pub skip: u32,
    /// The row of the first client, from 0.
    pub first: u64,
    /// Rows from one client to the next; with 0 all have the same.
    pub every: u64,
    /// Rows of one load machine, 0 for all of them; otherwise all machines share the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_machine: Option<u64>,
    /// Begin again behind the last row.
    pub recycle: bool,
}

fn as_text<S: Serializer>(delimiter: &u8, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&char::from(*delimiter))
}

impl Default for Rows {
    /// A line of names, then a row for each client.
    fn default() -> Self {
        Self {
            columns: Vec::new(),
            delimiter: b',',
            skip: 0,
            first: 0,
            every: 1,
            per_machine: None,
            recycle: false,
        }
    }
}

impl Rows {
    /// Is nothing said about them?
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The row of a client, of a table with `count` of them. There may be no such row.
    pub(super) fn row_for(&self, place: ClientPlace, count: u64) -> u64 {
        let (before, number) = match self.per_machine {
            Some(rows) => (place.machine.saturating_mul(rows), place.index),
            None => (0, place.client),
        };
        let row = number.saturating_mul(self.every).saturating_add(before);
        let row = row.saturating_add(self.first);
        if self.recycle && count > 0 { row % count } else { row }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_dealt_out() {
        let rows = |rows: &Rows| -> Vec<u64> {
            (0..5).map(|client| rows.row_for(ClientPlace::new(client, 2), 6)).collect()
        };
        let plain = Rows::default();
        assert_eq!(rows(&plain), [0, 1, 2, 3, 4]);
        assert_eq!(rows(&Rows { first: 4, recycle: true, ..plain.clone() }), [4, 5, 0, 1, 2]);
        assert_eq!(rows(&Rows { every: 0, first: 2, ..plain.clone() }), [2; 5]);
        assert_eq!(rows(&Rows { every: 3, ..plain.clone() }), [0, 3, 6, 9, 12]);
        // Clients 0, 2 and 4 are on the first machine.
        assert_eq!(rows(&Rows { per_machine: Some(10), ..plain.clone() }), [0, 10, 1, 11, 2]);
        assert_eq!(rows(&Rows { per_machine: Some(0), ..plain }), [0, 0, 1, 1, 2]);
    }
}
