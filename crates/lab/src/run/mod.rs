//! Running a scenario: the load generator is driven, sampled, recorded and judged.

mod collector;
mod figures;
mod hosts;
mod names;
mod parts;
mod parts_of_hosts;
mod row;
mod runner;
#[cfg(test)]
mod tests;

pub use collector::{RunFacts, StepCurves};
pub use names::Names;
pub use runner::{Ending, Outcome, Progress, RunConfig, RunError, RunTarget, run};
