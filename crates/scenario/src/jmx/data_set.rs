//! Rows of a file, one for each client, as a plan declares them.

/// The columns that describe a client, by their names in scenarios.
pub(super) const COLUMNS: [&str; 3] = ["client_id", "username", "password"];

/// A file with a row for each client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DataSet {
    /// The file, as the plan names it.
    pub(super) file: String,
    /// Variables that its columns define.
    pub(super) columns: Vec<String>,
    pub(super) delimiter: char,
    /// The first line is no row.
    pub(super) has_head: bool,
    pub(super) share: Share,
    /// Rows that each thread has for itself.
    pub(super) every: u32,
    /// Rows that each load machine has for itself.
    pub(super) per_machine: Option<u32>,
    /// Begin again behind the last row.
    pub(super) recycle: bool,
}

/// Which threads share the rows of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// All threads: no two of them get the same row.
    All,
    /// Each thread group begins with the first row.
    Group,
    /// Each thread begins with the first row.
    Thread,
}
