//! Certificates of running listeners. They are reloaded when their files change; open connections
//! are not affected, but for those of clients whose own certificate is refused now.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use tacho_access::certificate_end_s;
use tacho_net::tls::TlsServer;
use tacho_net::{Remote, ServerTransport};

use crate::mail::Mail;

/// The certificates of all listeners of a broker. Cheap to clone.
#[derive(Clone)]
pub struct Certificates(Arc<Listeners>);

struct Listeners {
    servers: Mutex<Vec<Arc<TlsServer>>>,
    /// To the shards.
    remote: Remote<Mail>,
    failures: AtomicU64,
}

impl Certificates {
    /// Those of listeners, and further ones.
    pub(crate) fn of(
        transports: &[ServerTransport],
        others: Option<Arc<TlsServer>>,
        remote: Remote<Mail>,
    ) -> Self {
        let servers = transports.iter().filter_map(ServerTransport::tls).map(Arc::clone);
        let servers = Mutex::new(servers.chain(others).collect());
        Self(Arc::new(Listeners { servers, remote, failures: AtomicU64::new(0) }))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.servers().is_empty()
    }

    /// Those of another listener, if it has any.
    pub(crate) fn add(&self, server: Option<&Arc<TlsServer>>) {
        self.servers().extend(server.cloned());
    }

    fn servers(&self) -> MutexGuard<'_, Vec<Arc<TlsServer>>> {
        self.0.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files of the certificates in use, and when each ends, in seconds since 1970.
    pub(crate) fn ends(&self) -> Vec<(String, i64)> {
        let servers = self.servers();
        let ends = servers.iter().filter_map(|server| {
            let path = server.settings().cert.display().to_string();
            Some((path, certificate_end_s(&server.certificate())?))
        });
        // Several listeners may share one.
        ends.collect::<BTreeMap<_, _>>().into_iter().collect()
    }

    /// How often files could not be used.
    pub(crate) fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }

    /// Reloads the certificates, CAs and revocation lists whose files have changed, for connections
    /// accepted afterwards, and logs each. A file that cannot be used changes nothing. Clients
    /// whose certificates new CAs and revocation lists refuse are disconnected.
    pub fn reload(&self) -> Reloaded {
        let mut reloaded = Reloaded::default();
        let mut judges_anew = false;
        for server in &*self.servers() {
            let cert = server.settings().cert.display();
            match server.reload() {
                None => reloaded.unchanged += 1,
                Some(Ok(changed)) => {
                    reloaded.new += 1;
                    judges_anew |= changed.judges_anew;
                    let what = match changed.judges_anew {
                        true => " with the CAs and revocation lists of clients",
                        false => "",
                    };
                    tracing::info!("certificate {cert}{what} reloaded");
                }
                Some(Err(error)) => {
                    reloaded.unusable += 1;
                    self.0.failures.fetch_add(1, Ordering::Relaxed);
                    tracing::error!(
                        "cannot use the new certificate, CAs or revocation lists of the listener \
                         with {cert}, the old ones stay in use: {error}"
                    );
                }
            }
        }
        if judges_anew {
            for shard in 0..self.0.remote.shards() {
                self.0.remote.post(shard, Mail::CertificatesJudgedAnew);
            }
        }
        reloaded
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Certificates").field(&*self.servers()).finish()
    }
}

/// What reloading the certificates of all listeners did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Certificates that are used from now on.
    pub new: usize,
    /// Certificates whose files have not changed since they were last read.
    pub unchanged: usize,
    /// Certificates whose files cannot be used.
    pub unusable: usize,
}

impl fmt::Display for Reloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { new, unchanged, unusable } = *self;
        if *self == Self::default() {
            return f.write_str("no listener has a certificate");
        }
        write!(f, "certificates: {new} reloaded, {unchanged} unchanged, {unusable} unusable")
    }
}

/// The files that [`self_signed`] has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelfSigned {
    /// The CA that clients have to trust.
    pub ca: PathBuf,
    /// The certificate of the server.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl SelfSigned {
    /// The files in a folder, whether they are there or not.
    pub fn within(folder: &Path) -> Self {
        Self {
            ca: folder.join("ca.pem"),
            cert: folder.join("server.pem"),
            key: folder.join("server.key"),
        }
    }
}

/// For tests: writes a new CA and a certificate for this machine to `folder`. The key of the CA is
/// not kept, so it cannot sign anything else.
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
    let files = SelfSigned::within(folder);
    std::fs::create_dir_all(folder)?;
    std::fs::write(&files.ca, ca)?;
    std::fs::write(&files.cert, cert)?;
    write_secret(&files.key, &key)?;
    Ok(files)
}

/// PEM of a CA certificate, of a certificate signed by it, and of the key of the latter.
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

/// Writes a file that only its owner may read.
fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;

    // An existing file would keep its mode.
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
