//! A started broker: a process of this program, or a command of the user.

use std::io;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::supervised::Supervised;

/// A started broker.
#[derive(Debug)]
pub(crate) enum Started {
    /// Tacho's own, which watches a pipe and starts no other process.
    Own(Child),
    /// A command, which may be several processes.
    Command(Supervised),
}

impl Started {
    /// Starts `command`.
    pub(crate) fn start(command: &mut Command, is_supervised: bool) -> io::Result<Self> {
        match is_supervised {
            true => Supervised::start(command).map(Self::Command),
            false => command.spawn().map(Self::Own),
        }
    }

    /// Process id of the broker, or of the command that is or starts it.
    pub(crate) fn pid(&self) -> u32 {
        match self {
            Self::Own(child) => child.id(),
            Self::Command(command) => command.pid(),
        }
    }

    /// How it ended, if it has.
    pub(crate) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match self {
            Self::Own(child) => child.try_wait(),
            Self::Command(command) => command.try_wait(),
        }
    }

    /// Asks it to end.
    pub(crate) fn terminate(&mut self) {
        match self {
            Self::Own(child) => {
                let _ = kill_process(Pid::from_child(child), Signal::TERM);
            }
            Self::Command(command) => command.terminate(),
        }
    }

    /// Ends it with SIGKILL, and the processes that it started with it.
    pub(crate) fn kill(&mut self) {
        match self {
            Self::Own(child) => {
                if matches!(child.try_wait(), Ok(None)) {
                    // It leads a group of its own, see `Process::start`.
                    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
                }
                let _ = child.kill();
                let _ = child.wait();
            }
            Self::Command(command) => command.kill(),
        }
    }
}
