//! The current bridges, for all that are no shards: operators add and remove some while the broker
//! runs.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Bridges, Status};

/// The current bridges.
#[derive(Debug, Default)]
pub(crate) struct BridgeDirectory(Mutex<Arc<Bridges>>);

impl BridgeDirectory {
    pub(crate) fn now(&self) -> Arc<Bridges> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set(&self, bridges: Arc<Bridges>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = bridges;
    }

    /// The status of each bridge.
    pub(crate) fn status(&self) -> Vec<Status> {
        self.now().status()
    }
}
