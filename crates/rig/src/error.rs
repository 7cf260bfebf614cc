//! Errors of programs under test.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitStatus;

use thiserror::Error;

/// Why a program under test does not run.
#[derive(Debug, Error)]
pub enum RigError {
    /// The process was asked to stop meanwhile.
    #[error("stopped before the run began")]
    Stopped,
    /// A core was asked for that this process may not use.
    #[error("core {core} is not available to this process; available cores: {available:?}")]
    NoSuchCore {
        /// The core.
        core: usize,
        /// Cores that this process may use.
        available: Vec<usize>,
    },
    /// The path of this program is unknown.
    #[error("cannot find this program: {0}")]
    ThisProgram(io::Error),
    /// A file or directory cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// No port is left.
    #[error("no free port on 127.0.0.1: {0}")]
    NoPort(io::Error),
    /// No thread can be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// The system refuses to start the program.
    #[error("cannot start the broker '{command}': {error}")]
    Start {
        /// Its command.
        command: String,
        /// Why.
        error: io::Error,
    },
    /// The system refuses to start a command that goes with the run.
    #[error("cannot start '{command}': {error}")]
    Spawn {
        /// The command.
        command: String,
        /// Why.
        error: io::Error,
    },
    /// It ended before it accepted connections.
    #[error("the broker '{command}' ended before it listened ({status}){output}")]
    EndedEarly {
        /// Its command.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// Its last output.
        output: LastOutput,
    },
    /// It accepted connections and ended later.
    #[error("the broker '{command}' ended during the run ({status}){output}")]
    Ended {
        /// Its command.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// Its last output.
        output: LastOutput,
    },
    /// It does not accept connections in time.
    #[error(
        "the broker '{command}' does not accept connections on {address} after {seconds} s\
             {output}"
    )]
    NotListening {
        /// Its command.
        command: String,
        /// Where it was to listen.
        address: SocketAddr,
        /// How long it was waited for.
        seconds: u64,
        /// Its last output.
        output: LastOutput,
    },
    /// A bridge between brokers does not come up in time.
    #[error("'{broker}' has a bridge that is not up after {seconds} s: {problem}")]
    BridgeDown {
        /// The broker that the bridge leads away from.
        broker: String,
        /// How long it was waited for.
        seconds: u64,
        /// The broker's message about it.
        problem: String,
    },
    /// A broker's question about its bridges is not answered.
    #[error("{url} does not answer: {error}")]
    NoAnswer {
        /// Where it was asked.
        url: String,
        /// Why.
        error: Box<ureq::Error>,
    },
    /// The answer is not one about bridges.
    #[error("{url} answers something else: {error}")]
    OtherAnswer {
        /// Where it was asked.
        url: String,
        /// Why it cannot be parsed.
        error: serde_json::Error,
    },
}

/// The last lines that a program printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastOutput(pub Vec<String>);

/// As the end of a sentence about the program.
impl fmt::Display for LastOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.is_empty() {
            true => write!(f, "; it printed nothing"),
            false => write!(f, "; its last output:\n  {}", self.0.join("\n  ")),
        }
    }
}
