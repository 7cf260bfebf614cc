//! Listeners: addresses and transports for clients.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use tacho_access::CertificateName;
use tacho_net::ServerTransport;
use tacho_net::tls::{ClientCertificates, TlsError, TlsServer, TlsServerSettings};
use tacho_net::ws::{WsOrigins, WsServer};

use super::address::{self, parse_address};
use super::{
    AccessSettings, CertificateClientId, CertificateLogin, ConfigError, ConnectionLimits, Level,
    PublishExcess, PublishLimits, QueuePolicy, TrustedProxies, origins,
};

/// The usual path of MQTT over WebSocket.
const PATH: &str = "/mqtt";
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

/// One entry of `[[listeners]]` as in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawListener {
    /// `host:port`, or a port on 127.0.0.1.
    #[serde(deserialize_with = "address::address")]
    pub address: SocketAddr,
    /// Transport.
    #[serde(default)]
    pub transport: Transport,
    /// PEM file of the certificate, instead of the one in `[tls]`.
    pub cert: Option<PathBuf>,
    /// PEM file of the private key of the certificate.
    pub key: Option<PathBuf>,
    /// PEM file of CAs, instead of the one in `[tls]`.
    pub client_ca: Option<PathBuf>,
    /// Replaces the setting in `[tls]`.
    pub require_client_certificate: Option<bool>,
    /// Files of revocation lists, instead of those in `[tls]`.
    #[serde(default, deserialize_with = "paths")]
    pub client_crl: Option<Vec<PathBuf>>,
    /// Which part of a client's certificate names its user.
    pub certificate_user: Option<CertificateName>,
    /// What the client identifier has to do with that user.
    pub certificate_client_id: Option<CertificateClientId>,
    /// The user has to log in by password or token, too.
    pub certificate_password: Option<bool>,
    /// Path of the WebSocket.
    pub path: Option<String>,
    /// Durability level of persistent sessions of this listener, instead of the common one.
    pub persistent_level: Option<Level>,
    /// Durability level of sessions that end with their connection, instead of the common one.
    pub clean_level: Option<Level>,
    /// What becomes of messages for a persistent session of this listener whose queue is full,
    /// instead of the common policy.
    pub persistent_queue_full: Option<QueuePolicy>,
    /// The same for a session that ends with its connection.
    pub clean_queue_full: Option<QueuePolicy>,
    /// Password file for the clients of this listener, instead of the one in `[access]`.
    pub password_file: Option<PathBuf>,
    /// Admits clients without credentials: beside a password file, or where there is none although
    /// the listener is not on loopback.
    pub allow_anonymous: Option<bool>,
    /// Connections are those of proxies, and begin with a header of the PROXY protocol.
    pub proxy_protocol: Option<bool>,
    /// Ranges of addresses of these proxies; others are refused.
    pub proxy_trusted: Option<Vec<String>>,
    /// Origins of the web pages that may open WebSockets; without it all may.
    pub origins: Option<Vec<String>>,
    /// Requests without an origin, which are not of web pages, are refused, too.
    pub origin_required: Option<bool>,
    /// Connections at once; more are refused.
    pub connections_max: Option<u32>,
    /// New connections per second; more are refused.
    pub connections_per_s_max: Option<u32>,
    /// Connections at once of one address (IPv6: /64).
    pub connections_per_address_max: Option<u32>,
    /// New connections per second of one address.
    pub connections_per_address_per_s_max: Option<u32>,
    /// Messages that each client may publish per second.
    pub publish_messages_per_s_max: Option<u32>,
    /// Messages that it may publish at once; as many as per second unless it is set.
    pub publish_messages_burst: Option<u32>,
    /// Bytes of PUBLISH packets that each client may send per second.
    pub publish_bytes_per_s_max: Option<u32>,
    /// Bytes that it may send at once; as many as per second unless it is set.
    pub publish_bytes_burst: Option<u32>,
    /// What becomes of a client that publishes more.
    pub publish_excess: Option<PublishExcess>,
}

/// `[tls]` as in the file: the certificates of the listeners that configure none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RawTls {
    /// PEM file of the certificate, with its chain.
    pub cert: Option<PathBuf>,
    /// PEM file of the private key.
    pub key: Option<PathBuf>,
    /// PEM file of the CAs of accepted client certificates.
    pub client_ca: Option<PathBuf>,
    /// Clients must present a certificate.
    pub require_client_certificate: Option<bool>,
    /// Files of the lists of certificates that their CAs have revoked.
    #[serde(deserialize_with = "paths")]
    pub client_crl: Option<Vec<PathBuf>>,
    /// Seconds between two checks of the files; 0: only on SIGHUP.
    pub check_s: Option<u32>,
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

impl RawListener {
    /// A listener without certificates and path.
    pub const fn new(transport: Transport, address: SocketAddr) -> Self {
        Self {
            address,
            transport,
            cert: None,
            key: None,
            client_ca: None,
            require_client_certificate: None,
            client_crl: None,
            certificate_user: None,
            certificate_client_id: None,
            certificate_password: None,
            path: None,
            persistent_level: None,
            clean_level: None,
            persistent_queue_full: None,
            clean_queue_full: None,
            password_file: None,
            allow_anonymous: None,
            proxy_protocol: None,
            proxy_trusted: None,
            origins: None,
            origin_required: None,
            connections_max: None,
            connections_per_s_max: None,
            connections_per_address_max: None,
            connections_per_address_per_s_max: None,
            publish_messages_per_s_max: None,
            publish_messages_burst: None,
            publish_bytes_per_s_max: None,
            publish_bytes_burst: None,
            publish_excess: None,
        }
    }

    /// Checks the listener. `defaults` are the certificates in `[tls]`; `access` has the password
    /// file of all listeners.
    pub(super) fn resolve(
        self,
        defaults: &RawTls,
        access: &AccessSettings,
    ) -> Result<Listener, ConfigError> {
        let (persistent_level, clean_level) = (self.persistent_level, self.clean_level);
        let persistent_queue_full = self.persistent_queue_full;
        let clean_queue_full = self.clean_queue_full;
        let certificates = self.certificate_login();
        let (proxies, origins) = (self.proxies()?, self.origins()?);
        let (connections, publish) = (self.connections().checked()?, self.publish()?);
        let Self { address, transport, cert, key, client_ca, require_client_certificate, .. } =
            self;
        let (path, client_crl) = (self.path, self.client_crl);
        let password_file = self.password_file.or_else(|| access.password_file.clone());
        let has_common_logins = access.has_common_logins();
        let shown = || shown(transport, address);
        let certificates =
            certificates.map_err(|what| ConfigError::CertificateLogin(shown(), what))?;
        let has_logins = password_file.is_some() || has_common_logins;
        if certificates.is_some_and(|login| login.needs_password) && !has_logins {
            let what =
                "`certificate_password` needs a password file, [access.jwt] or [access.http]";
            return Err(ConfigError::CertificateLogin(shown(), what));
        }
        if self.allow_anonymous == Some(false) && !has_logins && certificates.is_none() {
            return Err(ConfigError::ClosedListener(shown()));
        }
        let allow_anonymous = self.allow_anonymous.unwrap_or(false);
        let tls =
            RawTls { cert, key, client_ca, require_client_certificate, client_crl, check_s: None };
        if !transport.uses_tls() && tls != RawTls::default() {
            return Err(ConfigError::UselessCertificate(shown()));
        }
        let path = match (transport.is_web_socket(), path) {
            (true, path) => Some(path.unwrap_or_else(|| PATH.to_owned())),
            (false, None) => None,
            (false, Some(_)) => return Err(ConfigError::UselessPath(shown())),
        };
        if let Some(bad) = path.as_ref().filter(|path| !is_path(path)) {
            return Err(ConfigError::BadPath { listener: shown(), path: bad.clone() });
        }
        let tls = match transport.uses_tls() {
            true => Some(tls.or(defaults).settings(transport, address)?),
            false => None,
        };
        let asks = |tls: &TlsServerSettings| tls.clients != ClientCertificates::Ignored;
        if certificates.is_some() && !tls.as_ref().is_some_and(asks) {
            let what = "`certificate_user` needs TLS and the CA of the certificates (`client_ca`)";
            return Err(ConfigError::CertificateLogin(shown(), what));
        }
        Ok(Listener {
            address,
            transport,
            tls,
            path,
            persistent_level,
            clean_level,
            persistent_queue_full,
            clean_queue_full,
            password_file,
            has_common_logins,
            certificates,
            allow_anonymous,
            proxies,
            origins,
            connections,
            publish,
        })
    }

    fn publish(&self) -> Result<PublishLimits, ConfigError> {
        let limits = PublishLimits {
            messages_per_s_max: self.publish_messages_per_s_max,
            messages_burst: self.publish_messages_burst,
            bytes_per_s_max: self.publish_bytes_per_s_max,
            bytes_burst: self.publish_bytes_burst,
            excess: PublishExcess::default(),
        };
        limits.checked(self.publish_excess).map_err(|what| self.wrong(what))
    }

    fn wrong(&self, what: String) -> ConfigError {
        ConfigError::Listener { listener: shown(self.transport, self.address), what }
    }

    const fn connections(&self) -> ConnectionLimits {
        ConnectionLimits {
            max: self.connections_max,
            per_s_max: self.connections_per_s_max,
            per_address_max: self.connections_per_address_max,
            per_address_per_s_max: self.connections_per_address_per_s_max,
        }
    }

    fn origins(&self) -> Result<Option<WsOrigins>, ConfigError> {
        let is_web_socket = self.transport.is_web_socket();
        origins::resolve(self.origins.clone(), self.origin_required, is_web_socket)
            .map_err(|what| self.wrong(what))
    }

    fn proxies(&self) -> Result<Option<TrustedProxies>, ConfigError> {
        let trusted = self.proxy_trusted.as_deref();
        TrustedProxies::resolve(self.proxy_protocol, trusted, self.address)
            .map_err(|what| self.wrong(what))
    }

    /// How clients log in with their certificates, or which key has no use.
    fn certificate_login(&self) -> Result<Option<CertificateLogin>, &'static str> {
        let (client_id, password) = (self.certificate_client_id, self.certificate_password);
        match self.certificate_user {
            Some(user) => Ok(Some(CertificateLogin {
                user,
                client_id: client_id.unwrap_or_default(),
                needs_password: password.unwrap_or(false),
            })),
            None if client_id.is_none() && password.is_none() => Ok(None),
            None => Err("`certificate_client_id` and `certificate_password` need \
                         `certificate_user`"),
        }
    }
}

fn is_path(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"?#".contains(&byte);
    path.starts_with('/') && path.bytes().all(plain)
}

fn shown(transport: Transport, address: SocketAddr) -> String {
    format!("{}://{address}", transport.name())
}

impl RawTls {
    /// Takes unset values from `defaults`; a certificate and its key are taken together.
    fn or(self, defaults: &Self) -> Self {
        let own = self.cert.is_some() || self.key.is_some();
        let pick = |mine: Option<PathBuf>, theirs: &Option<PathBuf>| match own {
            true => mine,
            false => theirs.clone(),
        };
        Self {
            cert: pick(self.cert, &defaults.cert),
            key: pick(self.key, &defaults.key),
            client_ca: self.client_ca.or_else(|| defaults.client_ca.clone()),
            require_client_certificate: self
                .require_client_certificate
                .or(defaults.require_client_certificate),
            client_crl: self.client_crl.or_else(|| defaults.client_crl.clone()),
            check_s: None,
        }
    }

    fn settings(
        self,
        transport: Transport,
        address: SocketAddr,
    ) -> Result<TlsServerSettings, ConfigError> {
        let (Some(cert), Some(key)) = (self.cert, self.key) else {
            return Err(ConfigError::NoCertificate(shown(transport, address)));
        };
        let required = self.require_client_certificate.unwrap_or(false);
        let clients = match (self.client_ca, required) {
            (Some(path), true) => ClientCertificates::Required(path),
            (Some(path), false) => ClientCertificates::Optional(path),
            (None, false) => ClientCertificates::Ignored,
            (None, true) => {
                return Err(ConfigError::NoClientAuthority(shown(transport, address)));
            }
        };
        let client_crls = self.client_crl.unwrap_or_default();
        if clients == ClientCertificates::Ignored && !client_crls.is_empty() {
            return Err(ConfigError::UselessRevocationList(shown(transport, address)));
        }
        // Browsers negotiate HTTP before they request a WebSocket.
        let alpn = if transport == Transport::Wss { "http/1.1" } else { "mqtt" };
        Ok(TlsServerSettings { cert, key, clients, client_crls, alpn: vec![alpn.to_owned()] })
    }
}

impl Listener {
    /// Whether it has its own durability levels.
    pub(super) const fn has_levels(&self) -> bool {
        self.persistent_level.is_some() || self.clean_level.is_some()
    }

    /// Whether it has settings that a plain address cannot express. A password file that is not
    /// only its own counts too: to name it twice does no harm.
    pub(super) fn has_own_rules(&self) -> bool {
        self.has_levels()
            || self.persistent_queue_full.is_some()
            || self.clean_queue_full.is_some()
            || self.password_file.is_some()
            || self.certificates.is_some()
            || self.allow_anonymous
            || self.proxies.is_some()
            || self.connections.is_any()
            || self.publish.is_any()
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

    /// The listener in the format of the configuration file.
    pub(super) fn describe(&self) -> String {
        let mut text = format!(
            "\n[[listeners]]\naddress = \"{}\"\ntransport = \"{}\"\n",
            self.address,
            self.transport.name()
        );
        let mut line = |key: &str, value: &dyn fmt::Display| {
            // Quoted as TOML does it.
            let value = toml::Value::String(value.to_string());
            text.push_str(&format!("{key} = {value}\n"));
        };
        if let Some(tls) = &self.tls {
            line("cert", &tls.cert.display());
            line("key", &tls.key.display());
            match &tls.clients {
                ClientCertificates::Ignored => {}
                ClientCertificates::Optional(path) | ClientCertificates::Required(path) => {
                    line("client_ca", &path.display());
                }
            }
        }
        if let Some(path) = &self.path {
            line("path", path);
        }
        if let Some(level) = &self.persistent_level {
            line("persistent_level", level);
        }
        if let Some(level) = &self.clean_level {
            line("clean_level", level);
        }
        if let Some(policy) = &self.persistent_queue_full {
            line("persistent_queue_full", policy);
        }
        if let Some(policy) = &self.clean_queue_full {
            line("clean_queue_full", policy);
        }
        if let Some(path) = &self.password_file {
            line("password_file", &path.display());
        }
        if self.allow_anonymous {
            text.push_str("allow_anonymous = true\n");
        }
        text.push_str(&self.describe_certificates());
        if let Some(proxies) = &self.proxies {
            text.push_str(&proxies.describe());
        }
        if let Some(origins) = &self.origins {
            text.push_str(&origins::describe(origins));
        }
        text.push_str(&self.connections.describe());
        text.push_str(&self.publish.describe());
        if let Some(TlsServerSettings { clients: ClientCertificates::Required(_), .. }) = &self.tls
        {
            text.push_str("require_client_certificate = true\n");
        }
        text
    }

    /// What it does with certificates of clients.
    fn describe_certificates(&self) -> String {
        let mut text = String::new();
        if let Some(tls) = self.tls.as_ref().filter(|tls| !tls.client_crls.is_empty()) {
            let lists: Vec<String> =
                tls.client_crls.iter().map(|path| path.display().to_string()).collect();
            text.push_str(&format!("client_crl = {}\n", toml::Value::from(lists)));
        }
        if let Some(CertificateLogin { user, client_id, needs_password }) = self.certificates {
            // Invariant: words, which TOML can always express.
            let [user, client_id] = [toml::Value::try_from(user), toml::Value::try_from(client_id)]
                .map(|word| word.map_or_else(|_| String::new(), |word| word.to_string()));
            text.push_str(&format!(
                "certificate_user = {user}\ncertificate_client_id = {client_id}\n\
                 certificate_password = {needs_password}\n"
            ));
        }
        text
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

/// `host:port`, `tls://host:port`, `ws://host:port/path`: a listener as a flag.
impl FromStr for RawListener {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (transport, rest) = match text.split_once("://") {
            None => (Transport::Tcp, text),
            Some(("tcp" | "mqtt", rest)) => (Transport::Tcp, rest),
            Some(("tls" | "ssl" | "mqtts", rest)) => (Transport::Tls, rest),
            Some(("ws", rest)) => (Transport::Ws, rest),
            Some(("wss", rest)) => (Transport::Wss, rest),
            Some((other, _)) => {
                return Err(format!("'{other}' is not a transport: use tcp, tls, ws or wss"));
            }
        };
        let (address, path) = match rest.find('/') {
            Some(at) if transport.is_web_socket() => (&rest[..at], Some(rest[at..].to_owned())),
            _ => (rest, None),
        };
        Ok(Self { path, ..Self::new(transport, parse_address(address)?) })
    }
}

/// A path in a file, or a list of them.
fn paths<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<PathBuf>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Paths {
        One(PathBuf),
        Several(Vec<PathBuf>),
    }
    Ok(Some(match Paths::deserialize(from)? {
        Paths::One(path) => vec![path],
        Paths::Several(paths) => paths,
    }))
}
