//! The subscriptions of one session.

use foldhash::fast::RandomState;
use hashbrown::HashSet;
use tacho_topic::Filter;

use super::totals::Subscription;

/// Every filter that a session has subscribed to; their text is shared with the indexes.
#[derive(Debug, Default)]
pub(in crate::shard) struct SubscribedFilters {
    filters: HashSet<Subscription, RandomState>,
}

impl SubscribedFilters {
    pub(in crate::shard) fn len(&self) -> usize {
        self.filters.len()
    }

    pub(in crate::shard) fn contains(&self, filter: &Filter) -> bool {
        self.filters.contains(filter)
    }

    pub(in crate::shard) fn add(&mut self, subscription: Subscription) {
        self.filters.insert(subscription);
    }

    /// True if the filter was among them.
    pub(super) fn remove(&mut self, filter: &Filter) -> bool {
        self.filters.remove(filter)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Filter> {
        self.filters.iter().map(Subscription::filter)
    }

    /// The bytes of the filters.
    #[cfg(feature = "sim")]
    pub(in crate::shard) fn bytes(&self) -> u64 {
        self.filters.iter().map(Subscription::bytes).sum()
    }
}
