//! Listeners whose clients log in with their certificates.

use serde::{Deserialize, Serialize};
use tacho_access::CertificateName;

/// How the clients of a listener log in with their certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateLogin {
    /// Which part of the certificate names the user.
    pub user: CertificateName,
    /// What the client identifier has to do with it.
    pub client_id: CertificateClientId,
    /// The user has to log in as on other listeners, too.
    pub needs_password: bool,
    /// The certificate is one that the client has shown to its proxy, which tells the common name.
    pub from_proxy: bool,
}

/// What the client identifier has to do with the user that a certificate names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CertificateClientId {
    /// Nothing.
    #[default]
    Any,
    /// It is the same; a client that gives none gets it.
    Equal,
    /// It is the same, whatever the client gives.
    Replace,
}
