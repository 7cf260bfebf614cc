//! Where clients connect, and what lies between their packets and TCP.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tacho_net::tls::TlsClient;
use tacho_net::ws::WsClient;
use tacho_net::{Filter, Layers};

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
    /// TLS. Connections that share it resume each other's sessions, as clients of one process do.
    Tls(Arc<TlsClient>),
    /// WebSocket.
    Ws(WsClient),
    /// WebSocket over TLS.
    Wss(Arc<TlsClient>, WsClient),
}

impl Transport {
    /// What MQTT is called in a WebSocket's handshake.
    pub const SUBPROTOCOL: &str = "mqtt";

    /// The filter of a new connection; plain TCP has none.
    pub(crate) fn filter(&self) -> io::Result<Option<Box<dyn Filter>>> {
        Ok(match self {
            Self::Tcp => None,
            Self::Tls(tls) => Some(Box::new(tls.filter()?)),
            Self::Ws(ws) => Some(Box::new(ws.filter())),
            Self::Wss(tls, ws) => Some(Box::new(Layers::new(tls.filter()?, ws.filter()))),
        })
    }
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
