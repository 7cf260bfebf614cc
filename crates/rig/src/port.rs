//! Ports for brokers that are about to be started.

use std::net::TcpListener;

use crate::error::RigError;

/// The lowest port for a broker that is killed.
const PORT_MIN: u16 = 10_000;
/// Candidates that are tried for it.
const ATTEMPTS: u32 = 1000;

/// How a port is going to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortUse {
    /// By one process.
    Once,
    /// By processes one after another: each must find it free again, so no outgoing connection may
    /// take it for its own end.
    Restarted,
}

/// A port of 127.0.0.1 on which nothing listens. Another program can take it before the broker
/// does; the broker then says so and ends.
///
/// # Errors
/// When the system has no free port.
pub fn free_port(port_use: PortUse) -> Result<u16, RigError> {
    let (first, last) = tacho_net::local_port_range();
    let address = TcpListener::bind(("127.0.0.1", 0)).and_then(|socket| socket.local_addr());
    let mut port = address.map_err(RigError::NoPort)?.port();
    let restarted = port_use == PortUse::Restarted;
    let mut attempts = if restarted && first > PORT_MIN { ATTEMPTS } else { 0 };
    // The system's choice gives each process another start without a source of random numbers.
    let mut candidate = PORT_MIN + port % first.saturating_sub(PORT_MIN).max(1);
    while attempts > 0 && (first..=last).contains(&port) {
        if TcpListener::bind(("127.0.0.1", candidate)).is_ok() {
            port = candidate;
        }
        candidate = if candidate + 1 < first { candidate + 1 } else { PORT_MIN };
        attempts -= 1;
    }
    Ok(port)
}
