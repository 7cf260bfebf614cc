//! Where clients connect, and what lies between their packets and TCP.

use std::net::SocketAddr;

/// One address of a broker.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where to connect.
    pub addr: SocketAddr,
    /// How.
    pub transport: Transport,
    /// Which broker this is, for figures per broker; several addresses of one share the name.
    pub name: String,
}

/// What carries MQTT packets.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Transport {
    /// TCP and nothing else.
    #[default]
    Tcp,
}

impl Target {
    /// An address reached by plain TCP.
    pub fn tcp(addr: SocketAddr, name: impl Into<String>) -> Self {
        Self { addr, transport: Transport::Tcp, name: name.into() }
    }
}

/// Plain TCP, named after the address.
impl From<SocketAddr> for Target {
    fn from(addr: SocketAddr) -> Self {
        Self::tcp(addr, addr.to_string())
    }
}
