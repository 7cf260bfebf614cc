//! Running a scenario: the load generator is driven, sampled, recorded and judged.

mod bridge_log;
mod brokers;
mod collector;
mod commands;
mod course;
mod deeds;
mod deeds_so_far;
mod figures;
mod headlines;
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

pub use bridge_log::{BridgeFigures, BridgeLog, BridgeSample};
pub use collector::RunFacts;
pub use commands::{CommandDone, Commands};
pub use course::Course;
pub use deeds::Deeds;
pub use deeds_so_far::DeedNews;
pub use kills::Kills;
pub use names::Names;
pub use runner::{Ending, Outcome, Progress, RunConfig, RunError, RunTarget, run};
