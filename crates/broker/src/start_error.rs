//! Why a broker does not start, or ends.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tacho_output::OutputStartError;

use crate::config::ConfigError;
use crate::control::SocketError;
use crate::durable::JournalError;

/// Why the broker cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A certificate cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}{}", hint(source))]
    Bind {
        /// The address as configured.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// A socket that the broker was given is at an address where it does not listen.
    #[error(
        "the service manager has bound {address}, where no listener is: give a listener this \
         address, or correct ListenStream"
    )]
    UnclaimedSocket {
        /// The address to which the socket is bound.
        address: SocketAddr,
    },
    /// The data directory cannot be used.
    #[error("the data directory {} cannot be used: {source}", directory.display())]
    Journal {
        /// The directory as configured.
        directory: PathBuf,
        /// The cause.
        source: JournalError,
    },
    /// Users cannot log in: the system gives no threads or random numbers.
    #[error("users cannot log in")]
    Logins(#[source] io::Error),
    /// An output cannot be used.
    #[error(transparent)]
    Outputs(#[from] OutputStartError),
    /// The management socket cannot be used.
    #[error("the management socket: {0} (`management.socket`, --management-socket)")]
    ManagementSocket(#[source] SocketError),
    /// The control plane's thread could not be created.
    #[error("the control plane cannot start")]
    Control(#[source] io::Error),
    /// A shard's event loop could not be created or failed.
    #[error("shard {shard} failed")]
    Shard {
        /// Number of the shard.
        shard: usize,
        /// The error of the system.
        source: io::Error,
    },
    /// A shard's thread panicked: a defect of the broker.
    #[error("shard {shard} panicked")]
    Panicked {
        /// Number of the shard.
        shard: usize,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            " (another broker is running there: stop it, or choose --listen)"
        }
        io::ErrorKind::PermissionDenied => " (ports below 1024 need a privilege)",
        io::ErrorKind::AddrNotAvailable => " (this machine does not have this address)",
        _ => "",
    }
}
