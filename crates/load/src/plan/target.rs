//! Broker addresses, and the transports of MQTT packets.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tacho_net::tls::{TlsClient, TlsIdentity};
use tacho_net::ws::WsClient;
use tacho_net::{Filter, Layers};

/// One address of a broker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Target {
    /// Socket address.
    pub addr: SocketAddr,
    /// Transport.
    #[serde(with = "form")]
    pub transport: Transport,
    /// Name of the broker, for figures per broker; all its addresses share the name.
    pub name: String,
}

/// The transport of MQTT packets.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Transport {
    /// Plain TCP.
    #[default]
    Tcp,
    /// TLS. Whether connections that share it resume each other's sessions is among its settings;
    /// those of clients with certificates of their own never do.
    Tls(Arc<TlsClient>),
    /// WebSocket.
    Ws(WsClient),
    /// WebSocket over TLS.
    Wss(Arc<TlsClient>, WsClient),
}

impl Transport {
    /// Subprotocol in the WebSocket handshake.
    pub const SUBPROTOCOL: &str = "mqtt";

    /// Whether connections are encrypted.
    pub const fn uses_tls(&self) -> bool {
        matches!(self, Self::Tls(_) | Self::Wss(..))
    }

    /// The byte filter of a new connection; none for plain TCP.
    ///
    /// # Errors
    /// The TLS library cannot make the connection.
    pub fn filter(&self) -> io::Result<Option<Box<dyn Filter>>> {
        self.filter_as(None)
    }

    /// The same of a client that presents a certificate of its own.
    pub(crate) fn filter_as(
        &self,
        own: Option<&TlsIdentity>,
    ) -> io::Result<Option<Box<dyn Filter>>> {
        let secure = |tls: &TlsClient| match own {
            None => tls.filter(),
            Some(own) => tls.filter_as(own),
        };
        Ok(match self {
            Self::Tcp => None,
            Self::Tls(tls) => Some(Box::new(secure(tls)?)),
            Self::Ws(ws) => Some(Box::new(ws.filter())),
            Self::Wss(tls, ws) => Some(Box::new(Layers::new(secure(tls)?, ws.filter()))),
        })
    }
}

impl Target {
    /// A target reached by plain TCP.
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

/// Transports without TLS.
pub(crate) mod form {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
    use tacho_net::ws::WsClient;

    use super::Transport;

    #[derive(Serialize, Deserialize)]
    enum TransportForm {
        Tcp,
        Ws { host: String, path: String, protocol: String },
    }

    pub(crate) fn serialize<S: Serializer>(value: &Transport, to: S) -> Result<S::Ok, S::Error> {
        let form = match value {
            Transport::Tcp => TransportForm::Tcp,
            Transport::Ws(WsClient { host, path, protocol }) => TransportForm::Ws {
                host: host.clone(),
                path: path.clone(),
                protocol: protocol.clone(),
            },
            Transport::Tls(_) | Transport::Wss(..) => {
                return Err(ser::Error::custom("keys and certificates do not travel"));
            }
        };
        form.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Transport, D::Error> {
        Ok(match TransportForm::deserialize(from)? {
            TransportForm::Tcp => Transport::Tcp,
            TransportForm::Ws { host, path, protocol } => {
                Transport::Ws(WsClient { host, path, protocol })
            }
        })
    }
}
