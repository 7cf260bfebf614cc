//! The compaction thread, with a limited rate.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{Compactor, Progress};
use crate::shared::Shared;

/// How often it checks whether there is work.
const LOOK: Duration = Duration::from_millis(100);

/// How often it checks whether the committer has moved the offered records.
const WAIT: Duration = Duration::from_millis(1);

/// The read rate while the log is slightly above its limit.
const BYTES_PER_S: u64 = 32 << 20;

/// The compaction thread.
pub(crate) struct CompactThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CompactThread {
    /// Compacts in its own thread until it is dropped.
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
            // The panic hook has reported a panic of that thread.
            let _ = thread.join();
        }
    }
}

/// Whether the oldest segment has few live bytes.
fn is_nearly_free(shared: &Shared) -> bool {
    let little = u64::from(shared.options.segment_bytes / 16);
    shared.index().oldest().is_some_and(|oldest| oldest.live_bytes <= little)
}

/// Shorter the larger the log is; none at one and a half times its limit.
fn pause_after(shared: &Shared, bytes: u64) -> Duration {
    let (_, log_bytes) = shared.segments.sum();
    let bound = shared.log_bytes_max(shared.stats.live_bytes.get());
    let mut pause = Duration::from_secs_f64(bytes as f64 / BYTES_PER_S as f64);
    if is_nearly_free(shared) {
        // Reading it costs less than preparing another one.
        pause /= 8;
    }
    match log_bytes.saturating_sub(bound) {
        over if over > bound / 2 => Duration::ZERO,
        over if over > bound / 4 => pause / 4,
        _ => pause,
    }
}
