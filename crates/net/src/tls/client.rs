//! The client's side: trusted authorities, and the client's own certificate.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::error::{TlsError, connection_error};
use super::filter::TlsFilter;
use super::identity::TlsIdentity;
use super::pem;
use super::provider::provider;

/// Settings of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsClientSettings {
    /// PEM file of certificates to trust, instead of the system's.
    pub ca: Option<PathBuf>,
    /// PEM file of the client's own certificate, with its chain.
    pub cert: Option<PathBuf>,
    /// PEM file of its private key.
    pub key: Option<PathBuf>,
    /// Accept any certificate.
    pub insecure: bool,
    /// The name or address that the server's certificate must be valid for; also sent to the server
    /// (SNI).
    pub server_name: String,
    /// Application protocols to offer (ALPN).
    pub alpn: Vec<String>,
    /// Resume no session: every handshake is a full one, as those of devices that connect for the
    /// first time.
    pub full_handshakes: bool,
}

/// Opens TLS connections to one server. They share their sessions: each may resume that of another,
/// unless all handshakes are to be full ones.
#[derive(Debug)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    server_name: ServerName<'static>,
    /// Its own certificate.
    own: Option<CertificateDer<'static>>,
}

impl TlsClient {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read or used, or the server name is not valid.
    pub fn new(settings: &TlsClientSettings) -> Result<Self, TlsError> {
        let server_name = ServerName::try_from(settings.server_name.clone())
            .map_err(|_| TlsError::ServerName(settings.server_name.clone()))?;
        let provider = provider();
        let verifier: Arc<dyn ServerCertVerifier> = match settings.insecure {
            true => Arc::new(AcceptAny(Arc::clone(&provider))),
            false => {
                let roots = Arc::new(roots(settings.ca.as_deref())?);
                WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
                    .build()
                    .map_err(|error| TlsError::Settings(error.to_string()))?
            }
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Settings(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut own = None;
        let mut config = match (&settings.cert, &settings.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(cert), Some(key)) => {
                let (chain, private) = pem::pair(cert, key)?;
                own = chain.first().cloned();
                builder.with_client_auth_cert(chain, private).map_err(|error| {
                    TlsError::Unusable {
                        cert: cert.clone(),
                        key: key.clone(),
                        why: error.to_string(),
                    }
                })?
            }
            _ => return Err(TlsError::CertificateWithoutKey),
        };
        if settings.full_handshakes {
            config.resumption = Resumption::disabled();
        }
        config.alpn_protocols = settings.alpn.iter().map(|name| name.clone().into()).collect();
        Ok(Self { config: Arc::new(config), server_name, own })
    }

    /// Its own certificate, in DER form and without its chain, if servers get one.
    pub fn certificate(&self) -> Option<&[u8]> {
        self.own.as_deref()
    }

    /// The filter of a new connection. It begins the handshake.
    ///
    /// # Errors
    /// When rustls cannot create the connection.
    pub fn filter(&self) -> io::Result<TlsFilter> {
        self.open(Arc::clone(&self.config))
    }

    /// As [`TlsClient::filter`], with the certificate of one of many clients. Every handshake is a
    /// full one: a session that resumed would tell the server nothing about the certificate.
    ///
    /// # Errors
    /// When rustls cannot create the connection.
    pub fn filter_as(&self, identity: &TlsIdentity) -> io::Result<TlsFilter> {
        let mut config = ClientConfig::clone(&self.config);
        config.client_auth_cert_resolver = identity.resolver();
        config.resumption = Resumption::disabled();
        self.open(Arc::new(config))
    }

    /// The settings of connections, for others that open them, and the name that the server's
    /// certificate must be valid for.
    pub fn config(&self) -> (Arc<ClientConfig>, ServerName<'static>) {
        (Arc::clone(&self.config), self.server_name.clone())
    }

    fn open(&self, config: Arc<ClientConfig>) -> io::Result<TlsFilter> {
        let connection = ClientConnection::new(config, self.server_name.clone());
        Ok(TlsFilter::new(connection.map_err(|error| connection_error(&error))?.into(), 0))
    }
}

fn roots(ca: Option<&Path>) -> Result<RootCertStore, TlsError> {
    if let Some(path) = ca {
        return pem::authorities(path, &pem::read(pem::AUTHORITY, path)?);
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match roots.is_empty() {
        true => Err(TlsError::NoAuthorities),
        false => Ok(roots),
    }
}

/// Accepts any certificate, but verifies that the server has its private key.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
