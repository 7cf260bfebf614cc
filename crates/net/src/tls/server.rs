//! The server's side: its certificate, and the check of clients' certificates. Both can be replaced
//! while connections are open.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls::server::{NoClientAuth, WebPkiClientVerifier};
use rustls::{ServerConfig, ServerConnection};

use super::error::{TlsError, connection_error};
use super::filter::TlsFilter;
use super::pem;
use super::provider::provider;

/// Settings of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsServerSettings {
    /// PEM file of the certificate, with its chain.
    pub cert: PathBuf,
    /// PEM file of its private key.
    pub key: PathBuf,
    /// Whether clients must have certificates.
    pub clients: ClientCertificates,
    /// Application protocols to choose from (ALPN), for clients that offer any.
    pub alpn: Vec<String>,
}

/// Whether clients must have certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// No certificate is requested.
    Ignored,
    /// A certificate is optional; it must be issued by a CA in this PEM file.
    Optional(PathBuf),
    /// A certificate is required; it must be issued by a CA in this PEM file.
    Required(PathBuf),
}

/// Accepts TLS connections.
#[derive(Debug)]
pub struct TlsServer {
    settings: TlsServerSettings,
    config: RwLock<Arc<ServerConfig>>,
    /// The files at the last reading.
    last_read: Mutex<LastRead>,
}

/// The content of all files, or the reason why they could not be read.
type LastRead = Result<Files, String>;

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
        Ok(Self { settings, config, last_read: Mutex::new(Ok(files)) })
    }

    /// The settings that it was created with.
    pub const fn settings(&self) -> &TlsServerSettings {
        &self.settings
    }

    /// Reads the files again, for connections accepted from now on. `None` if nothing has changed
    /// since the last reading. After an error the current certificates stay in use.
    pub fn reload(&self) -> Option<Result<(), TlsError>> {
        let mut last_read = self.last_read.lock().unwrap_or_else(PoisonError::into_inner);
        let files = match self.settings.read() {
            Ok(files) => files,
            Err(error) => {
                let now = Err(error.to_string());
                let is_new = *last_read != now;
                *last_read = now;
                return is_new.then_some(Err(error));
            }
        };
        if last_read.as_ref() == Ok(&files) {
            return None;
        }
        let config = self.settings.config(&files);
        *last_read = Ok(files);
        Some(config.map(|config| {
            *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        }))
    }

    /// The filter of a new connection.
    ///
    /// # Errors
    /// When rustls cannot create the connection.
    pub fn filter(&self) -> io::Result<TlsFilter> {
        let config = Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner));
        let connection = ServerConnection::new(config).map_err(|error| connection_error(&error))?;
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
