//! The phases of a run by the words that its files have for them.

use std::fmt;

use serde::{Deserialize, Serialize};
use tacho_load::PhaseKind;

/// The phase that a row or an event belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum PhaseName {
    /// A phase that this version knows.
    Known(PhaseKind),
    /// A word of another version, as it is.
    Other(String),
}

impl PhaseName {
    /// The word that files have for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(kind) => kind.name(),
            Self::Other(word) => word,
        }
    }
}

impl Default for PhaseName {
    /// The empty word of a file that names no phase.
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl PartialEq<PhaseKind> for PhaseName {
    fn eq(&self, kind: &PhaseKind) -> bool {
        *self == Self::Known(*kind)
    }
}

impl From<PhaseKind> for PhaseName {
    fn from(kind: PhaseKind) -> Self {
        Self::Known(kind)
    }
}

impl From<String> for PhaseName {
    fn from(word: String) -> Self {
        PhaseKind::parse(&word).map_or(Self::Other(word), Self::Known)
    }
}

impl From<PhaseName> for String {
    fn from(name: PhaseName) -> Self {
        match name {
            PhaseName::Known(kind) => kind.name().to_owned(),
            PhaseName::Other(word) => word,
        }
    }
}

impl fmt::Display for PhaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_is_read_as_it_is_written_and_another_word_is_kept() {
        for kind in PhaseKind::ALL {
            let json = serde_json::to_string(&PhaseName::from(kind)).expect("is JSON");
            assert_eq!(json, format!("\"{}\"", kind.name()));
            assert_eq!(serde_json::from_str::<PhaseName>(&json).expect("reads"), kind);
        }
        let other: PhaseName = serde_json::from_str("\"rest\"").expect("reads");
        assert_eq!(other, PhaseName::Other("rest".to_owned()));
        assert_eq!(serde_json::to_string(&other).expect("is JSON"), "\"rest\"");
    }
}
