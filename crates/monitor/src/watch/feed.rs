//! The way from a source's thread to whoever watches.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{HostRow, now_ns};

/// Rows that may wait: a quarter of an hour of one host.
const ROWS_MAX: usize = 1024;

/// How long a source may sleep without looking whether it must stop.
const NAP: Duration = Duration::from_millis(50);

/// What both sides know of a source.
#[derive(Debug, Default)]
pub(super) struct Shared {
    stop: AtomicBool,
    dropped: AtomicU64,
    errors: AtomicU64,
    last_error: Mutex<Option<String>>,
}

/// The source's end.
#[derive(Clone, Debug)]
pub(crate) struct Feed {
    rows: SyncSender<HostRow>,
    shared: Arc<Shared>,
}

/// Both ends.
pub(super) fn feed() -> (Feed, Receiver<HostRow>, Arc<Shared>) {
    let (sender, receiver) = sync_channel(ROWS_MAX);
    let shared = Arc::new(Shared::default());
    (Feed { rows: sender, shared: Arc::clone(&shared) }, receiver, shared)
}

impl Feed {
    /// Hands over a row; counts it as dropped when the watcher is behind.
    pub(crate) fn row(&self, row: HostRow) {
        if let Err(TrySendError::Full(_)) = self.rows.try_send(row) {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts an error and remembers it.
    pub(crate) fn error(&self, sentence: String) {
        self.shared.errors.fetch_add(1, Ordering::Relaxed);
        let mut last = self.shared.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(sentence);
    }

    /// Counts an error that was told before.
    pub(crate) fn count_error(&self) {
        self.shared.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// Must the source end?
    pub(crate) fn stopping(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// Sleeps until `at_ns` of the monotonic clock, or less when the source must end.
    pub(crate) fn sleep_until(&self, at_ns: u64) {
        loop {
            let left_ns = at_ns.saturating_sub(now_ns());
            if left_ns == 0 || self.stopping() {
                return;
            }
            std::thread::sleep(NAP.min(Duration::from_nanos(left_ns)));
        }
    }
}

impl Shared {
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Dropped rows, errors, the last error.
    pub(super) fn counts(&self) -> (u64, u64, Option<String>) {
        let last = self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.dropped), count(&self.errors), last)
    }
}

/// The next moment of a rhythm that is in the future: what was missed is not caught up with.
pub(crate) fn next_beat(last_ns: u64, interval: Duration, now_ns: u64) -> u64 {
    let interval_ns = (interval.as_nanos() as u64).max(1);
    let missed = now_ns.saturating_sub(last_ns) / interval_ns;
    last_ns + (missed + 1) * interval_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_takes_is_dropped_and_counted() {
        let (feed, rows, shared) = feed();
        for at_ns in 0..ROWS_MAX as u64 + 5 {
            feed.row(HostRow { at_ns, ..HostRow::default() });
        }
        assert_eq!(shared.counts().0, 5);
        assert_eq!(rows.try_iter().count(), ROWS_MAX);
        feed.error("first".to_owned());
        feed.error("second".to_owned());
        assert_eq!(shared.counts(), (5, 2, Some("second".to_owned())));
    }

    #[test]
    fn a_stopped_source_does_not_sleep() {
        let (feed, _rows, shared) = feed();
        shared.stop();
        assert!(feed.stopping());
        feed.sleep_until(u64::MAX);
    }

    #[test]
    fn a_rhythm_skips_what_it_missed() {
        let second = Duration::from_secs(1);
        assert_eq!(next_beat(10_000_000_000, second, 10_000_000_001), 11_000_000_000);
        assert_eq!(next_beat(10_000_000_000, second, 13_500_000_000), 14_000_000_000);
        assert_eq!(next_beat(10_000_000_000, second, 0), 11_000_000_000);
    }
}
