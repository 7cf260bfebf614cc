//! Comparing runs: what differs between two or more conditions, and whether it is more than noise.
//!
//! ```text
//! run directories -> read -> Side (repeats of one condition) -> compare -> Comparison (judged)
//!     -> comparison.json, report.html, table on the terminal, JUnit
//! ```
//!
//! Every repeat is an ordinary run with figures of its own; percentiles are never averaged. A side
//! is the median of its repeats. A difference is told from noise twice: its confidence interval,
//! from resampled repeats, must exclude zero, and it must be larger than what the first condition
//! differs by from itself (A/A) when its repeats, and further ones that were made for this, are
//! compared with each other in the same way.

mod build;
mod condition;
mod curves;
mod differences;
mod figure;
mod judge;
mod junit;
mod read;
mod record;
mod statistics;
#[cfg(test)]
mod tests;
mod text;

pub use build::{About, CompareError, compare};
pub use condition::{Condition, FailIf, Regression};
pub(crate) use curves::curve_of_file;
pub use curves::{SideCurve, side_curves};
pub use figure::{Better, FIGURES, Figure, FigureUnit};
pub use judge::judge;
pub use junit::comparison_junit;
pub use read::{BeforeRun, Run, Side, read_side};
pub(crate) use read::{json, run_record};
pub use record::{
    Again, Change, Comparison, ComparisonSide, ConditionOutcome, ConditionResult, Difference,
    FigureRow, Judgement, Method, Point, Repeat, Spread,
};
pub use statistics::{Floor, REPEATS_MIN, Scale, Shift, median, shift};
pub(crate) use text::{
    aa_counting, change_shown, ends_shown, floor_shown, interval_ends, median_shown,
    verdict_sentence,
};
pub use text::{comparison_markdown, comparison_text};
