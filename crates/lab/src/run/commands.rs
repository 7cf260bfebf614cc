//! Outcomes of a scenario's commands, reported by the program that runs them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tacho_monitor::now_ns;
use tacho_record::CutShort;

/// The commands of one run.
#[derive(Debug, Default)]
pub struct Commands(Mutex<CommandStates>);

#[derive(Debug, Default)]
struct CommandStates {
    /// Position in the schedule and time of those that have begun.
    begun: Vec<(usize, u64)>,
    done: Vec<CommandDone>,
}

/// A command that has ended, or was ended.
#[derive(Clone, Debug, Default)]
pub struct CommandDone {
    /// Its position in the scenario's [schedule](tacho_scenario::Scenario::schedule).
    pub scheduled: usize,
    /// When it began, by [`Commands::now_ns`].
    pub at_ns: u64,
    /// How long it took.
    pub took_ns: u64,
    /// Its exit code; `None` when a signal ended it, or it could not be started.
    pub exit_code: Option<i32>,
    /// File in the run directory with what it said.
    pub output: String,
    /// Why it did not come to its end; `None` when it did.
    pub cut_short: Option<CutShort>,
}

impl Commands {
    /// The run's clock.
    pub fn now_ns() -> u64 {
        now_ns()
    }

    /// The one at this position of the schedule begins.
    pub fn began(&self, scheduled: usize, at_ns: u64) {
        self.state().begun.push((scheduled, at_ns));
    }

    /// One has ended.
    pub fn done(&self, done: CommandDone) {
        self.state().done.push(done);
    }

    pub(super) fn all(&self) -> Vec<CommandDone> {
        self.state().done.clone()
    }

    /// When the one at this position of the schedule began, and how it ended.
    pub(super) fn so_far(&self, scheduled: usize) -> Option<(u64, Option<CommandDone>)> {
        let state = self.state();
        let (_, at_ns) = state.begun.iter().find(|(position, _)| *position == scheduled)?;
        let done = state.done.iter().find(|done| done.scheduled == scheduled);
        Some((*at_ns, done.cloned()))
    }

    fn state(&self) -> MutexGuard<'_, CommandStates> {
        // Every change is whole by itself.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
