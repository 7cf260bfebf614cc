//! Listening sockets that the broker is given: a service manager has bound them, and keeps them
//! while the broker is replaced, so that clients wait instead of being refused.

use std::io;
use std::net::{SocketAddr, TcpListener};

use tacho_net::{ListenSettings, adopt, listen};

use crate::config::Config;

/// Sockets by the addresses to which they are bound.
#[derive(Debug, Default)]
pub struct GivenSockets(Vec<(SocketAddr, TcpListener)>);

impl GivenSockets {
    /// # Errors
    /// The address of a socket cannot be read.
    pub fn new(sockets: Vec<TcpListener>) -> io::Result<Self> {
        let with_address = |socket: TcpListener| Ok((socket.local_addr()?, socket));
        sockets.into_iter().map(with_address).collect::<io::Result<_>>().map(Self)
    }

    /// The address of one that belongs to no listener, to the metrics or to the management API.
    pub(crate) fn unclaimed(&self, config: &Config) -> Option<SocketAddr> {
        let listeners = config.listeners.iter().map(|listener| listener.address);
        let known: Vec<SocketAddr> =
            listeners.chain(config.metrics).chain(config.management.listen).collect();
        self.0.iter().map(|&(address, _)| address).find(|address| !known.contains(address))
    }

    /// A socket that listens there: one that was given, or else a new one.
    pub(crate) fn listen(
        &self,
        address: SocketAddr,
        settings: &ListenSettings,
    ) -> io::Result<TcpListener> {
        match self.0.iter().find(|(bound, _)| *bound == address) {
            Some((_, socket)) => adopt(socket, settings),
            None => listen(address, settings),
        }
    }
}
