//! TLS 1.2 and 1.3 as a byte filter, by rustls.
//!
//! [`TlsClient`] and [`TlsServer`] are made once, from PEM files; each connection gets a
//! [`TlsFilter`] of its own.

mod client;
mod error;
mod filter;
mod pem;
mod server;

pub use client::{TlsClient, TlsClientSettings};
pub use error::TlsError;
pub use filter::TlsFilter;
pub use server::{ClientCertificates, TlsServer, TlsServerSettings};

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// The one provider of cryptography; nothing depends on a process-wide default.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
