//! The limits on subscriptions that all shards draw on: each subscription counts from its making
//! until it is removed or its session ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tacho_topic::Filter;

use crate::config::Limits;
use crate::stats::ShardStats;

/// The subscriptions of all shards, and the bytes of their filters.
#[derive(Debug)]
pub(crate) struct SubscriptionTotals {
    count: AtomicUsize,
    bytes: AtomicU64,
    count_max: AtomicUsize,
    bytes_max: AtomicU64,
}

impl SubscriptionTotals {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            count: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            count_max: AtomicUsize::new(limits.subscriptions_max),
            bytes_max: AtomicU64::new(limits.subscriptions_bytes_max),
        }
    }

    /// From now on; what is there stays.
    pub(crate) fn set_max(&self, limits: &Limits) {
        self.count_max.store(limits.subscriptions_max, Ordering::Relaxed);
        self.bytes_max.store(limits.subscriptions_bytes_max, Ordering::Relaxed);
    }

    /// Subscriptions and their bytes.
    pub(crate) fn now(&self) -> (usize, u64) {
        (self.count.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

/// Where a shard counts its subscriptions.
#[derive(Debug)]
pub(in crate::shard) struct SubscriptionCounts {
    totals: Arc<SubscriptionTotals>,
    stats: Arc<ShardStats>,
}

impl SubscriptionCounts {
    pub(in crate::shard) fn new(totals: Arc<SubscriptionTotals>, stats: Arc<ShardStats>) -> Self {
        Self { totals, stats }
    }

    /// Counts subscriptions, unless all sessions together have more, or longer ones, than they may.
    pub(super) fn try_add(&self, tally: Tally) -> bool {
        self.add(tally);
        let totals = &self.totals;
        let is_within = totals.count.load(Ordering::Relaxed)
            <= totals.count_max.load(Ordering::Relaxed)
            && totals.bytes.load(Ordering::Relaxed) <= totals.bytes_max.load(Ordering::Relaxed);
        if !is_within {
            self.subtract(tally);
        }
        is_within
    }

    /// Counts subscriptions in any case.
    pub(super) fn add(&self, tally: Tally) {
        let Self { totals, stats } = self;
        totals.count.fetch_add(tally.count as usize, Ordering::Relaxed);
        totals.bytes.fetch_add(tally.bytes, Ordering::Relaxed);
        stats.subscriptions.add(u64::from(tally.count));
        stats.subscriptions_bytes.add(tally.bytes);
        stats.shared_subscriptions.add(u64::from(tally.shared));
    }

    /// They are over.
    pub(super) fn subtract(&self, tally: Tally) {
        let Self { totals, stats } = self;
        totals.count.fetch_sub(tally.count as usize, Ordering::Relaxed);
        totals.bytes.fetch_sub(tally.bytes, Ordering::Relaxed);
        stats.subscriptions.subtract(u64::from(tally.count));
        stats.subscriptions_bytes.subtract(tally.bytes);
        stats.shared_subscriptions.subtract(u64::from(tally.shared));
    }
}

/// What some subscriptions count for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    count: u32,
    shared: u32,
    bytes: u64,
}

impl Tally {
    pub(super) fn of(filter: &Filter) -> Self {
        Self { count: 1, shared: u32::from(filter.is_shared()), bytes: text_bytes(filter) }
    }

    #[cfg(feature = "sim")]
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) const fn add(&mut self, other: Self) {
        self.count += other.count;
        self.shared += other.shared;
        self.bytes += other.bytes;
    }

    pub(super) const fn subtract(&mut self, other: Self) {
        self.count -= other.count;
        self.shared -= other.shared;
        self.bytes -= other.bytes;
    }
}

/// The length of a filter as its subscriber wrote it.
fn text_bytes(filter: &Filter) -> u64 {
    let text = filter.topic_filter().as_str().len();
    match filter {
        Filter::Plain(_) => text as u64,
        Filter::Shared(shared) => ("$share//".len() + shared.group().len() + text) as u64,
    }
}
