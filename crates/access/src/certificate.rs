//! The user that a client's certificate names.
//!
//! The certificate is one that the TLS library has verified. A name that two readers could take
//! for different ones is refused: one of several, one with a NUL or another control character, one
//! in an encoding that is not UTF-8.

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde::{Deserialize, Serialize};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// Which part of a certificate names the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CertificateName {
    /// The common name of the subject.
    Cn,
    /// The whole subject, in the form of RFC 2253 that `openssl x509 -nameopt RFC2253` shows.
    Subject,
    /// The URI among the alternative names of the subject.
    SanUri,
    /// The host name among them.
    SanDns,
    /// The e-mail address among them.
    SanEmail,
}

/// Why a certificate names no user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// It is no certificate that can be read.
    #[error("the certificate cannot be read")]
    Malformed,
    /// The part that should name the user is not there, or is empty.
    #[error("the certificate has no {}", .0.words())]
    Missing(CertificateName),
    /// It is there more than once.
    #[error("the certificate has more than one {}: it is not clear which one counts", .0.words())]
    Ambiguous(CertificateName),
    /// It contains a character that is not allowed in a name, or is not UTF-8.
    #[error(
        "the {} of the certificate contains a control character, or is not in UTF-8",
        .0.words()
    )]
    Characters(CertificateName),
}

/// The first certificate of a file in PEM form, or the one of a file in DER form.
pub fn certificate_of_file(bytes: &[u8]) -> Option<Vec<u8>> {
    match CertificateDer::from_pem_slice(bytes) {
        Ok(certificate) => Some(certificate.to_vec()),
        Err(_) => X509Certificate::from_der(bytes).is_ok().then(|| bytes.to_vec()),
    }
}

/// When a certificate (DER) ends, in seconds since 1970. `None` if it cannot be read.
pub fn certificate_end_s(der: &[u8]) -> Option<i64> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

impl CertificateName {
    const fn words(self) -> &'static str {
        match self {
            Self::Cn => "common name",
            Self::Subject => "subject",
            Self::SanUri => "URI as an alternative name",
            Self::SanDns => "DNS name as an alternative name",
            Self::SanEmail => "e-mail address as an alternative name",
        }
    }

    /// The user that a certificate (DER) names.
    ///
    /// # Errors
    /// There is no name of this kind, or not exactly one that all take for the same.
    pub fn of(self, der: &[u8]) -> Result<String, CertificateError> {
        let (_, certificate) =
            X509Certificate::from_der(der).map_err(|_| CertificateError::Malformed)?;
        self.checked(match self {
            Self::Cn => self.common_name(&certificate)?,
            Self::Subject => {
                subject(certificate.subject()).ok_or(CertificateError::Characters(self))?
            }
            Self::SanUri | Self::SanDns | Self::SanEmail => self.alternative(&certificate)?,
        })
    }

    /// The user that a name from a certificate stands for, where a proxy has read the certificate.
    ///
    /// # Errors
    /// It is none that all take for the same.
    pub fn of_text(self, name: &[u8]) -> Result<String, CertificateError> {
        let name = std::str::from_utf8(name).map_err(|_| CertificateError::Characters(self))?;
        self.checked(name.to_owned())
    }

    fn checked(self, name: String) -> Result<String, CertificateError> {
        if name.is_empty() {
            return Err(CertificateError::Missing(self));
        }
        if name.chars().any(char::is_control) {
            return Err(CertificateError::Characters(self));
        }
        Ok(name)
    }

    fn common_name(self, certificate: &X509Certificate<'_>) -> Result<String, CertificateError> {
        let name = self.only(certificate.subject().iter_common_name())?;
        let text = name.as_str().map_err(|_| CertificateError::Characters(self))?;
        Ok(text.to_owned())
    }

    fn alternative(self, certificate: &X509Certificate<'_>) -> Result<String, CertificateError> {
        let names = certificate.subject_alternative_name();
        let names = names.map_err(|_| CertificateError::Malformed)?;
        let names = names.ok_or(CertificateError::Missing(self))?;
        // Bytes of such a name that are not UTF-8 count as a name, too.
        let of_kind = names.value.general_names.iter().filter_map(|name| match (self, name) {
            (Self::SanUri, GeneralName::URI(text))
            | (Self::SanDns, GeneralName::DNSName(text))
            | (Self::SanEmail, GeneralName::RFC822Name(text)) => Some(Some(*text)),
            (_, GeneralName::Invalid(..)) => Some(None),
            _ => None,
        });
        self.only(of_kind)?.map(str::to_owned).ok_or(CertificateError::Characters(self))
    }

    fn only<T>(self, mut names: impl Iterator<Item = T>) -> Result<T, CertificateError> {
        match (names.next(), names.next()) {
            (None, _) => Err(CertificateError::Missing(self)),
            (Some(name), None) => Ok(name),
            (Some(_), Some(_)) => Err(CertificateError::Ambiguous(self)),
        }
    }
}

/// A subject as RFC 2253 writes it, the last part first; `None` if a part is not UTF-8. As in the
/// output of OpenSSL, bytes beyond ASCII are written as `\` and two digits.
fn subject(name: &X509Name<'_>) -> Option<String> {
    let mut text = String::new();
    let parts: Vec<_> = name.iter_rdn().collect();
    for part in parts.iter().rev() {
        let values: Vec<_> = part.iter().collect();
        for (at, value) in values.iter().rev().enumerate() {
            if !text.is_empty() {
                text.push(if at == 0 { ',' } else { '+' });
            }
            write_attribute(&mut text, value)?;
        }
    }
    Some(text)
}

/// The attributes that have a short name; others are written by their number, with the encoding of
/// their value.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.42", "GN"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

fn write_attribute(text: &mut String, attribute: &AttributeTypeAndValue<'_>) -> Option<()> {
    let number = attribute.attr_type().to_id_string();
    let known = SHORT_NAMES.iter().find(|(known, _)| *known == number);
    let Some((_, short_name)) = known else {
        text.push_str(&number);
        text.push_str("=#");
        let value = attribute.attr_value();
        // The encoding of lengths and classes of such values is more than a name needs.
        let [tag, len] = [u8::try_from(value.tag().0).ok()?, u8::try_from(value.data.len()).ok()?];
        if tag >= 0x1f || len >= 0x80 {
            return None;
        }
        for byte in [tag, len].iter().chain(value.data) {
            text.push_str(&format!("{byte:02X}"));
        }
        return Some(());
    };
    text.push_str(short_name);
    text.push('=');
    let value = attribute.as_str().ok()?;
    let end = value.len().saturating_sub(1);
    for (at, byte) in value.bytes().enumerate() {
        let is_special = b",+\"\\<>;".contains(&byte)
            || (byte == b' ' && (at == 0 || at == end))
            || (byte == b'#' && at == 0);
        match byte {
            _ if is_special => text.extend(['\\', char::from(byte)]),
            // Control characters are refused afterwards, as in other names.
            0..0x80 => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\{byte:02X}")),
        }
    }
    Some(())
}

#[cfg(test)]
mod tests;
