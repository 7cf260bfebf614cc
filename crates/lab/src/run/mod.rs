//! Running a scenario: the load generator is driven, sampled, recorded and judged.

mod bridge_log;
mod brokers;
mod collector;
mod commands;
mod connecting;
mod course;
mod deeds;
mod deeds_so_far;
mod facts;
mod figures;
mod headlines;
mod hosts;
mod kills;
mod names;
mod numbers;
mod parts;
mod parts_of_hosts;
mod row;
mod runner;
mod target;
#[cfg(test)]
mod tests;
mod window;

pub use bridge_log::{BridgeFigures, BridgeLog, BridgeSample};
pub use commands::{CommandDone, Commands};
pub use course::Course;
pub use deeds::Deeds;
pub use deeds_so_far::DeedNews;
pub use facts::RunFacts;
pub use kills::Kills;
pub use names::Names;
pub use runner::{Ending, Outcome, Progress, RunConfig, RunError, run};
pub use target::RunTarget;
