//! The implementation of cryptography.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// The only provider used; nothing depends on a process-wide default.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
