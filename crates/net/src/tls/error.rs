//! Errors of certificates and handshakes, with a message for the user.

use std::io;
use std::path::PathBuf;

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read the {what} {}: {source}", path.display())]
    Read {
        /// Its expected content.
        what: &'static str,
        /// As given.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file is not the PEM file that it should be.
    #[error("{} is not a {what} in PEM form: {why}", path.display())]
    Pem {
        /// Its expected content.
        what: &'static str,
        /// As given.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A file does not contain the expected item.
    #[error("there is no {what} in {}", path.display())]
    Empty {
        /// Its expected content.
        what: &'static str,
        /// As given.
        path: PathBuf,
    },
    /// A certificate and a key do not belong together or cannot be used.
    #[error("the certificate {} with the key {} cannot be used: {why}", cert.display(), key.display())]
    Unusable {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The reason.
        why: String,
    },
    /// The key of a CA cannot sign certificates.
    #[error(
        "the private key {} of the CA cannot sign certificates: it must be RSA, P-256, P-384 or \
         Ed25519 in PKCS#8 form ('openssl pkcs8 -topk8 -nodes' converts it)",
        .0.display()
    )]
    AuthorityKey(PathBuf),
    /// The certificates to trust cannot be used.
    #[error("the CA certificates in {} cannot be used: {why}", path.display())]
    Authorities {
        /// As given.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A revocation list cannot be used.
    #[error("the revocation list {} cannot be used: {why}", path.display())]
    RevocationList {
        /// As given.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The system has no certificates to trust.
    #[error(
        "this system has no CA certificates to trust: give the broker's CA certificate as a file"
    )]
    NoAuthorities,
    /// The server name is neither a host name nor an address.
    #[error("'{0}' is neither a host name nor an address that a certificate can be checked for")]
    ServerName(String),
    /// Only one of certificate and key was given.
    #[error("a certificate needs its private key, and a key its certificate: give both files")]
    CertificateWithoutKey,
    /// rustls refused the settings.
    #[error("TLS cannot be set up: {0}")]
    Settings(String),
}

/// The error that ends a connection. Its message says which side has to change what.
pub(super) fn connection_error(error: &Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {}", message(error)))
}

fn message(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "the peer's certificate is not trusted because its issuer is unknown: trust the CA \
             that issued it"
                .to_owned()
        }
        Error::InvalidCertificate(CertificateError::BadSignature) => {
            "the peer's certificate is not trusted because the trusted CA of that name has not \
             signed it: check whether the CA was created again"
                .to_owned()
        }
        Error::InvalidCertificate(CertificateError::Revoked) => {
            "the peer's certificate is revoked".to_owned()
        }
        Error::InvalidCertificate(CertificateError::UnknownRevocationStatus) => {
            "the peer's certificate is refused because there is no revocation list of its issuer: \
             add it to `client_crl`"
                .to_owned()
        }
        Error::InvalidCertificate(
            CertificateError::ExpiredRevocationList
            | CertificateError::ExpiredRevocationListContext { .. },
        ) => "the peer's certificate is refused because the revocation list of its issuer is out \
              of date: renew the file in `client_crl`"
            .to_owned(),
        Error::InvalidCertificate(why) => format!("the peer's certificate is not valid: {why}"),
        Error::NoCertificatesPresented => "the peer has sent no certificate".to_owned(),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the peer does not speak TLS here".to_owned()
        }
        Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired => {
                "the peer requires a certificate from us".to_owned()
            }
            AlertDescription::UnknownCA => {
                "the peer does not trust the CA of our certificate".to_owned()
            }
            AlertDescription::BadCertificate
            | AlertDescription::DecryptError
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown => {
                format!("the peer refused our certificate ({alert:?})")
            }
            AlertDescription::NoApplicationProtocol => {
                "the peer supports none of the application protocols offered (ALPN)".to_owned()
            }
            AlertDescription::HandshakeFailure => {
                "the peer refused the handshake: it may require a certificate from us, or \
                 have no cipher in common"
                    .to_owned()
            }
            _ => format!("the peer refused with the alert {alert:?}"),
        },
        other => other.to_string(),
    }
}
