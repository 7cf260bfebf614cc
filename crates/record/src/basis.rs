//! The basis of a change's judgement, as data: `report` has the words.

use serde::{Deserialize, Serialize};

/// The basis of a change's judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Basis {
    /// The confidence interval includes zero.
    IncludesZero,
    /// The change is below the noise floor.
    BelowFloor,
    /// The interval excludes zero, and the change is above the floor.
    AboveFloor,
    /// There are too few repeats for an interval.
    FewRepeats {
        /// Repeats of the side that has the fewest.
        repeats: u64,
        /// How many an interval needs.
        least: u64,
    },
    /// The first side's median is zero: there are no percentages of it.
    FirstIsZero,
    /// The figure was not observed on the first side.
    FirstNotObserved,
    /// The figure was not observed on the other side.
    NotObserved,
}
