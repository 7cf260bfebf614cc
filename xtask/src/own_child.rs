//! Child processes that do not outlive their use.

use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// A child that ends with its owner.
pub(crate) struct OwnChild(pub(crate) Child);

impl OwnChild {
    /// Waits for its end, at most for this long.
    pub(crate) fn status_within(&mut self, seconds_max: u64) -> Result<Option<ExitStatus>> {
        let deadline = Instant::now() + Duration::from_secs(seconds_max);
        loop {
            match self.0.try_wait().context("cannot wait for a child")? {
                Some(status) => return Ok(Some(status)),
                None if Instant::now() > deadline => return Ok(None),
                None => thread::sleep(Duration::from_millis(50)),
            }
        }
    }
}

impl Drop for OwnChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
