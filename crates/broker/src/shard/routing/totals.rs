//! The limits on subscriptions that all shards draw on: each subscription counts from its making
//! until it is dropped.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
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
    count_max: usize,
    bytes_max: u64,
}

impl SubscriptionTotals {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            count: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            count_max: limits.subscriptions_max,
            bytes_max: limits.subscriptions_bytes_max,
        }
    }

    /// Subscriptions and their bytes.
    #[cfg(feature = "sim")]
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

    /// Counts a subscription, unless all sessions together have as many, or as long ones, as they
    /// may.
    pub(in crate::shard) fn try_add(self: &Arc<Self>, filter: &Filter) -> Option<Subscription> {
        let totals = &self.totals;
        let subscription = self.add(filter);
        let is_within = totals.count.load(Ordering::Relaxed) <= totals.count_max
            && totals.bytes.load(Ordering::Relaxed) <= totals.bytes_max;
        is_within.then_some(subscription)
    }

    /// Counts a subscription in any case.
    pub(in crate::shard) fn add(self: &Arc<Self>, filter: &Filter) -> Subscription {
        let (totals, stats, bytes) = (&self.totals, &self.stats, text_bytes(filter));
        totals.count.fetch_add(1, Ordering::Relaxed);
        totals.bytes.fetch_add(bytes, Ordering::Relaxed);
        stats.subscriptions.add(1);
        stats.subscriptions_bytes.add(bytes);
        stats.shared_subscriptions.add(u64::from(filter.is_shared()));
        Subscription { filter: filter.clone(), counts: Arc::clone(self) }
    }
}

/// A session's subscription by its filter, counted until it is dropped.
#[derive(Debug)]
pub(in crate::shard) struct Subscription {
    filter: Filter,
    counts: Arc<SubscriptionCounts>,
}

impl Subscription {
    pub(in crate::shard) const fn filter(&self) -> &Filter {
        &self.filter
    }

    #[cfg(feature = "sim")]
    pub(in crate::shard) fn bytes(&self) -> u64 {
        text_bytes(&self.filter)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let SubscriptionCounts { totals, stats } = &*self.counts;
        let bytes = text_bytes(&self.filter);
        totals.count.fetch_sub(1, Ordering::Relaxed);
        totals.bytes.fetch_sub(bytes, Ordering::Relaxed);
        stats.subscriptions.decrement();
        stats.subscriptions_bytes.subtract(bytes);
        if self.filter.is_shared() {
            stats.shared_subscriptions.decrement();
        }
    }
}

// As its filter, by which a session finds it.
impl Borrow<Filter> for Subscription {
    fn borrow(&self) -> &Filter {
        &self.filter
    }
}

impl Hash for Subscription {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.filter.hash(state);
    }
}

impl PartialEq for Subscription {
    fn eq(&self, other: &Self) -> bool {
        self.filter == other.filter
    }
}

impl Eq for Subscription {}

/// The length of a filter as its subscriber wrote it.
fn text_bytes(filter: &Filter) -> u64 {
    let text = filter.topic_filter().as_str().len();
    match filter {
        Filter::Plain(_) => text as u64,
        Filter::Shared(shared) => ("$share//".len() + shared.group().len() + text) as u64,
    }
}
