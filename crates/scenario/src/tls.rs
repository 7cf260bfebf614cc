//! How connections are encrypted, and the certificates of the clients: from files, or signed by a
//! CA for tests. Private keys are written nowhere.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tacho_load::{TestAuthority, TlsIdentity};

use super::template::{ClientPlace, Template};

/// Certificates that a scenario holds at once.
const CERTIFICATES_MAX: usize = 250_000;

/// How connections to the broker are encrypted. Only `mqtts://` and `wss://` look at it.
///
/// Files are PEM; their paths count from the current directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TlsOptions {
    /// Certificates to trust, instead of the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// The clients' certificate, with its chain; the name of the file may differ from client to
    /// client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<Template>,
    /// The private key to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Template>,
    /// Instead of files: a CA that signs a certificate for each client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_ca: Option<TestCa>,
    /// Accept any certificate of the broker.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// The name that the broker's certificate must have, instead of the host's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Application protocols to offer (ALPN).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alpn: Vec<String>,
    /// Clients resume the TLS sessions of others, instead of a full handshake each.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resume: bool,
    /// Those of the clients' own that are read or signed already.
    #[serde(skip)]
    pub certificates: Certificates,
}

/// A CA for tests that signs a certificate for each client when a run begins.
#[derive(Clone, Serialize)]
pub struct TestCa {
    cert: PathBuf,
    key: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    common_name: Option<Template>,
    #[serde(skip)]
    authority: Arc<TestAuthority>,
}

/// Certificates that are read or signed already; copies of a scenario share them.
#[derive(Clone, Default)]
pub struct Certificates(Arc<Mutex<HashMap<CertificateOrigin, TlsIdentity>>>);

#[derive(Clone, PartialEq, Eq, Hash)]
enum CertificateOrigin {
    Files { cert: PathBuf, key: PathBuf },
    Signed { by: PathBuf, common_name: String },
}

impl TestCa {
    /// Reads certificate and private key of the CA; without a common name that of a client is its
    /// user name or client identifier.
    ///
    /// # Errors
    /// A sentence that names the file, when it cannot be read or the key cannot sign.
    pub fn read(cert: &Path, key: &Path, common_name: Option<Template>) -> Result<Self, String> {
        let authority = TestAuthority::read(cert, key).map_err(|error| error.to_string())?;
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.into());
        let (cert, key, authority) = (absolute(cert), absolute(key), Arc::new(authority));
        Ok(Self { cert, key, common_name, authority })
    }
}

/// Never the key.
impl fmt::Debug for TestCa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TestCa").field(&self.authority).field(&self.common_name).finish()
    }
}

impl PartialEq for TestCa {
    fn eq(&self, other: &Self) -> bool {
        (&self.cert, &self.key, &self.common_name) == (&other.cert, &other.key, &other.common_name)
    }
}

impl Eq for TestCa {}

impl Certificates {
    /// The certificate from `source`, which `make` makes where it is not there yet.
    fn get(
        &self,
        (source, max): (CertificateOrigin, usize),
        make: impl FnOnce() -> Result<TlsIdentity, String>,
    ) -> Result<TlsIdentity, String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(identity) = known.get(&source) {
            return Ok(identity.clone());
        }
        if known.len() >= max {
            return Err(format!("at most {max} certificates are held in memory"));
        }
        let identity = make()?;
        known.insert(source, identity.clone());
        Ok(identity)
    }
}

/// How many there are.
impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_tuple("Certificates").field(&known.len()).finish()
    }
}

/// What is read already makes no difference.
impl PartialEq for Certificates {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Certificates {}

impl TlsOptions {
    /// Why `resume` and certificates of the clients' own exclude each other.
    pub const NOT_RESUMED: &str = "clients with certificates of their own resume no session";

    /// Is nothing said?
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The files of the one certificate of all clients, if they share one.
    pub fn shared_certificate(&self) -> Option<(PathBuf, PathBuf)> {
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) if !self.is_per_client() => {
                Some((cert.expand(0).into(), key.expand(0).into()))
            }
            _ => None,
        }
    }

    /// Whether each client has a certificate of its own.
    pub fn is_per_client(&self) -> bool {
        let files = [&self.cert, &self.key];
        self.test_ca.is_some() || files.into_iter().flatten().any(|file| !file.is_plain())
    }

    /// The certificate of one client, if it is its own; `name` is its user name or client
    /// identifier. It is read or signed when it is asked for first.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub(crate) fn certificate(
        &self,
        place: ClientPlace,
        name: impl FnOnce() -> String,
    ) -> Result<Option<TlsIdentity>, String> {
        if !self.is_per_client() {
            return Ok(None);
        }
        if let Some(ca) = &self.test_ca {
            let common_name =
                ca.common_name.as_ref().map_or_else(name, |text| text.expand_at(place));
            let source =
                CertificateOrigin::Signed { by: ca.cert.clone(), common_name: common_name.clone() };
            let sign = || ca.authority.issue(&common_name).map_err(|error| error.to_string());
            return self.certificates.get((source, CERTIFICATES_MAX), sign).map(Some);
        }
        let path = |file: &Option<Template>| {
            PathBuf::from(file.as_ref().map(|file| file.expand_at(place)).unwrap_or_default())
        };
        let (cert, key) = (path(&self.cert), path(&self.key));
        let source = CertificateOrigin::Files { cert: cert.clone(), key: key.clone() };
        let read = || TlsIdentity::read(&cert, &key).map_err(|error| error.to_string());
        self.certificates.get((source, CERTIFICATES_MAX), read).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_made_once_and_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let (cert, key) = (folder.path().join("ca.pem"), folder.path().join("ca.key"));
        let pair = rcgen::KeyPair::generate().expect("a key");
        let own = rcgen::CertificateParams::default().self_signed(&pair).expect("signs");
        std::fs::write(&cert, own.pem()).expect("is written");
        std::fs::write(&key, pair.serialize_pem()).expect("is written");
        let ca = TestCa::read(&cert, &key, None).expect("can sign");
        let written = toml::to_string(&ca).expect("a table");
        assert!(!format!("{written}{ca:?}").contains("PRIVATE"), "{written}");
        let certificates = Certificates::default();
        let source = |name: &str| CertificateOrigin::Signed {
            by: cert.clone(),
            common_name: name.to_owned(),
        };
        let sign = |name: &str| ca.authority.issue(name).map_err(|error| error.to_string());
        for name in ["a", "b"] {
            certificates.get((source(name), 2), || sign(name)).expect("signs");
            certificates.get((source(name), 2), || Err("twice".to_owned())).expect("is there");
        }
        let error = certificates.get((source("c"), 2), || sign("c")).expect_err("is full");
        assert!(error.contains("at most 2"), "{error}");
    }
}
