//! Certificates of single clients: from files, or signed by a CA for tests.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use rustls::client::ResolvesClientCert;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::error::TlsError;
use super::pem;
use super::provider::provider;

/// A certificate with its private key, which one of many clients presents. Its text form has
/// neither.
#[derive(Clone)]
pub struct TlsIdentity(Arc<dyn ResolvesClientCert>);

impl TlsIdentity {
    /// Reads a certificate, with its chain, and its private key from PEM files.
    ///
    /// # Errors
    /// A file cannot be read, or the two do not belong together.
    pub fn read(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let (chain, private) = pem::pair(cert, key)?;
        Self::new(chain, private).map_err(|error| unusable(cert, key, &error))
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        private: PrivateKeyDer<'static>,
    ) -> Result<Self, rustls::Error> {
        let certified = CertifiedKey::from_der(chain, private, &provider())?;
        Ok(Self(Arc::new(SingleCertAndKey::from(certified))))
    }

    pub(super) fn resolver(&self) -> Arc<dyn ResolvesClientCert> {
        Arc::clone(&self.0)
    }
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsIdentity")
    }
}

/// A CA for tests: it signs certificates of clients, which live as long as the program. Its text
/// form has the names of its files only.
pub struct TestAuthority {
    cert: PathBuf,
    key: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl TestAuthority {
    /// Reads the certificate of the CA and its private key from PEM files.
    ///
    /// # Errors
    /// A file cannot be read, the two do not belong together, or the key cannot sign here.
    pub fn read(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let (chain, private) = pem::pair(cert, key)?;
        let (cert, key) = (cert.to_owned(), key.to_owned());
        let pair = KeyPair::try_from(&private).map_err(|_| TlsError::AuthorityKey(key.clone()))?;
        // rcgen does not compare the two.
        CertifiedKey::from_der(chain.clone(), private, &provider())
            .map_err(|error| unusable(&cert, &key, &error))?;
        // Invariant: a file without a certificate is refused when it is read.
        let own = chain.first().expect("a chain has a certificate");
        let issuer = Issuer::from_ca_cert_der(own, pair).map_err(|error| {
            TlsError::Authorities { path: cert.clone(), why: error.to_string() }
        })?;
        Ok(Self { cert, key, issuer })
    }

    /// Signs a certificate of a new key with this common name as its subject.
    ///
    /// # Errors
    /// The CA cannot sign it.
    pub fn issue(&self, common_name: &str) -> Result<TlsIdentity, TlsError> {
        let signed = || -> Result<_, rcgen::Error> {
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::CommonName, common_name);
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            let pair = KeyPair::generate()?;
            let cert = params.signed_by(&pair, &self.issuer)?;
            Ok((vec![cert.der().clone()], PrivateKeyDer::from(pair)))
        };
        let (chain, private) = signed().map_err(|error| {
            TlsError::Settings(format!("the CA cannot sign a certificate: {error}"))
        })?;
        TlsIdentity::new(chain, private).map_err(|error| unusable(&self.cert, &self.key, &error))
    }
}

impl fmt::Debug for TestAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TestAuthority").field(&self.cert).field(&self.key).finish()
    }
}

fn unusable(cert: &Path, key: &Path, error: &rustls::Error) -> TlsError {
    TlsError::Unusable { cert: cert.to_owned(), key: key.to_owned(), why: error.to_string() }
}
