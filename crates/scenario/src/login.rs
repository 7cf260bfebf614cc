//! Clients that log in again and again.

use serde::Serialize;

use super::quantity::{PerSecond, TimeSpan};

/// The clients of a group log in by a schedule and do nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Login {
    /// Logins of the group per second.
    pub rate: PerSecond,
    /// How long a client stays connected.
    #[serde(skip_serializing_if = "TimeSpan::is_zero")]
    pub stay: TimeSpan,
    /// Share of the logins with a wrong password.
    #[serde(skip_serializing_if = "is_none_of_them")]
    pub wrong_share: f64,
    /// Share of the logins with the name of no user.
    #[serde(skip_serializing_if = "is_none_of_them")]
    pub unknown_share: f64,
}

fn is_none_of_them(share: &f64) -> bool {
    *share == 0.0
}
