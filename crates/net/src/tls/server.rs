//! The server's side: its certificate, and the check of clients' certificates. Both can be replaced
//! while connections are open.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, WebPkiClientVerifier};
use rustls::{CertificateError, Error, RootCertStore, ServerConfig, ServerConnection};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};

use super::error::{TlsError, connection_error};
use super::filter::TlsFilter;
use super::pem;
use super::provider::provider;
use crate::peer_certificates::PeerCertificates;

/// Settings of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsServerSettings {
    /// PEM file of the certificate, with its chain.
    pub cert: PathBuf,
    /// PEM file of its private key.
    pub key: PathBuf,
    /// Whether clients must have certificates.
    pub clients: ClientCertificates,
    /// Files of revocation lists (PEM or DER). If there are any, each certificate of a client's
    /// chain must have a list of its issuer that is up to date and does not name it.
    pub client_crls: Vec<PathBuf>,
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
    current: RwLock<Arc<Current>>,
    in_use: Mutex<InUse>,
}

#[derive(Debug)]
struct InUse {
    /// Those that are in use.
    files: Files,
    last_read: LastRead,
}

/// What new connections get.
#[derive(Debug)]
struct Current {
    config: Arc<ServerConfig>,
    verifier: Arc<dyn ClientCertVerifier>,
    /// Counts the changes of CAs and revocation lists.
    trust: u32,
    /// The server's own certificate.
    own: CertificateDer<'static>,
}

/// What reading the files again has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsReloaded {
    /// CAs or revocation lists are others: certificates of clients that are connected may be
    /// refused now ([`TlsServer::still_accepts`]).
    pub judges_anew: bool,
}

/// What the last reading has found.
#[derive(Debug)]
enum LastRead {
    /// What is in use.
    InUse,
    /// What cannot be used.
    Unusable(Files),
    /// Nothing, for this reason.
    Unreadable(String),
}

#[derive(Debug, PartialEq, Eq)]
struct Files {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
    client_crls: Vec<Vec<u8>>,
}

impl Files {
    fn judge_like(&self, other: &Self) -> bool {
        self.client_ca == other.client_ca && self.client_crls == other.client_crls
    }
}

impl TlsServer {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub fn new(settings: TlsServerSettings) -> Result<Self, TlsError> {
        let files = settings.read()?;
        let current = RwLock::new(Arc::new(settings.open(&files, 0)?));
        let in_use = Mutex::new(InUse { files, last_read: LastRead::InUse });
        Ok(Self { settings, current, in_use })
    }

    /// The settings that it was created with.
    pub const fn settings(&self) -> &TlsServerSettings {
        &self.settings
    }

    /// Reads the files again, for connections accepted from now on. `None` if nothing has changed
    /// since the last reading. After an error the current certificates stay in use.
    pub fn reload(&self) -> Option<Result<TlsReloaded, TlsError>> {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        let files = match self.settings.read() {
            Ok(files) => files,
            Err(error) => {
                let why = error.to_string();
                let is_known =
                    matches!(&in_use.last_read, LastRead::Unreadable(known) if *known == why);
                in_use.last_read = LastRead::Unreadable(why);
                return (!is_known).then_some(Err(error));
            }
        };
        let is_known = match &in_use.last_read {
            LastRead::InUse => in_use.files == files,
            LastRead::Unusable(known) => *known == files,
            LastRead::Unreadable(_) => false,
        };
        if is_known {
            return None;
        }
        let judges_anew = !in_use.files.judge_like(&files);
        let trust = self.current().trust.wrapping_add(judges_anew.into());
        Some(match self.settings.open(&files, trust) {
            Ok(current) => {
                *in_use = InUse { files, last_read: LastRead::InUse };
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(current);
                Ok(TlsReloaded { judges_anew })
            }
            Err(error) => {
                in_use.last_read = LastRead::Unusable(files);
                Err(error)
            }
        })
    }

    /// The filter of a new connection.
    ///
    /// # Errors
    /// When rustls cannot create the connection.
    pub fn filter(&self) -> io::Result<TlsFilter> {
        let current = self.current();
        let connection = ServerConnection::new(Arc::clone(&current.config));
        let connection = connection.map_err(|error| connection_error(&error))?;
        Ok(TlsFilter::new(connection.into(), current.trust))
    }

    /// The settings of connections from now on, for others that accept them.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current().config)
    }

    /// Whether the certificates of a peer would be accepted now: it is not revoked, has not
    /// expired, and its CA is trusted. This verifies signatures if CAs or revocation lists have
    /// changed since the handshake, and costs nothing otherwise. A peer is not refused because a
    /// list is missing or out of date: only new connections are.
    pub fn still_accepts(&self, peer: &PeerCertificates<'_>) -> bool {
        let current = self.current();
        let Some((own, issuers)) = peer.chain.split_first() else { return true };
        if peer.trust == current.trust {
            return true;
        }
        match current.verifier.verify_client_cert(own, issuers, UnixTime::now()) {
            Ok(_) => true,
            Err(Error::InvalidCertificate(error)) => matches!(
                error,
                CertificateError::UnknownRevocationStatus
                    | CertificateError::ExpiredRevocationList
                    | CertificateError::ExpiredRevocationListContext { .. }
            ),
            Err(_) => false,
        }
    }

    /// The certificate that new connections get, in DER form and without its chain.
    pub fn certificate(&self) -> Vec<u8> {
        self.current().own.to_vec()
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
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
        let lists = self.client_crls.iter();
        let client_crls = lists.map(|path| pem::read(pem::REVOCATION_LIST, path));
        Ok(Files {
            cert: pem::read(pem::CERTIFICATE, &self.cert)?,
            key: pem::read(pem::PRIVATE_KEY, &self.key)?,
            client_ca: self.client_ca().map(|path| pem::read(pem::AUTHORITY, path)).transpose()?,
            client_crls: client_crls.collect::<Result<_, _>>()?,
        })
    }

    fn open(&self, files: &Files, trust: u32) -> Result<Current, TlsError> {
        let chain = pem::certificates(pem::CERTIFICATE, &self.cert, &files.cert)?;
        let key = pem::private_key(&self.key, &files.key)?;
        // Invariant: a file without certificates is an error.
        let own = chain[0].clone();
        let verifier: Arc<dyn ClientCertVerifier> = match (self.client_ca(), &files.client_ca) {
            (Some(path), Some(pem)) => self.verifier(path, pem, &files.client_crls)?,
            _ => Arc::new(NoClientAuth),
        };
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Settings(error.to_string()))?
            .with_client_cert_verifier(Arc::clone(&verifier))
            .with_single_cert(chain, key)
            .map_err(|error| TlsError::Unusable {
                cert: self.cert.clone(),
                key: self.key.clone(),
                why: error.to_string(),
            })?;
        config.alpn_protocols = self.alpn.iter().map(|name| name.clone().into()).collect();
        Ok(Current { config: Arc::new(config), verifier, trust, own })
    }

    fn verifier(
        &self,
        ca: &Path,
        pem: &[u8],
        lists: &[Vec<u8>],
    ) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        let roots = Arc::new(pem::authorities(ca, pem)?);
        let mut by_file = Vec::new();
        for (path, bytes) in self.client_crls.iter().zip(lists) {
            by_file.push((path, pem::revocation_lists(path, bytes)?));
        }
        let all = by_file.iter().flat_map(|(_, of_file)| of_file).cloned().collect();
        self.build(&roots, all).map_err(|why| {
            // Each by itself, for an error that names the file.
            let named = by_file.into_iter().find_map(|(path, of_file)| {
                let why = self.build(&roots, of_file).err()?;
                Some(TlsError::RevocationList { path: path.clone(), why })
            });
            named.unwrap_or_else(|| TlsError::Authorities { path: ca.to_owned(), why })
        })
    }

    fn build(
        &self,
        roots: &Arc<RootCertStore>,
        lists: Vec<CertificateRevocationListDer<'static>>,
    ) -> Result<Arc<dyn ClientCertVerifier>, String> {
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider())
            .with_crls(lists)
            .enforce_revocation_expiration();
        let builder = match self.clients {
            ClientCertificates::Required(_) => builder,
            _ => builder.allow_unauthenticated(),
        };
        builder.build().map_err(|error| error.to_string())
    }
}
