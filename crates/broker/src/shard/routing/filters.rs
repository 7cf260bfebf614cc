//! The subscriptions of one session.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashSet;
use hashbrown::hash_set;
use tacho_topic::Filter;

use super::totals::{SubscriptionCounts, Tally};

/// Every filter that a session has subscribed to; their text is shared with the indexes. Each is
/// counted until it is removed or the session ends.
#[derive(Debug)]
pub(in crate::shard) struct SubscribedFilters {
    filters: HashSet<Filter, RandomState>,
    tally: Tally,
    counts: Arc<SubscriptionCounts>,
}

/// The subscriptions of a session that has ended, which are still in the indexes.
#[derive(Debug)]
pub(super) struct EndedFilters(hash_set::IntoIter<Filter>);

impl SubscribedFilters {
    pub(in crate::shard) fn new(counts: Arc<SubscriptionCounts>) -> Self {
        Self { filters: HashSet::default(), tally: Tally::default(), counts }
    }

    pub(in crate::shard) fn len(&self) -> usize {
        self.filters.len()
    }

    pub(in crate::shard) fn contains(&self, filter: &Filter) -> bool {
        self.filters.contains(filter)
    }

    /// Adds a filter that is not among them, unless all sessions together have as many, or as long
    /// ones, as they may.
    pub(super) fn try_add(&mut self, filter: &Filter) -> bool {
        let one = Tally::of(filter);
        let is_within = self.counts.try_add(one);
        if is_within {
            self.note(filter, one);
        }
        is_within
    }

    /// Adds a filter in any case.
    pub(in crate::shard) fn add(&mut self, filter: &Filter) {
        let one = Tally::of(filter);
        self.counts.add(one);
        self.note(filter, one);
    }

    fn note(&mut self, filter: &Filter, one: Tally) {
        debug_assert!(!self.contains(filter), "it is counted once");
        self.tally.add(one);
        self.filters.insert(filter.clone());
    }

    /// True if the filter was among them.
    pub(super) fn remove(&mut self, filter: &Filter) -> bool {
        let was_present = self.filters.remove(filter);
        if was_present {
            let one = Tally::of(filter);
            self.tally.subtract(one);
            self.counts.subtract(one);
        }
        was_present
    }

    /// The session has ended: they count no more.
    pub(super) fn end(&mut self) -> EndedFilters {
        self.counts.subtract(std::mem::take(&mut self.tally));
        EndedFilters(std::mem::take(&mut self.filters).into_iter())
    }

    pub(in crate::shard) fn iter(&self) -> impl Iterator<Item = &Filter> {
        self.filters.iter()
    }

    /// The bytes of the filters.
    #[cfg(feature = "sim")]
    pub(in crate::shard) fn bytes(&self) -> u64 {
        self.filters.iter().map(|filter| Tally::of(filter).bytes()).sum()
    }
}

impl Drop for SubscribedFilters {
    fn drop(&mut self) {
        self.counts.subtract(self.tally);
    }
}

impl EndedFilters {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Iterator for EndedFilters {
    type Item = Filter;

    fn next(&mut self) -> Option<Filter> {
        self.0.next()
    }
}
