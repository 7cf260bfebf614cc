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
    /// Boxed: a session that only publishes has none.
    of_session: Option<Box<Counted>>,
    counts: Arc<SubscriptionCounts>,
}

#[derive(Debug, Default)]
struct Counted {
    filters: HashSet<Filter, RandomState>,
    tally: Tally,
}

/// The subscriptions of a session that has ended, which are still in the indexes.
#[derive(Debug)]
pub(super) struct EndedFilters(hash_set::IntoIter<Filter>);

impl SubscribedFilters {
    pub(in crate::shard) fn new(counts: Arc<SubscriptionCounts>) -> Self {
        Self { of_session: None, counts }
    }

    pub(in crate::shard) fn len(&self) -> usize {
        self.of_session.as_ref().map_or(0, |counted| counted.filters.len())
    }

    pub(in crate::shard) fn contains(&self, filter: &Filter) -> bool {
        self.of_session.as_ref().is_some_and(|counted| counted.filters.contains(filter))
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
        let counted = self.of_session.get_or_insert_default();
        counted.tally.add(one);
        counted.filters.insert(filter.clone());
    }

    /// True if the filter was among them.
    pub(super) fn remove(&mut self, filter: &Filter) -> bool {
        let Some(counted) = &mut self.of_session else { return false };
        let was_present = counted.filters.remove(filter);
        if was_present {
            let one = Tally::of(filter);
            counted.tally.subtract(one);
            self.counts.subtract(one);
        }
        was_present
    }

    /// The session has ended: they count no more.
    pub(super) fn end(&mut self) -> EndedFilters {
        let Counted { filters, tally } = self.of_session.take().map(|of| *of).unwrap_or_default();
        self.counts.subtract(tally);
        EndedFilters(filters.into_iter())
    }

    pub(in crate::shard) fn iter(&self) -> impl Iterator<Item = &Filter> {
        self.of_session.iter().flat_map(|counted| &counted.filters)
    }

    /// The bytes of the filters.
    #[cfg(feature = "sim")]
    pub(in crate::shard) fn bytes(&self) -> u64 {
        self.iter().map(|filter| Tally::of(filter).bytes()).sum()
    }
}

impl Drop for SubscribedFilters {
    fn drop(&mut self) {
        if let Some(counted) = &self.of_session {
            self.counts.subtract(counted.tally);
        }
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
