//! Shell commands that are waited for: each leads a process group of its own, so that its
//! child processes end with it.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Time between two looks whether a command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Why a command has no exit status.
#[derive(Debug)]
pub enum Cut {
    /// It was ended at its deadline.
    Deadline,
    /// It was ended because its result is no longer needed.
    Cancelled,
    /// The system does not report its status.
    Unknown(io::Error),
}

/// A running command with the processes that it started.
#[derive(Debug)]
pub struct ProcessGroup(Child);

impl ProcessGroup {
    /// Starts `command` at the head of a group.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        command.process_group(0);
        command.spawn().map(Self)
    }

    /// Waits until it ends; ends the whole group at the `deadline`, or once `is_cancelled`.
    ///
    /// # Errors
    /// The reason why there is no exit status.
    pub fn wait(
        mut self,
        deadline: Instant,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<ExitStatus, Cut> {
        loop {
            if let Some(status) = self.0.try_wait().map_err(Cut::Unknown)? {
                return Ok(status);
            }
            let why = match (Instant::now() >= deadline, is_cancelled()) {
                (true, _) => Cut::Deadline,
                (_, true) => Cut::Cancelled,
                _ => {
                    std::thread::sleep(LOOK_EVERY);
                    continue;
                }
            };
            self.end();
            return Err(why);
        }
    }

    fn end(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
