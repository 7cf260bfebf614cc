//! Reading PEM files.

use std::path::Path;

use rustls::RootCertStore;
use rustls_pki_types::pem::{Error, PemObject};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

use super::error::TlsError;

pub(super) const CERTIFICATE: &str = "certificate";
pub(super) const PRIVATE_KEY: &str = "private key";
pub(super) const AUTHORITY: &str = "CA certificate";
pub(super) const REVOCATION_LIST: &str = "revocation list";

pub(super) fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read { what, path: path.to_owned(), source })
}

pub(super) fn certificates(
    what: &'static str,
    path: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| bad(what, path, &error))?;
    match found.is_empty() {
        true => Err(TlsError::Empty { what, path: path.to_owned() }),
        false => Ok(found),
    }
}

pub(super) fn private_key(path: &Path, pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
        Error::NoItemsFound => TlsError::Empty { what: PRIVATE_KEY, path: path.to_owned() },
        error => bad(PRIVATE_KEY, path, &error),
    })
}

/// A certificate with its chain, and its private key.
pub(super) fn pair(
    cert: &Path,
    key: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let chain = certificates(CERTIFICATE, cert, &read(CERTIFICATE, cert)?)?;
    Ok((chain, private_key(key, &read(PRIVATE_KEY, key)?)?))
}

pub(super) fn authorities(path: &Path, pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(AUTHORITY, path, pem)? {
        roots.add(certificate).map_err(|error| TlsError::Authorities {
            path: path.to_owned(),
            why: error.to_string(),
        })?;
    }
    Ok(roots)
}

/// Of a file in PEM form with one or more lists, or in DER form with one.
pub(super) fn revocation_lists(
    path: &Path,
    bytes: &[u8],
) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    const SEQUENCE: u8 = 0x30;
    if bytes.first() == Some(&SEQUENCE) {
        return Ok(vec![bytes.to_vec().into()]);
    }
    let what = REVOCATION_LIST;
    let found: Vec<_> = CertificateRevocationListDer::pem_slice_iter(bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| bad(what, path, &error))?;
    match found.is_empty() {
        true => Err(TlsError::Empty { what, path: path.to_owned() }),
        false => Ok(found),
    }
}

fn bad(what: &'static str, path: &Path, error: &Error) -> TlsError {
    TlsError::Pem { what, path: path.to_owned(), why: error.to_string() }
}
