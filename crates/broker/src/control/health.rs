//! Whether the broker works, for the process that it runs in.

use std::io;

use tokio::runtime::{Builder, Runtime};

use super::View;
use super::ask::NoAnswer;

/// Asks a running broker whether it works, as `/healthz` does.
pub struct HealthCheck {
    view: View,
    runtime: Runtime,
}

/// Why a broker does not work.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Unhealthy(#[from] NoAnswer);

impl HealthCheck {
    pub(crate) fn new(view: View) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        Ok(Self { view, runtime })
    }

    /// Waits until every shard has answered, two seconds each at most.
    ///
    /// # Errors
    /// A shard does not answer, lags, or has ended.
    pub fn check(&self) -> Result<(), Unhealthy> {
        Ok(self.runtime.block_on(self.view.health_of_all())?)
    }
}
