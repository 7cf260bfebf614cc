//! Listeners as in the file or a flag, and their checks.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;
use tacho_access::CertificateName;
use tacho_net::tls::{ClientCertificates, TlsServerSettings};
use tacho_net::ws::WsOrigins;

use super::raw_tls::{RawTls, paths};
use super::{Listener, Transport, shown};
use crate::config::address::{self, parse_address};
use crate::config::{
    AccessSettings, CertificateClientId, CertificateLogin, ConfigError, ConnectionLimits, Level,
    PublishExcess, PublishLimits, QueuePolicy, SocketSettings, TrustedProxies, origins,
};

/// The usual path of MQTT over WebSocket.
const PATH: &str = "/mqtt";

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
    /// The certificate is one that a proxy has verified, which tells its name in the PROXY header.
    pub certificate_from_proxy: Option<bool>,
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
    /// Name of the backend that decides the logins of this listener's clients, instead of the one
    /// without a name; "none": they have none.
    pub login_backend: Option<String>,
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
    /// Connections that wait to be accepted.
    pub backlog: Option<u32>,
    /// Bytes of each connection that wait to be sent.
    pub send_buffer_bytes: Option<u32>,
    /// Bytes of each connection that wait to be read.
    pub receive_buffer_bytes: Option<u32>,
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
            certificate_from_proxy: None,
            path: None,
            persistent_level: None,
            clean_level: None,
            persistent_queue_full: None,
            clean_queue_full: None,
            password_file: None,
            login_backend: None,
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
            backlog: None,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
        }
    }

    /// Checks the listener. `defaults` are the certificates in `[tls]`; `access` has the password
    /// file of all listeners.
    pub(in crate::config) fn resolve(
        self,
        defaults: &RawTls,
        access: &AccessSettings,
    ) -> Result<Listener, ConfigError> {
        let (persistent_level, clean_level) = (self.persistent_level, self.clean_level);
        let persistent_queue_full = self.persistent_queue_full;
        let clean_queue_full = self.clean_queue_full;
        let (proxies, origins) = (self.proxies()?, self.origins()?);
        let (connections, publish) = (self.connections().checked()?, self.publish()?);
        let sockets = self.sockets().checked()?;
        let login_backend = access.http.choose(self.login_backend.clone());
        let login_backend = login_backend.map_err(|what| self.wrong(what))?;
        let has_common_logins = access.jwt.is_some() || login_backend.index().is_some();
        let has_file = self.password_file.is_some() || access.password_file.is_some();
        let certificates = self.logins(has_file || has_common_logins)?;
        let Self { address, transport, cert, key, client_ca, require_client_certificate, .. } =
            self;
        let (path, client_crl) = (self.path, self.client_crl);
        let password_file = self.password_file.or_else(|| access.password_file.clone());
        let shown = || shown(transport, address);
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
        let has_own = certificates.is_some_and(|login| !login.from_proxy);
        if has_own && !tls.as_ref().is_some_and(asks) {
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
            login_backend,
            certificates,
            allow_anonymous,
            proxies,
            origins,
            connections,
            publish,
            sockets,
        })
    }

    /// How clients log in with certificates, if that fits together with the other ways to log in.
    fn logins(&self, has_others: bool) -> Result<Option<CertificateLogin>, ConfigError> {
        let listener = || shown(self.transport, self.address);
        let wrong = |what| ConfigError::CertificateLogin(listener(), what);
        let certificates = self.certificate_login().map_err(wrong)?;
        if certificates.is_some_and(|login| login.needs_password) && !has_others {
            return Err(wrong(
                "`certificate_password` needs a password file, [access.jwt] or [access.http]",
            ));
        }
        match self.allow_anonymous == Some(false) && !has_others && certificates.is_none() {
            true => Err(ConfigError::ClosedListener(listener())),
            false => Ok(certificates),
        }
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

    const fn sockets(&self) -> SocketSettings {
        SocketSettings {
            backlog: self.backlog,
            send_buffer_bytes: self.send_buffer_bytes,
            receive_buffer_bytes: self.receive_buffer_bytes,
        }
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
        let from_proxy = self.certificate_from_proxy.unwrap_or(false);
        if from_proxy && self.certificate_user != Some(CertificateName::Cn) {
            return Err(
                "`certificate_from_proxy` needs `certificate_user = \"cn\"`: proxies tell \
                        the common name only",
            );
        }
        if from_proxy && self.proxy_protocol != Some(true) {
            return Err(
                "`certificate_from_proxy` needs `proxy_protocol = true`: the name is in the \
                        header of the proxy",
            );
        }
        match self.certificate_user {
            Some(user) => Ok(Some(CertificateLogin {
                user,
                client_id: client_id.unwrap_or_default(),
                needs_password: password.unwrap_or(false),
                from_proxy,
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
