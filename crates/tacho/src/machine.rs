//! One load at a time: a command that makes load waits until the machine is free.

use clap::Args;
use tacho_console::{MachineHolder, MachineLock, MachineLockError, Stop};
use tacho_lab::command_line;
use tacho_record::Timestamp;

use crate::exit::{self, Failure};

/// Whether a command waits for others.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct MachineArguments {
    /// End with exit code 113 if another run has this machine, instead of waiting for its end
    #[arg(long, help_heading = "Generator")]
    pub(crate) no_wait: bool,
}

impl MachineArguments {
    /// Waits for the machine until `stop` is raised, and says on standard error which program has
    /// it.
    pub(crate) fn take(self, stop: &Stop) -> Result<MachineLock, Failure> {
        let command = command_line().join(" ");
        let own = MachineHolder::own(command, Timestamp::now().rfc3339());
        let mut told = None;
        let waits = |other: &MachineHolder| {
            if self.no_wait || stop.is_raised() {
                return false;
            }
            if told.as_ref() != Some(other) {
                eprintln!("waiting for this machine: {other} has it; --no-wait ends instead");
                told = Some(other.clone());
            }
            true
        };
        MachineLock::take(MachineLock::path().as_deref(), own, waits).map_err(|error| match error {
            MachineLockError::Taken(_) if stop.is_raised() => {
                Failure::new(exit::ABORTED, "stopped while it waited for this machine")
            }
            MachineLockError::Taken(other) => {
                let sentence = format!(
                    "{other} has this machine; without --no-wait its end is \
                                        waited for"
                );
                Failure::new(exit::MACHINE_TAKEN, sentence)
            }
            error => Failure::new(exit::UNEXPECTED, error),
        })
    }
}
