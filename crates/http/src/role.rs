//! Roles: what a token or key of an API allows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a token or key allows; each role may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// To look.
    Viewer,
    /// To start, stop and change, too.
    Operator,
    /// To change who may do what, too.
    Administrator,
}

impl Role {
    /// All of them, the least first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Administrator];

    /// The name, as in files and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Administrator => "administrator",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|role| role.name() == text)
            .ok_or_else(|| format!("'{text}' is no role: write viewer, operator or administrator"))
    }
}
