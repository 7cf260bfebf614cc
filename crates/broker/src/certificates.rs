//! Certificates of running listeners: read again when their files change, without touching
//! connections that are open.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use tacho_net::ServerTransport;
use tacho_net::tls::TlsServer;

/// The certificates of all listeners of a broker. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Certificates(Arc<[Arc<TlsServer>]>);

impl Certificates {
    pub(crate) fn of(transports: &[ServerTransport]) -> Self {
        let servers = transports.iter().filter_map(|transport| match transport {
            ServerTransport::Tls(tls) | ServerTransport::Wss(tls, _) => Some(Arc::clone(tls)),
            ServerTransport::Tcp | ServerTransport::Ws(_) => None,
        });
        Self(servers.collect())
    }

    /// Reads those again whose files have changed, for connections accepted from now on, and logs
    /// what came of it. A file that cannot be used changes nothing.
    pub fn reload(&self) {
        for server in &*self.0 {
            let cert = server.settings().cert.display();
            match server.reload() {
                None => {}
                Some(Ok(())) => tracing::info!("the certificate {cert} was loaded again"),
                Some(Err(error)) => {
                    tracing::error!("the certificate in use is kept, the new one is bad: {error}");
                }
            }
        }
    }
}

/// Looks for changed files from time to time, on a thread of its own; ends when dropped.
pub(crate) struct Watcher {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// `None` if there is nothing to look at, or `every` is zero.
    pub(crate) fn start(certificates: &Certificates, every: Duration) -> io::Result<Option<Self>> {
        if certificates.0.is_empty() || every.is_zero() {
            return Ok(None);
        }
        let certificates = certificates.clone();
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("certificates".to_owned())
            .spawn(move || watch(&certificates, every, &stopped))?;
        Ok(Some(Self { stop: Some(stop), thread: Some(thread) }))
    }
}

fn watch(certificates: &Certificates, every: Duration, stopped: &Receiver<()>) {
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(every) {
        certificates.reload();
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It only waits and logs.
            let _ = thread.join();
        }
    }
}

/// Where [`self_signed`] has left its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelfSigned {
    /// For clients to trust.
    pub ca: PathBuf,
    /// The server's certificate.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// For tests: makes a CA of its own and a certificate for this machine, and leaves them in
/// `folder`. The CA's key is forgotten: it signs nothing else, ever.
///
/// # Errors
/// The files cannot be written.
pub fn self_signed(
    folder: &Path,
    addresses: impl IntoIterator<Item = IpAddr>,
) -> io::Result<SelfSigned> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    for address in addresses.into_iter().filter(|address| !address.is_unspecified()) {
        let name = address.to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let (ca, cert, key) = generate(names).map_err(io::Error::other)?;
    let files = SelfSigned {
        ca: folder.join("ca.pem"),
        cert: folder.join("server.pem"),
        key: folder.join("server.key"),
    };
    std::fs::create_dir_all(folder)?;
    std::fs::write(&files.ca, ca)?;
    std::fs::write(&files.cert, cert)?;
    write_secret(&files.key, &key)?;
    Ok(files)
}

/// PEM of a CA certificate, a certificate from it, and the latter's key.
fn generate(names: Vec<String>) -> Result<(String, String, String), rcgen::Error> {
    let ca_key = KeyPair::generate()?;
    let mut ca = CertificateParams::default();
    ca.distinguished_name.push(DnType::CommonName, "Tacho test CA");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let ca_pem = ca.self_signed(&ca_key)?.pem();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate()?;
    let mut server = CertificateParams::new(names)?;
    server.distinguished_name.push(DnType::CommonName, "Tacho test broker");
    server.use_authority_key_identifier_extension = true;
    let cert = server.signed_by(&key, &issuer)?;
    Ok((ca_pem, cert.pem(), key.serialize_pem()))
}

/// Nobody else may read a private key.
fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;

    // A file that is there keeps its mode, so it must not be there.
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}
