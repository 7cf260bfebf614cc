//! Processes that end with this one, even when this one is killed and cannot end them.
//!
//! Tacho's own broker watches a pipe. Other programs cannot be asked to; on Linux the kernel
//! signals a process when the thread that started it is gone. Only the process itself can request
//! that, so this program is started as an intermediary, makes the request, and becomes the command.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use thiserror::Error;

use crate::error::RigError;

/// The subcommand of this program that calls [`become_command`] with its two arguments.
pub const SUBCOMMAND: &str = "attached";

/// Why this process did not become the command.
#[derive(Debug, Error)]
pub enum AttachError {
    /// The kernel refused the request.
    #[error("cannot ask the kernel for a signal when the parent ends: {0}")]
    Request(io::Error),
    /// The parent ended before it could be watched.
    #[error("the parent process has ended")]
    ParentGone,
    /// There is no shell.
    #[error("cannot start a shell: {0}")]
    Shell(io::Error),
}

/// The path of this program, for starting it again.
///
/// # Errors
/// When the system does not tell.
pub fn this_program() -> Result<PathBuf, RigError> {
    std::env::current_exe().map_err(RigError::ThisProgram)
}

/// A process that becomes the shell command `text`, and gets SIGTERM once this process is gone.
pub(crate) fn command(text: &str) -> Result<Command, RigError> {
    let mut command = Command::new(this_program()?);
    command.args([SUBCOMMAND, &std::process::id().to_string(), text]);
    without_secrets(&mut command);
    Ok(command)
}

/// Environment variables of this program that have secrets.
const SECRET_VARIABLES: [&str; 2] = ["TACHO_PASSWORD", "TACHO_MONITOR_TOKEN"];
/// What those begin with that have secrets of outputs.
const SECRETS_OF_OUTPUTS: &str = "TACHO_OUT";
/// What those begin with that configure a broker of the user: not one of a run.
const OF_BROKERS: &str = "TACHO_BROKER__";

/// Keeps the secrets in this process's environment from a program that it starts, and from a broker
/// the configuration of another one.
pub fn without_secrets(command: &mut Command) {
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        let is_named = [SECRETS_OF_OUTPUTS, OF_BROKERS].iter().any(|head| name.starts_with(head));
        if SECRET_VARIABLES.contains(&&*name) || is_named {
            command.env_remove(&variable);
        }
    }
}

/// A text as one word of a shell.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Makes this process, started by process `parent`, the shell command `text`. Returns only when it
/// failed.
pub fn become_command(parent: u32, text: &str) -> AttachError {
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
    {
        return AttachError::Request(error.into());
    }
    // The parent may have ended before the request.
    let actual = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    if actual.and_then(|pid| u32::try_from(pid).ok()) != Some(parent) {
        return AttachError::ParentGone;
    }
    AttachError::Shell(Command::new("sh").arg("-c").arg(format!("exec {text}")).exec())
}
