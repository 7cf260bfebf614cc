//! Certificates for tests, in files as users have them.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer,
    KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber, date_time_ymd,
};
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
        params.distinguished_name.push(DnType::CommonName, name);
        let ca = folder.join(format!("{name}.pem"));
        std::fs::write(&ca, params.self_signed(&key).unwrap().pem()).unwrap();
        Self { ca, folder: folder.to_owned(), issuer: Issuer::new(params, key) }
    }

    pub fn issue(&self, file: &str, names: &[&str]) -> Identity {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        self.sign(file, CertificateParams::new(names).unwrap())
    }

    /// For a client: a certificate with this common name and serial number.
    pub fn issue_to(&self, common_name: &str, serial: u64) -> Identity {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.serial_number = Some(SerialNumber::from(serial));
        self.sign(&format!("client-{serial}"), params)
    }

    /// A certificate for `localhost` that is valid in these hours, counted from now.
    pub fn issue_for_hours(&self, file: &str, hours: Range<i64>) -> Identity {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let now_s = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let at = |hours: i64| {
            let unix_s = now_s.saturating_add_signed(hours * 3600);
            date_time_ymd(1970, 1, 1) + Duration::from_secs(unix_s)
        };
        (params.not_before, params.not_after) = (at(hours.start), at(hours.end));
        self.sign(file, params)
    }

    /// For a client: a certificate that ends so many seconds after 1970.
    pub fn issue_until(&self, common_name: &str, serial: u64, end_unix_s: u64) -> Identity {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.serial_number = Some(SerialNumber::from(serial));
        params.not_after = date_time_ymd(1970, 1, 1) + Duration::from_secs(end_unix_s);
        self.sign(&format!("client-{serial}"), params)
    }

    /// A certificate as `params` say, in files of this name.
    pub fn sign(&self, file: &str, params: CertificateParams) -> Identity {
        let key = KeyPair::generate().unwrap();
        let identity = Identity {
            cert: self.folder.join(format!("{file}.pem")),
            key: self.folder.join(format!("{file}.key")),
        };
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(&identity.cert, cert.pem()).unwrap();
        std::fs::write(&identity.key, key.serialize_pem()).unwrap();
        identity
    }

    /// A list that revokes the certificates with these serial numbers, in a file of this name.
    /// It is up to date until that year.
    pub fn revoke(&self, file: &str, serials: &[u64], until: i32) -> PathBuf {
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(until, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let path = self.folder.join(file);
        let list = list.signed_by(&self.issuer).unwrap();
        match file.ends_with(".der") {
            true => std::fs::write(&path, list.der()).unwrap(),
            false => std::fs::write(&path, list.pem().unwrap()).unwrap(),
        }
        path
    }
}

pub fn server(identity: &Identity, clients: ClientCertificates) -> TlsServer {
    TlsServer::new(TlsServerSettings {
        cert: identity.cert.clone(),
        key: identity.key.clone(),
        clients,
        client_crls: Vec::new(),
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
