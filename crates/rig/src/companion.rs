//! A shell command of the user that runs beside a run, and ends with it.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::attached::quoted;
use crate::error::RigError;
use crate::supervised::{self, Supervised};

/// How long it may take to end after SIGTERM, with everything that it started.
const END_WITHIN: Duration = Duration::from_secs(10);
/// Time between two looks whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A running shell command. It and everything that it started end when this value is dropped, and
/// also when this process is killed. What it says on standard error goes to this process's.
#[derive(Debug)]
pub struct Companion {
    shown: String,
    running: Supervised,
}

impl Companion {
    /// Starts the shell command `text`.
    ///
    /// # Errors
    /// When the system does not start it.
    pub fn start(text: &str) -> Result<Self, RigError> {
        let failed = |error: io::Error| RigError::Spawn { command: text.to_owned(), error };
        // A supervisor executes one command; a shell below it reads a list of them.
        let mut command = supervised::command(&format!("sh -c {}", quoted(text)))?;
        command.stdout(Stdio::null());
        // A group of its own: Ctrl-C on the terminal must reach the run first.
        command.process_group(0);
        let running = Supervised::start(&mut command).map_err(failed)?;
        Ok(Self { shown: text.to_owned(), running })
    }

    /// The command and how it ended, if it has ended by itself.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.running.try_wait().ok().flatten()?;
        Some(format!("'{}' ended with {status}", self.shown))
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.running.terminate();
        let deadline = Instant::now() + END_WITHIN;
        while matches!(self.running.try_wait(), Ok(None)) {
            if Instant::now() >= deadline {
                return self.running.kill();
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}
