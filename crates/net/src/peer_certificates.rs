//! The certificates of the peer of a connection.

use rustls_pki_types::CertificateDer;

/// The certificates that a peer has proved to have.
#[derive(Clone, Copy, Debug)]
pub struct PeerCertificates<'a> {
    /// Its own first, then those of its issuers.
    pub(crate) chain: &'a [CertificateDer<'static>],
    /// Which CAs and revocation lists of the server they were accepted by.
    pub(crate) trust: u32,
}

impl<'a> PeerCertificates<'a> {
    /// The peer's own certificate (DER).
    #[must_use]
    pub fn own(&self) -> &'a [u8] {
        self.chain.first().map_or(&[], |certificate| certificate)
    }
}
