//! What commands of a scenario did, told by whoever runs them.

use std::sync::{Mutex, PoisonError};

use crate::clock;

/// The commands of one run.
#[derive(Debug, Default)]
pub struct Commands(Mutex<Vec<CommandDone>>);

/// A command that has ended, or was ended.
#[derive(Clone, Debug, Default)]
pub struct CommandDone {
    /// Its position in the scenario's [schedule](crate::scenario::Scenario::schedule).
    pub scheduled: usize,
    /// When it began, by [`Commands::now_ns`].
    pub at_ns: u64,
    /// How long it took.
    pub took_ns: u64,
    /// Its exit code; `None` when a signal ended it, or it could not be started.
    pub exit_code: Option<i32>,
    /// File in the run directory with what it said.
    pub output: String,
    /// Why it did not come to its end; empty when it did.
    pub error: String,
}

impl Commands {
    /// The run's clock.
    pub fn now_ns() -> u64 {
        clock::now_ns()
    }

    /// One has ended.
    pub fn done(&self, done: CommandDone) {
        // Every change is whole by itself.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(done);
    }

    pub(super) fn all(&self) -> Vec<CommandDone> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
