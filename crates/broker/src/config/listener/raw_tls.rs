//! Certificates of listeners as in the file.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer};
use tacho_net::tls::{ClientCertificates, TlsServerSettings};

use super::{Transport, shown};
use crate::config::Applies::{self, Live, Restart};
use crate::config::ConfigError;

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

/// When a change of each takes effect.
pub(in crate::config) const KEYS: [(&str, Applies); 6] = [
    ("cert", Live),
    ("key", Live),
    ("client_ca", Live),
    ("require_client_certificate", Live),
    ("client_crl", Live),
    ("check_s", Restart),
];

impl RawTls {
    /// Takes unset values from `defaults`; a certificate and its key are taken together.
    pub(super) fn or(self, defaults: &Self) -> Self {
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

    pub(super) fn settings(
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

/// A path in a file, or a list of them.
pub(super) fn paths<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<PathBuf>>, D::Error> {
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
