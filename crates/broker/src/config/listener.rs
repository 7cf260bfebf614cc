//! Listeners: addresses and transports for clients.

mod describe;
mod raw;
mod raw_tls;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tacho_net::ServerTransport;
use tacho_net::tls::{TlsError, TlsServer, TlsServerSettings};
use tacho_net::ws::{WsOrigins, WsServer};

use super::{
    CertificateLogin, ConnectionLimits, Level, ListenerBackend, PublishLimits, QueuePolicy,
    SocketSettings, TrustedProxies,
};

pub use raw::RawListener;
pub(super) use raw_tls::KEYS as TLS_KEYS;
pub use raw_tls::RawTls;

/// Names of MQTT in the WebSocket handshake; the second is that of MQTT 3.1.
const SUBPROTOCOLS: [&str; 2] = ["mqtt", "mqttv3.1"];

/// A transport of MQTT packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// TLS.
    Tls,
    /// WebSocket.
    Ws,
    /// WebSocket over TLS.
    Wss,
}

/// A complete and checked listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Address.
    pub address: SocketAddr,
    /// Transport.
    pub transport: Transport,
    /// Certificates, for `tls` and `wss`.
    pub tls: Option<TlsServerSettings>,
    /// WebSocket path, for `ws` and `wss`.
    pub path: Option<String>,
    /// Durability level of persistent sessions, if not the common one.
    pub persistent_level: Option<Level>,
    /// Durability level of sessions that end with their connection, if not the common one.
    pub clean_level: Option<Level>,
    /// What becomes of messages for a persistent session whose queue is full, if not by the common
    /// policy.
    pub persistent_queue_full: Option<QueuePolicy>,
    /// The same for a session that ends with its connection.
    pub clean_queue_full: Option<QueuePolicy>,
    /// Password file: clients log in with it.
    pub password_file: Option<PathBuf>,
    /// Clients log in with tokens, or by a backend behind HTTP.
    pub has_common_logins: bool,
    /// The backend that decides their logins.
    pub login_backend: ListenerBackend,
    /// Clients log in with their certificates.
    pub certificates: Option<CertificateLogin>,
    /// Whether clients without credentials are admitted although others log in, or although the
    /// listener is not on loopback.
    pub allow_anonymous: bool,
    /// Connections begin with a PROXY header, and are those of these proxies.
    pub proxies: Option<TrustedProxies>,
    /// The web pages that may open WebSockets, if not all may.
    pub origins: Option<WsOrigins>,
    /// How many connections it has.
    pub connections: ConnectionLimits,
    /// How much each client may publish.
    pub publish: PublishLimits,
    /// What it asks of the kernel.
    pub sockets: SocketSettings,
}

impl Transport {
    /// Its name, as in `tls://127.0.0.1:8883`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Ws => "ws",
            Self::Wss => "wss",
        }
    }

    /// Whether connections are encrypted.
    pub const fn uses_tls(self) -> bool {
        matches!(self, Self::Tls | Self::Wss)
    }

    const fn is_web_socket(self) -> bool {
        matches!(self, Self::Ws | Self::Wss)
    }
}

impl Listener {
    /// Whether it has its own durability levels.
    pub(crate) const fn has_levels(&self) -> bool {
        self.persistent_level.is_some() || self.clean_level.is_some()
    }

    /// Whether it has settings that a plain address cannot express. A password file that is not
    /// only its own counts too: to name it twice does no harm.
    pub(super) fn has_own_rules(&self) -> bool {
        self.has_levels()
            || self.persistent_queue_full.is_some()
            || self.clean_queue_full.is_some()
            || self.password_file.is_some()
            || self.login_backend.is_named()
            || self.certificates.is_some()
            || self.allow_anonymous
            || self.proxies.is_some()
            || self.connections.is_any()
            || self.publish.is_any()
            || self.sockets.is_any()
    }

    /// Whether other machines reach it, perhaps by a proxy, without logging in, and it does not say
    /// itself that they may.
    pub(super) fn needs_consent(&self) -> bool {
        let has_logins =
            self.password_file.is_some() || self.has_common_logins || self.certificates.is_some();
        let is_reached = !self.address.ip().is_loopback() || self.proxies.is_some();
        is_reached && !has_logins && !self.allow_anonymous
    }

    /// Reads its certificates.
    pub(crate) fn open(&self) -> Result<ServerTransport, TlsError> {
        let tls = self.tls.clone().map(TlsServer::new).transpose()?.map(Arc::new);
        let ws = self.path.clone().map(|path| {
            let protocols = SUBPROTOCOLS.map(str::to_owned).to_vec();
            WsServer { path, protocols, origins: self.origins.clone() }
        });
        Ok(match (tls, ws) {
            (None, None) => ServerTransport::Tcp,
            (Some(tls), None) => ServerTransport::Tls(tls),
            (None, Some(ws)) => ServerTransport::Ws(ws),
            (Some(tls), Some(ws)) => ServerTransport::Wss(tls, ws),
        })
    }
}

/// `127.0.0.1:1883` for TCP, `wss://127.0.0.1:8084/mqtt` for others.
impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.as_deref().unwrap_or_default();
        match self.transport {
            Transport::Tcp => write!(f, "{}", self.address),
            transport => write!(f, "{}://{}{path}", transport.name(), self.address),
        }
    }
}

/// A listener as errors name it.
fn shown(transport: Transport, address: SocketAddr) -> String {
    format!("{}://{address}", transport.name())
}
