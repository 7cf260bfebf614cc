//! What a run is doing.

use serde::{Deserialize, Serialize};

/// What a run is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunState {
    /// It waits for its turn.
    Queued,
    /// It goes on.
    Running,
    /// It has a record.
    Finished,
    /// It was taken out of the queue.
    Canceled,
    /// It has no record that can be read, and does not go on.
    #[default]
    Broken,
}
