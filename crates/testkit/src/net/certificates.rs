//! Certificates for tests, in files as users have them.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tacho_net::tls::{
    ClientCertificates, TlsClient, TlsClientSettings, TlsServer, TlsServerSettings,
};

/// A CA with its certificate in a file.
pub struct Authority {
    pub ca: PathBuf,
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
#[derive(Clone)]
pub struct Identity {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    pub fn new(folder: &Path, name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let ca = folder.join(format!("{name}.pem"));
        std::fs::write(&ca, params.self_signed(&key).unwrap().pem()).unwrap();
        Self { ca, folder: folder.to_owned(), issuer: Issuer::new(params, key) }
    }

    pub fn issue(&self, file: &str, names: &[&str]) -> Identity {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).unwrap();
        let identity = Identity {
            cert: self.folder.join(format!("{file}.pem")),
            key: self.folder.join(format!("{file}.key")),
        };
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(&identity.cert, cert.pem()).unwrap();
        std::fs::write(&identity.key, key.serialize_pem()).unwrap();
        identity
    }
}

pub fn server(identity: &Identity, clients: ClientCertificates) -> TlsServer {
    TlsServer::new(TlsServerSettings {
        cert: identity.cert.clone(),
        key: identity.key.clone(),
        clients,
        alpn: vec!["mqtt".to_owned()],
    })
    .unwrap()
}

/// Settings of a client that trusts `ca` to be `localhost`.
pub fn trusting(ca: &Path) -> TlsClientSettings {
    TlsClientSettings {
        ca: Some(ca.to_owned()),
        server_name: "localhost".to_owned(),
        ..TlsClientSettings::default()
    }
}

pub fn client(settings: &TlsClientSettings) -> TlsClient {
    TlsClient::new(settings).unwrap()
}
