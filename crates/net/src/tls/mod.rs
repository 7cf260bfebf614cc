//! TLS 1.2 and 1.3 as a byte filter, by rustls.
//!
//! [`TlsClient`] and [`TlsServer`] are created once, from PEM files; each connection has its own
//! [`TlsFilter`].

mod client;
mod error;
mod filter;
mod identity;
mod pem;
mod provider;
mod server;

pub use client::{TlsClient, TlsClientSettings};
pub use error::TlsError;
pub use filter::TlsFilter;
pub use identity::{TestAuthority, TlsIdentity};
pub use server::{ClientCertificates, TlsReloaded, TlsServer, TlsServerSettings};
