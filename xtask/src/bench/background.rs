//! Clients that do something beside the measured ones, until they are stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};

pub(super) struct Background {
    stop: Arc<AtomicBool>,
    worker: JoinHandle<u64>,
}

impl Background {
    /// Starts a thread that works until it is told to stop, and counts.
    pub(super) fn start(
        name: &str,
        work: impl FnOnce(&AtomicBool) -> u64 + Send + 'static,
    ) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let worker = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&stopped))
            .context("cannot start a thread")?;
        Ok(Self { stop, worker })
    }

    /// Ends the thread; returns what it counted.
    pub(super) fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.worker.join().unwrap_or(0)
    }
}
