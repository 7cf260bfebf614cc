//! The broker's limits on retained messages, which all shards draw on.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// What all owners together hold. Changed only when a topic comes or goes or its size changes.
#[derive(Debug, Default)]
pub(crate) struct RetainedTotals {
    count: AtomicUsize,
    bytes: AtomicU64,
}

/// How much the broker may retain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetainedLimits {
    pub(crate) count_max: usize,
    pub(crate) bytes_max: u64,
}

impl RetainedTotals {
    /// Makes room for a message that replaces one of `old_bytes`, if there is one. False, and
    /// nothing changes, if the limits do not allow it.
    pub(super) fn replace(
        &self,
        old_bytes: Option<u64>,
        new_bytes: u64,
        limits: RetainedLimits,
    ) -> bool {
        let is_new = old_bytes.is_none();
        if is_new && self.count.fetch_add(1, Relaxed) >= limits.count_max {
            self.count.fetch_sub(1, Relaxed);
            return false;
        }
        let old_bytes = old_bytes.unwrap_or(0);
        if new_bytes <= old_bytes {
            self.bytes.fetch_sub(old_bytes - new_bytes, Relaxed);
            return true;
        }
        let more = new_bytes - old_bytes;
        if self.bytes.fetch_add(more, Relaxed) + more > limits.bytes_max {
            self.bytes.fetch_sub(more, Relaxed);
            self.count.fetch_sub(usize::from(is_new), Relaxed);
            return false;
        }
        true
    }

    /// A message is no longer retained.
    pub(super) fn remove(&self, bytes: u64) {
        self.count.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(bytes, Relaxed);
    }

    /// Messages and their bytes.
    #[cfg(any(test, feature = "sim"))]
    pub(crate) fn now(&self) -> (usize, u64) {
        (self.count.load(Relaxed), self.bytes.load(Relaxed))
    }
}
