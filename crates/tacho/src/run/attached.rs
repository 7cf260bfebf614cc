//! Commands that end when the run does, even when it is killed and cannot end them itself.
//!
//! A broker of ours watches a pipe. Another program cannot be asked to; on Linux the kernel tells
//! it when the process that started it is gone. A process can ask for that only itself, so this
//! program is started, asks, and becomes the command.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::exit::{self, Failure};

/// Name of the command.
pub(crate) const NAME: &str = "attached";

#[derive(Args, Debug)]
pub(crate) struct AttachedArguments {
    /// The process that started this one
    parent: u32,
    /// What a shell is to execute
    command: String,
}

/// This program, for starting it again.
pub(crate) fn this_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| {
        Failure::new(exit::UNEXPECTED, format!("cannot find this program: {error}"))
    })
}

/// A process that becomes the shell command `text`, and gets SIGTERM once this process is gone.
pub(super) fn command(text: &str) -> Result<Command, Failure> {
    let mut command = Command::new(this_program()?);
    command.args([NAME, &std::process::id().to_string(), text]);
    Ok(command)
}

/// A text as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Becomes the command.
pub(crate) fn attached(arguments: &AttachedArguments) -> Result<u8, Failure> {
    let gone = || Failure::new(exit::UNEXPECTED, "the process that started this one is gone");
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
        .map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
    // It may have gone before it could be watched.
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    if parent.and_then(|pid| u32::try_from(pid).ok()) != Some(arguments.parent) {
        return Err(gone());
    }
    let error = Command::new("sh").arg("-c").arg(format!("exec {}", arguments.command)).exec();
    Err(Failure::new(exit::UNEXPECTED, format!("cannot start a shell: {error}")))
}
