//! The responder of a calibration, as a process of its own.

use std::net::SocketAddr;

use clap::Args;

use crate::exit::{self, Failure};

/// Name of the command.
pub(crate) const NAME: &str = "null-broker";

#[derive(Args, Debug)]
pub(crate) struct NullBrokerArguments {
    /// Where to listen, on loopback
    address: SocketAddr,
}

/// Serves until it is ended.
pub(crate) fn null_broker(arguments: &NullBrokerArguments) -> Result<u8, Failure> {
    tacho_load::null_broker::serve_null_broker(arguments.address, None)
        .map(|()| exit::OK)
        .map_err(|error| Failure::new(exit::UNEXPECTED, error))
}
