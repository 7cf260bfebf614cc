//! The thread that collects, at a limited rate.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{Compactor, Progress};
use crate::shared::Shared;

/// How often it looks whether there is something to do.
const LOOK: Duration = Duration::from_millis(100);

/// How often it looks whether the committer has moved what was offered.
const WAIT: Duration = Duration::from_millis(1);

/// Read at this rate while the log is little larger than it should be.
const BYTES_PER_S: u64 = 32 << 20;

/// A thread that collects.
pub(crate) struct CompactThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CompactThread {
    /// Collects in a thread of its own until it is dropped.
    pub(crate) fn spawn(shared: Arc<Shared>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || {
            let mut collector = Compactor::default();
            while !stopped.load(Ordering::Acquire) {
                let pause = match collector.step(&shared) {
                    Progress::Nothing => LOOK,
                    Progress::Waiting => WAIT,
                    Progress::Read(bytes) => pause_after(&shared, bytes),
                };
                thread::park_timeout(pause);
            }
        };
        let thread = thread::Builder::new().name("journal-gc".to_owned()).spawn(run)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for CompactThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there was told by itself.
            let _ = thread.join();
        }
    }
}

/// Whether there is little to be moved out of the oldest segment.
fn is_nearly_free(shared: &Shared) -> bool {
    let little = u64::from(shared.options.segment_bytes / 16);
    shared.index().oldest().is_some_and(|oldest| oldest.live_bytes <= little)
}

/// The larger the log, the shorter: at one and a half times of what it should be, none.
fn pause_after(shared: &Shared, bytes: u64) -> Duration {
    let (_, log_bytes) = shared.segments.sum();
    let bound = shared.log_bytes_max(shared.stats.live_bytes.get());
    let mut pause = Duration::from_secs_f64(bytes as f64 / BYTES_PER_S as f64);
    if is_nearly_free(shared) {
        // To read it costs less than to prepare another one.
        pause /= 8;
    }
    match log_bytes.saturating_sub(bound) {
        over if over > bound / 2 => Duration::ZERO,
        over if over > bound / 4 => pause / 4,
        _ => pause,
    }
}
