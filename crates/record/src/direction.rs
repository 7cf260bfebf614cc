//! Which way messages go.

use serde::{Deserialize, Serialize};

/// Seen from the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// To the broker.
    In,
    /// From the broker.
    Out,
}
