//! `[management]`: the management API.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tacho_net::tls::{ClientCertificates, TlsServer, TlsServerSettings};

use super::{ConfigError, address, check_range};

/// As many as scripts and pages need; a client that asks without end gets 429.
const REQUESTS_PER_S_MAX: u32 = 100;

/// `[management]`. Without it there is no API.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ManagementSettings {
    /// The Unix socket: a process that may open it may do everything. Absent: there is none;
    /// `tacho broker` has one all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<ManagementSocket>,
    /// Where the API is served by HTTP to programs with a key: on loopback, or with TLS.
    #[serde(deserialize_with = "address::maybe_address", skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Folder of what the API stores: its keys and bans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<PathBuf>,
    /// PEM file of the certificate for `listen`, with its chain: it is served by HTTPS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    /// PEM file of the private key of that certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// Requests per second of one key, and of all that bring none.
    pub requests_per_s_max: u32,
}

impl Default for ManagementSettings {
    fn default() -> Self {
        let (socket, listen, store, cert, key) = Default::default();
        Self { socket, listen, store, cert, key, requests_per_s_max: REQUESTS_PER_S_MAX }
    }
}

/// Where the Unix socket of the management API is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum ManagementSocket {
    /// There is none.
    None,
    /// In the folder for such sockets, named after the port of the first listener.
    Auto,
    /// There.
    Path(PathBuf),
}

impl FromStr for ManagementSocket {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "auto" => Ok(Self::Auto),
            path if path.starts_with('/') => Ok(Self::Path(path.into())),
            other => {
                Err(format!("'{other}' is neither `auto` nor `none` nor a path that begins with /"))
            }
        }
    }
}

impl TryFrom<String> for ManagementSocket {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ManagementSocket> for String {
    fn from(socket: ManagementSocket) -> Self {
        socket.to_string()
    }
}

impl fmt::Display for ManagementSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Auto => f.write_str("auto"),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

impl ManagementSettings {
    /// Reads the certificate of the API, if it has one.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub fn open_tls(&self) -> Result<Option<Arc<TlsServer>>, ConfigError> {
        let (Some(cert), Some(key)) = (self.cert.clone(), self.key.clone()) else {
            return Ok(None);
        };
        let (clients, client_crls) = (ClientCertificates::Ignored, Vec::new());
        let alpn = vec!["http/1.1".to_owned()];
        let settings = TlsServerSettings { cert, key, clients, client_crls, alpn };
        let server = TlsServer::new(settings).map_err(ConfigError::ManagementCertificate)?;
        Ok(Some(Arc::new(server)))
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let per_s = self.requests_per_s_max.into();
        check_range("management.requests_per_s_max", per_s, 1, 1_000_000, "from 1 to 1000000")?;
        let has_tls = match (&self.cert, &self.key) {
            (None, None) => false,
            (Some(_), Some(_)) if self.listen.is_some() => true,
            (Some(_), Some(_)) => return Err(ConfigError::UselessManagementCertificate),
            _ => return Err(ConfigError::HalfManagementCertificate),
        };
        let Some(listen) = self.listen else { return Ok(()) };
        if !listen.ip().is_loopback() && !has_tls {
            return Err(ConfigError::OpenManagement(listen));
        }
        match self.store {
            Some(_) => Ok(()),
            None => Err(ConfigError::NoManagementStore),
        }
    }
}
