//! The certificates of a broker that listens by TLS, made by openssl.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::shell;

pub(super) const P256: &str = "ec_paramgen_curve:P-256";

/// Files in PEM form.
pub(super) struct ServerCertificates {
    pub(super) ca: String,
    pub(super) ca_key: String,
    pub(super) cert: String,
    pub(super) key: String,
}

impl ServerCertificates {
    /// A CA, and a certificate for 127.0.0.1 that it has signed, both with P-256 keys.
    pub(super) fn make(folder: &Path) -> Result<Self> {
        let [ca, ca_key, cert, key] = ["ca.pem", "ca.key", "server.pem", "server.key"]
            .map(|name| folder.join(name).display().to_string());
        let new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", P256, "-nodes", "-days", "30"];
        let of_ca = ["-subj", "/CN=Tacho bench CA", "-keyout", &ca_key, "-out", &ca];
        openssl(&[&new[..], &of_ca].concat())?;
        let name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
        let of_server = ["-addext", "basicConstraints=critical,CA:FALSE", "-CA", &ca];
        let files = ["-CAkey", &ca_key, "-keyout", &key, "-out", &cert];
        openssl(&[&new[..], &name, &of_server, &files].concat())?;
        Ok(Self { ca, ca_key, cert, key })
    }
}

pub(super) fn openssl(arguments: &[&str]) -> Result<()> {
    let program = shell::find("openssl").context("no openssl on this machine")?;
    shell::output(shell::command(program).args(arguments)).map(drop)
}
