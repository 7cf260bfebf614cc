//! The steps of a capacity search and its end, as data: `report` has the words.

use serde::{Deserialize, Serialize};

use crate::named::named;

named! {
    /// What a trial is for.
    pub enum Purpose {
        /// Finding a value that passes and one that fails.
        Bracket = "bracket",
        /// Narrowing the bracket.
        Bisect = "bisect",
        /// Checking, at full length, that the upper bound fails.
        Verify = "verify",
        /// Checking, at full length, that the lower bound passes.
        Confirm = "confirm",
        /// Recording latency at a part of the capacity, after the search.
        Profile = "profile",
    }
}

/// Why a search has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// It was stopped, or the broker was gone.
    CutShort,
    /// The bounds are near enough and confirmed.
    Found,
    /// The ceiling passes.
    Ceiling,
    /// Nothing passes, down to the floor.
    NothingPasses,
    /// Too many trials: their outcomes contradict each other.
    GaveUp,
    /// The machine was disturbed in too many trials.
    Disturbed,
}

impl SearchEnd {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::CutShort,
        Self::Found,
        Self::Ceiling,
        Self::NothingPasses,
        Self::GaveUp,
        Self::Disturbed,
    ];
}
