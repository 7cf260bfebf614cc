//! Why runs cannot be compared.

use std::path::PathBuf;

use tacho_record::ReadError;

/// Runs that cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// Not the directory of a run.
    #[error("{} cannot be compared: {why}", path.display())]
    NoRun {
        /// The directory.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A comparison has no side of that name.
    #[error("'{argument}' is not a side: {known}")]
    NoSide {
        /// What was given.
        argument: String,
        /// What there is.
        known: String,
    },
    /// Fewer than two sides.
    #[error("a comparison needs at least two sides")]
    OneSide,
    /// The runs are of different scenarios.
    #[error("these cannot be compared: {first} ran '{one}', {second} ran '{other}'")]
    OtherScenario {
        /// A directory.
        first: String,
        /// Its scenario.
        one: String,
        /// Another directory.
        second: String,
        /// Its scenario.
        other: String,
    },
    /// The runs are of different kinds.
    #[error("these cannot be compared: {first} is a {one}, {second} a {other}")]
    OtherKind {
        /// A directory.
        first: String,
        /// Its kind.
        one: &'static str,
        /// Another directory.
        second: String,
        /// Its kind.
        other: &'static str,
    },
    /// A side measured nothing.
    #[error("{side} has no comparable figures: {why}")]
    Nothing {
        /// The side.
        side: String,
        /// Why.
        why: String,
    },
    /// Ladders without a common step.
    #[error("these cannot be compared: no step has the same place on all sides ({steps})")]
    NoCommonStep {
        /// The steps of each side.
        steps: String,
    },
}
