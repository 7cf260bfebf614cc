//! How fetching the keys of tokens goes.

use std::sync::atomic::{AtomicU64, Ordering};

/// Requests for the keys of tokens.
#[derive(Debug, Default)]
pub(crate) struct KeyFetches {
    total: AtomicU64,
    failures: AtomicU64,
    /// By the loops' clock; 0: never.
    last_ns: AtomicU64,
}

impl KeyFetches {
    pub(super) fn begun(&self) {
        self.total.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// True for the first time.
    pub(super) fn succeeded(&self, now_ns: u64) -> bool {
        self.last_ns.swap(now_ns.max(1), Ordering::Relaxed) == 0
    }

    /// Requests so far.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Those that brought no keys that can be used.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// How old the keys in use are at this time; `None`: there are none yet.
    pub(crate) fn age_ns(&self, now_ns: u64) -> Option<u64> {
        match self.last_ns.load(Ordering::Relaxed) {
            0 => None,
            last_ns => Some(now_ns.saturating_sub(last_ns)),
        }
    }
}
