//! The search for the highest load that meets objectives.
//!
//! [`Search`] decides what to try next and knows nothing of brokers: a value and a length go out,
//! an outcome comes back. It brackets the limit geometrically with short trials, bisects with
//! trials that double in length, verifies the lowest failure at full length, and confirms the
//! highest pass several times at full length. The result is an interval. [`run_search`] performs
//! the trials.

mod hunt;
mod judge;
mod posterior;
mod search;
#[cfg(test)]
mod tests;

pub use hunt::{CapacityRequest, TrialScenario, run_search};
pub use judge::{Judgement, default_objectives, judge};
pub use search::{Search, SearchPlan, Try};
