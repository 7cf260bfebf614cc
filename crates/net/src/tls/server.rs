//! The server's side: its certificate, and which clients it lets in. Both can be replaced while
//! connections are open.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls::server::{NoClientAuth, WebPkiClientVerifier};
use rustls::{ServerConfig, ServerConnection};

use super::error::broken;
use super::{TlsError, TlsFilter, pem, provider};

/// How a server appears, and whom it asks for a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsServerSettings {
    /// PEM file of the certificate, with its chain.
    pub cert: PathBuf,
    /// PEM file of its private key.
    pub key: PathBuf,
    /// Whether clients show certificates.
    pub clients: ClientCertificates,
    /// Application protocols to choose from (ALPN), for clients that offer any.
    pub alpn: Vec<String>,
}

/// Whether clients show certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// They are not asked.
    Ignored,
    /// Those that show one must have it from a CA in this PEM file.
    Optional(PathBuf),
    /// All must show one from a CA in this PEM file.
    Required(PathBuf),
}

/// Accepts TLS connections.
#[derive(Debug)]
pub struct TlsServer {
    settings: TlsServerSettings,
    config: RwLock<Arc<ServerConfig>>,
    /// The files as they were when last looked at.
    seen: Mutex<Seen>,
}

/// The bytes of all files, or why they could not be read.
type Seen = Result<Files, String>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Files {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl TlsServer {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub fn new(settings: TlsServerSettings) -> Result<Self, TlsError> {
        let files = settings.read()?;
        let config = RwLock::new(Arc::new(settings.config(&files)?));
        Ok(Self { settings, config, seen: Mutex::new(Ok(files)) })
    }

    /// Where its certificates come from.
    pub const fn settings(&self) -> &TlsServerSettings {
        &self.settings
    }

    /// Reads the files again, for connections accepted from now on. `None` if nothing changed since
    /// the last look. After an error everything stays as it was.
    pub fn reload(&self) -> Option<Result<(), TlsError>> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let files = match self.settings.read() {
            Ok(files) => files,
            Err(error) => {
                let now = Err(error.to_string());
                let is_new = *seen != now;
                *seen = now;
                return is_new.then_some(Err(error));
            }
        };
        if seen.as_ref() == Ok(&files) {
            return None;
        }
        let config = self.settings.config(&files);
        *seen = Ok(files);
        Some(config.map(|config| {
            *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        }))
    }

    /// The filter of a new connection.
    ///
    /// # Errors
    /// When rustls cannot begin.
    pub fn filter(&self) -> io::Result<TlsFilter> {
        let config = Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner));
        let connection = ServerConnection::new(config).map_err(|error| broken(&error))?;
        Ok(TlsFilter::new(connection.into()))
    }
}

impl TlsServerSettings {
    fn client_ca(&self) -> Option<&PathBuf> {
        match &self.clients {
            ClientCertificates::Ignored => None,
            ClientCertificates::Optional(path) | ClientCertificates::Required(path) => Some(path),
        }
    }

    fn read(&self) -> Result<Files, TlsError> {
        Ok(Files {
            cert: pem::read(pem::CERTIFICATE, &self.cert)?,
            key: pem::read(pem::PRIVATE_KEY, &self.key)?,
            client_ca: self.client_ca().map(|path| pem::read(pem::AUTHORITY, path)).transpose()?,
        })
    }

    fn config(&self, files: &Files) -> Result<ServerConfig, TlsError> {
        let chain = pem::certificates(pem::CERTIFICATE, &self.cert, &files.cert)?;
        let key = pem::private_key(&self.key, &files.key)?;
        let verifier = match (self.client_ca(), &files.client_ca) {
            (Some(path), Some(pem)) => {
                let roots = Arc::new(pem::authorities(path, pem)?);
                let builder = WebPkiClientVerifier::builder_with_provider(roots, provider());
                let builder = match self.clients {
                    ClientCertificates::Required(_) => builder,
                    _ => builder.allow_unauthenticated(),
                };
                builder.build().map_err(|error| TlsError::Authorities {
                    path: path.clone(),
                    why: error.to_string(),
                })?
            }
            _ => Arc::new(NoClientAuth),
        };
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Settings(error.to_string()))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(|error| TlsError::Unusable {
                cert: self.cert.clone(),
                key: self.key.clone(),
                why: error.to_string(),
            })?;
        config.alpn_protocols = self.alpn.iter().map(|name| name.clone().into()).collect();
        Ok(config)
    }
}
