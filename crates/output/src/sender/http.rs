//! Requests to a service.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use ureq::http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use ureq::http::{HeaderName, HeaderValue};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig, TlsProvider};

use super::answer::{HttpAnswer, Service, Uptake};
use crate::target::{AccessHeaders, HttpTarget, TargetError};

/// More of an answer is not read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// How bodies are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compressed {
    No,
    Gzip,
    Snappy,
}

/// A service that bodies are posted to.
#[derive(Debug)]
pub(super) struct HttpSink {
    service: Service,
    url: String,
    agent: ureq::Agent,
    headers: AccessHeaders,
    timeout: Duration,
    compressed: Compressed,
}

impl HttpSink {
    /// Reads secrets and certificates; nothing is asked yet.
    pub(super) fn new(
        service: Service,
        kind: &'static str,
        target: &HttpTarget,
    ) -> Result<Self, TargetError> {
        let mut headers = target.access.headers(|name| std::env::var(name).ok())?;
        let compressed = match (service, target.gzip) {
            (Service::Prometheus, _) => Compressed::Snappy,
            (_, true) => Compressed::Gzip,
            (_, false) => Compressed::No,
        };
        let mut own = |name: HeaderName, value: &'static str| {
            headers.push((name, HeaderValue::from_static(value)));
        };
        own(USER_AGENT, concat!("tacho/", env!("CARGO_PKG_VERSION")));
        match service {
            Service::Influx => own(CONTENT_TYPE, "text/plain; charset=utf-8"),
            Service::Prometheus | Service::Otlp => own(CONTENT_TYPE, "application/x-protobuf"),
        }
        if service == Service::Prometheus {
            own(HeaderName::from_static("x-prometheus-remote-write-version"), "0.1.0");
        }
        match compressed {
            Compressed::No => {}
            Compressed::Gzip => own(CONTENT_ENCODING, "gzip"),
            Compressed::Snappy => own(CONTENT_ENCODING, "snappy"),
        }
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // A redirected POST would become a GET.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(target.timeout));
        if target.url.starts_with("https://") {
            config = config.tls_config(tls(kind, target.ca_file.as_deref())?);
        }
        Ok(Self {
            service,
            url: target.url.clone(),
            agent: config.build().into(),
            headers,
            timeout: target.timeout,
            compressed,
        })
    }

    /// How long one request takes at most.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Compresses a body as the service wants it.
    pub(super) fn pack(&self, bytes: Vec<u8>) -> Vec<u8> {
        match self.compressed {
            Compressed::No => bytes,
            Compressed::Gzip => {
                let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
                // Invariant: writing to memory does not fail.
                let written = packed.write_all(&bytes).and_then(|()| packed.finish());
                written.expect("memory takes everything")
            }
            Compressed::Snappy => snap::raw::Encoder::new()
                .compress_vec(&bytes)
                // Invariant: it fails above 4 GiB only, and bodies are bounded far below.
                .expect("a body has less than 4 GiB"),
        }
    }

    /// Posts a packed body of that many `records`.
    pub(super) fn deliver(&self, body: &[u8], records: u64) -> Uptake {
        let mut request = self.agent.post(&self.url);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let answer = request.send(body).map(|mut answer| {
            let said = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
            // What the status says counts, also where the rest is unusable.
            (answer, said.unwrap_or_default())
        });
        match answer {
            Ok((answer, body)) => {
                let retry_after = answer.headers().get(RETRY_AFTER);
                let retry_after = retry_after.and_then(|value| value.to_str().ok());
                let status = answer.status().as_u16();
                self.service.judge(HttpAnswer { status, retry_after, body: &body }, records)
            }
            Err(ureq::Error::BadUri(why)) => Uptake::Refused { why },
            Err(error) => Uptake::Later { why: error.to_string(), after: None },
        }
    }
}

/// Trust in the system's certificates, or in those of a file.
fn tls(kind: &'static str, ca_file: Option<&Path>) -> Result<TlsConfig, TargetError> {
    tls_config(ca_file, None).map_err(|why| {
        let path = ca_file.map(Path::to_owned).unwrap_or_default();
        TargetError::File { kind, path, why }
    })
}

/// For requests by HTTPS: trust in the system's certificates, or in those of a PEM file, and the
/// certificate that services which ask for one get.
///
/// # Errors
/// Why the file of certificates cannot be used.
pub fn tls_config(ca_file: Option<&Path>, own: Option<ClientCert>) -> Result<TlsConfig, String> {
    let certificates = match ca_file {
        None => owned(&rustls_native_certs::load_native_certs().certs),
        Some(path) => certificates_of(path)?,
    };
    Ok(TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::Specific(Arc::new(certificates)))
        .client_cert(own)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}

/// A certificate with its chain, and its private key, of PEM files.
///
/// # Errors
/// Why one of the files cannot be used, with its path.
pub fn tls_identity(cert_file: &Path, key_file: &Path) -> Result<ClientCert, String> {
    let in_file = |path: &Path, why: String| format!("{}: {why}", path.display());
    let chain = certificates_of(cert_file).map_err(|why| in_file(cert_file, why))?;
    let text = std::fs::read(key_file).map_err(|error| in_file(key_file, error.to_string()))?;
    let unusable = || in_file(key_file, "it has no private key in PEM".to_owned());
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|_| unusable())?;
    let own = chain.iter().map(|one| CertificateDer::from(one.der().to_vec())).collect();
    // A key of another certificate would be noticed with the first connection, by a panic.
    CertifiedKey::from_der(own, key, &rustls::crypto::ring::default_provider())
        .map_err(|error| in_file(key_file, error.to_string()))?;
    let key = PrivateKey::from_pem(&text).map_err(|_| unusable())?;
    Ok(ClientCert::new_with_certs(&chain, key))
}

fn certificates_of(path: &Path) -> Result<Vec<Certificate<'static>>, String> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| error.to_string())?;
    match certificates.is_empty() {
        true => Err("it has no certificate".to_owned()),
        false => Ok(owned(&certificates)),
    }
}

fn owned(certificates: &[CertificateDer<'static>]) -> Vec<Certificate<'static>> {
    certificates.iter().map(|one| Certificate::from_der(one).to_owned()).collect()
}
