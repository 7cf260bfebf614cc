//! What each listener lets in, before its clients are heard.

use crate::config::{Config, Listener, TrustedProxies};

/// The gate of one listener.
pub(crate) struct Gate {
    /// Connections are those of proxies, and begin with a PROXY header.
    pub(crate) proxies: Option<TrustedProxies>,
}

impl Gate {
    /// Those of all listeners, in their order.
    pub(crate) fn all(config: &Config) -> Vec<Self> {
        config.listeners.iter().map(Self::new).collect()
    }

    fn new(listener: &Listener) -> Self {
        Self { proxies: listener.proxies.clone() }
    }
}
