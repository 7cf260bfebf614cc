//! Shell commands of the user's that are waited for: each leads a process group of its own, so that
//! what it starts ends with it.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How often to see whether a command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Why a command has no exit status.
#[derive(Debug)]
pub(crate) enum Cut {
    /// It was ended at its deadline.
    TooLong,
    /// It was ended because nobody needs it any more.
    Over,
    /// The system does not tell.
    Unknown(io::Error),
}

/// A running command with what it started.
#[derive(Debug)]
pub(crate) struct Group(Child);

impl Group {
    /// Starts `command` at the head of a group.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        std::os::unix::process::CommandExt::process_group(command, 0);
        command.spawn().map(Self)
    }

    /// Waits for its end; ends all of it at the `deadline`, or once `is_over`.
    pub(crate) fn wait(
        mut self,
        deadline: Instant,
        is_over: &dyn Fn() -> bool,
    ) -> Result<ExitStatus, Cut> {
        loop {
            if let Some(status) = self.0.try_wait().map_err(Cut::Unknown)? {
                return Ok(status);
            }
            let why = match (Instant::now() >= deadline, is_over()) {
                (true, _) => Cut::TooLong,
                (_, true) => Cut::Over,
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
