//! The broker's limits on retained messages, which all shards draw on, and where a shard counts its
//! own.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use crate::config::Limits;
use crate::stats::ShardStats;

/// What all owners together hold. Changed only when a topic comes or goes or its size changes.
#[derive(Debug)]
pub(crate) struct RetainedTotals {
    count: AtomicUsize,
    bytes: AtomicU64,
    count_max: AtomicUsize,
    bytes_max: AtomicU64,
}

/// Where one shard counts the retained messages that it owns.
#[derive(Debug)]
pub(super) struct RetainedCounts {
    totals: Arc<RetainedTotals>,
    stats: Arc<ShardStats>,
}

impl RetainedTotals {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            count: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            count_max: AtomicUsize::new(limits.retained_count_max),
            bytes_max: AtomicU64::new(limits.retained_bytes_max),
        }
    }

    /// From now on; what is there stays.
    pub(crate) fn set_max(&self, limits: &Limits) {
        self.count_max.store(limits.retained_count_max, Relaxed);
        self.bytes_max.store(limits.retained_bytes_max, Relaxed);
    }

    /// Number of messages and their bytes.
    pub(crate) fn now(&self) -> (usize, u64) {
        (self.count.load(Relaxed), self.bytes.load(Relaxed))
    }
}

impl RetainedCounts {
    pub(super) fn new(totals: Arc<RetainedTotals>, stats: Arc<ShardStats>) -> Self {
        Self { totals, stats }
    }

    /// Counts a message that replaces one of `old_bytes`, if there is one. False, and nothing
    /// changes, if the limits do not allow it.
    pub(super) fn try_replace(&self, old_bytes: Option<u64>, new_bytes: u64) -> bool {
        let totals = &*self.totals;
        let is_new = old_bytes.is_none();
        if is_new && totals.count.fetch_add(1, Relaxed) >= totals.count_max.load(Relaxed) {
            totals.count.fetch_sub(1, Relaxed);
            return false;
        }
        let more = new_bytes.saturating_sub(old_bytes.unwrap_or(0));
        let bytes_max = totals.bytes_max.load(Relaxed);
        if more > 0 && totals.bytes.fetch_add(more, Relaxed) + more > bytes_max {
            totals.bytes.fetch_sub(more, Relaxed);
            totals.count.fetch_sub(usize::from(is_new), Relaxed);
            return false;
        }
        let less = old_bytes.unwrap_or(0).saturating_sub(new_bytes);
        totals.bytes.fetch_sub(less, Relaxed);
        self.replaced(old_bytes, new_bytes);
        true
    }

    /// Counts a message, whatever the limits are.
    pub(super) fn replace(&self, old_bytes: Option<u64>, new_bytes: u64) {
        self.totals.count.fetch_add(usize::from(old_bytes.is_none()), Relaxed);
        self.totals.bytes.fetch_add(new_bytes, Relaxed);
        self.totals.bytes.fetch_sub(old_bytes.unwrap_or(0), Relaxed);
        self.replaced(old_bytes, new_bytes);
    }

    /// A message is no longer retained.
    pub(super) fn remove(&self, bytes: u64) {
        self.totals.count.fetch_sub(1, Relaxed);
        self.totals.bytes.fetch_sub(bytes, Relaxed);
        self.stats.retained.decrement();
        self.stats.retained_bytes.subtract(bytes);
    }

    /// Bytes of the messages that the shard owns.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.stats.retained_bytes.value()
    }

    fn replaced(&self, old_bytes: Option<u64>, new_bytes: u64) {
        self.stats.retained.add(u64::from(old_bytes.is_none()));
        self.stats.retained_bytes.add(new_bytes);
        self.stats.retained_bytes.subtract(old_bytes.unwrap_or(0));
    }
}
