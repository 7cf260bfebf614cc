//! Running a scenario: the load generator is driven, sampled, recorded and judged.

mod collector;
mod course;
mod figures;
mod hosts;
mod kills;
mod names;
mod parts;
mod parts_of_hosts;
mod row;
mod runner;
#[cfg(test)]
mod tests;
mod window;

pub use collector::{RunFacts, StepCurves};
pub use course::Course;
pub use kills::Kills;
pub use names::Names;
pub use runner::{Ending, Outcome, Progress, RunConfig, RunError, RunTarget, run};
