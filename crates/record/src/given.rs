//! What the user says about a run.

use serde::{Deserialize, Serialize};

/// Name and note of a run, from `--name` and `--note`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Given {
    /// Its name; empty without one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// A note on it; empty without one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Given {
    /// Neither a name nor a note.
    pub const fn is_empty(&self) -> bool {
        self.name.is_empty() && self.note.is_empty()
    }
}
