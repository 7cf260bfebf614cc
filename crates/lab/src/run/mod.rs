//! Running a scenario: the load generator is driven, sampled, recorded and judged.

mod action_progress;
mod agents;
mod bridge_log;
mod broker_hosts;
mod broker_use;
mod brokers;
mod collector;
mod commands;
mod connecting;
mod course;
mod disturbance;
mod ending;
mod facts;
mod figures;
mod group_files;
mod headlines;
mod hosts;
mod kills;
mod load;
mod logins;
mod names;
mod numbers;
mod outgoing;
mod oversized;
mod parts;
mod planned_actions;
mod resume;
mod row;
mod runner;
mod sample_files;
mod target;
#[cfg(test)]
mod tests;
mod window;

pub use bridge_log::{BridgeFigures, BridgeLog, BridgeSample};
pub use commands::{CommandDone, Commands};
pub use course::Course;
pub use ending::Ending;
pub use facts::RunFacts;
pub use kills::Kills;
pub use names::Names;
pub use planned_actions::PlannedActions;
pub use resume::{Left, ResumeError, ResumeState};
pub use runner::{Outcome, Progress, RunConfig, RunError, run};
pub use target::RunTarget;
