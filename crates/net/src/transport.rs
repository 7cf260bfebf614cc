//! The transports of listeners, and their filters.

use std::io;
use std::sync::Arc;

use crate::filter::{Filter, Layers};
use crate::tls::TlsServer;
use crate::ws::WsServer;

/// The transport of accepted connections.
#[derive(Clone, Debug)]
pub enum ServerTransport {
    /// Plain TCP.
    Tcp,
    /// TLS.
    Tls(Arc<TlsServer>),
    /// WebSocket.
    Ws(WsServer),
    /// WebSocket over TLS.
    Wss(Arc<TlsServer>, WsServer),
}

impl ServerTransport {
    /// The TLS of it, if it has any.
    pub const fn tls(&self) -> Option<&Arc<TlsServer>> {
        match self {
            Self::Tls(tls) | Self::Wss(tls, _) => Some(tls),
            Self::Tcp | Self::Ws(_) => None,
        }
    }

    /// The filter of a new connection; plain TCP has none.
    ///
    /// # Errors
    /// When rustls cannot create a connection.
    pub fn filter(&self) -> io::Result<Option<Box<dyn Filter>>> {
        Ok(match self {
            Self::Tcp => None,
            Self::Tls(tls) => Some(Box::new(tls.filter()?)),
            Self::Ws(ws) => Some(Box::new(ws.filter())),
            Self::Wss(tls, ws) => Some(Box::new(Layers::new(tls.filter()?, ws.filter()))),
        })
    }
}
