//! Commands that only this program itself starts.

use std::net::SocketAddr;

use clap::Args;
use tacho_rig::attached::become_command;
use tacho_rig::supervisor;

use crate::exit::{self, Failure};

/// Name of the command for [`null_broker`].
pub(crate) const NULL_BROKER: &str = "null-broker";

#[derive(Args, Debug)]
pub(crate) struct AttachedArguments {
    /// The process that started this one
    parent: u32,
    /// The command for the shell
    command: String,
}

#[derive(Args, Debug)]
pub(crate) struct SuperviseArguments {
    /// The command for the shell
    command: String,
}

#[derive(Args, Debug)]
pub(crate) struct NullBrokerArguments {
    /// Where to listen, on loopback
    address: SocketAddr,
}

/// Becomes a shell command that ends with the process that started this one.
pub(crate) fn attached(arguments: &AttachedArguments) -> Result<u8, Failure> {
    Err(Failure::new(exit::UNEXPECTED, become_command(arguments.parent, &arguments.command)))
}

/// Runs a shell command until it ends or the process that started this one does.
pub(crate) fn supervise(arguments: &SuperviseArguments) -> Result<u8, Failure> {
    supervisor::supervise(&arguments.command).map_err(|error| Failure::new(exit::UNEXPECTED, error))
}

/// Serves as the responder of a calibration until it is ended.
pub(crate) fn null_broker(arguments: &NullBrokerArguments) -> Result<u8, Failure> {
    tacho_load::null_broker::serve_null_broker(arguments.address, None)
        .map(|()| exit::OK)
        .map_err(|error| Failure::new(exit::UNEXPECTED, error))
}
