//! The queue of rows from a source's thread to the watch.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{HostDescription, HostRow, now_ns};

/// Bound of the queue: a quarter of an hour of one host.
const ROWS_MAX: usize = 1024;

/// How often a sleeping source checks the stop flag.
const STOP_CHECK_EVERY: Duration = Duration::from_millis(50);

/// The state of a source, shared by its thread and the watch.
#[derive(Debug, Default)]
pub(super) struct FeedState {
    stop: AtomicBool,
    dropped: AtomicU64,
    errors: AtomicU64,
    last_error: Mutex<Option<String>>,
    description: Mutex<Option<HostDescription>>,
}

/// The sending end, for the source.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    rows: SyncSender<HostRow>,
    state: Arc<FeedState>,
}

/// A queue: both ends, and the state of the source.
pub(super) fn feed() -> (Feed, Receiver<HostRow>, Arc<FeedState>) {
    let (sender, receiver) = sync_channel(ROWS_MAX);
    let state = Arc::new(FeedState::default());
    (Feed { rows: sender, state: Arc::clone(&state) }, receiver, state)
}

impl Feed {
    /// Queues a row; drops and counts it when the queue is full.
    pub(super) fn row(&self, row: HostRow) {
        if let Err(TrySendError::Full(_)) = self.rows.try_send(row) {
            self.state.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Keeps what the source's host is; the newest one wins.
    pub(super) fn describe(&self, description: HostDescription) {
        let mut known = self.state.description.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some(description);
    }

    /// Counts an error and keeps its message.
    pub(super) fn error(&self, sentence: String) {
        self.state.errors.fetch_add(1, Ordering::Relaxed);
        let mut last = self.state.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(sentence);
    }

    /// Counts an error whose message is already known.
    pub(super) fn count_error(&self) {
        self.state.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the source must stop.
    pub(super) fn stopping(&self) -> bool {
        self.state.stop.load(Ordering::Relaxed)
    }

    /// Sleeps until `at_ns` of the monotonic clock, or until the source must stop.
    pub(super) fn sleep_until(&self, at_ns: u64) {
        loop {
            let left_ns = at_ns.saturating_sub(now_ns());
            if left_ns == 0 || self.stopping() {
                return;
            }
            std::thread::sleep(STOP_CHECK_EVERY.min(Duration::from_nanos(left_ns)));
        }
    }
}

impl FeedState {
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// What the source's host is, where it tells.
    pub(super) fn description(&self) -> Option<HostDescription> {
        self.description.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Dropped rows, errors, the last error.
    pub(super) fn counts(&self) -> (u64, u64, Option<String>) {
        let last = self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.dropped), count(&self.errors), last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_beyond_the_bound_are_dropped_and_counted() {
        let (feed, rows, state) = feed();
        for at_ns in 0..ROWS_MAX as u64 + 5 {
            feed.row(HostRow { at_ns, ..HostRow::default() });
        }
        assert_eq!(state.counts().0, 5);
        assert_eq!(rows.try_iter().count(), ROWS_MAX);
        feed.error("first".to_owned());
        feed.error("second".to_owned());
        assert_eq!(state.counts(), (5, 2, Some("second".to_owned())));
    }

    #[test]
    fn a_stopped_source_does_not_sleep() {
        let (feed, _rows, state) = feed();
        state.stop();
        assert!(feed.stopping());
        feed.sleep_until(u64::MAX);
    }
}
