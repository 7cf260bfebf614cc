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

mod before;
mod build;
mod condition;
mod curves;
mod differences;
mod error;
mod figure;
mod judge;
mod outcome;
mod session;
mod side;
mod statistics;
#[cfg(test)]
mod tests;
mod turns;

pub use build::{About, compare};
pub use condition::{Condition, FailIf, Regression};
pub use curves::side_curves;
pub use error::CompareError;
pub use figure::{FIGURES, Figure};
pub use judge::judge;
pub use outcome::{stored_record, verdict_of};
pub use session::{Session, SessionError, SessionRequest, SidePlan, hold_session};
pub use side::{Run, Side, read_side};
pub(crate) use statistics::method;
pub use statistics::{Floor, REPEATS_MIN, Shift, median, shift};
