//! When a changed value takes effect.

use serde::Serialize;

/// When a changed value takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Applies {
    /// At the reload.
    Live,
    /// At the reload, for clients that connect from then on.
    NewConnections,
    /// At the next start.
    Restart,
}

impl Applies {
    /// The word for it, as in answers and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::NewConnections => "new connections",
            Self::Restart => "restart",
        }
    }
}
