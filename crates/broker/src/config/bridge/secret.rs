//! Passwords, which are never shown.

use std::fmt;

use serde::Deserialize;

/// A password. Its `Debug` output does not show it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a password.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The password itself, for CONNECT.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(not shown)")
    }
}
