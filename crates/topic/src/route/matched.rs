//! The shards that have plain subscriptions to a filter, or to any filter that matches a topic.

use super::{RouteMark, ShardSet};

/// Shards with plain subscriptions, and their marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchedShards {
    /// All of them.
    pub all: ShardSet,
    /// Those with the mark [`RouteMark::Durable`].
    pub durable: ShardSet,
    /// Those with the mark [`RouteMark::Full`].
    pub full: ShardSet,
}

impl MatchedShards {
    /// Adds a shard; true if it is new.
    pub(super) const fn add(&mut self, shard: usize) -> bool {
        let is_new = !self.all.contains(shard);
        self.all.insert(shard);
        is_new
    }

    /// Removes a shard with its marks; true if it was present.
    pub(super) const fn remove(&mut self, shard: usize) -> bool {
        let was_present = self.all.contains(shard);
        self.all.remove(shard);
        self.durable.remove(shard);
        self.full.remove(shard);
        was_present
    }

    /// Sets or clears a mark of a shard that is present; true if that changed it.
    pub(super) const fn mark(&mut self, shard: usize, mark: RouteMark, is_set: bool) -> bool {
        let marked = match mark {
            RouteMark::Durable => &mut self.durable,
            RouteMark::Full => &mut self.full,
        };
        if marked.contains(shard) == is_set || !self.all.contains(shard) {
            return false;
        }
        if is_set {
            marked.insert(shard);
        } else {
            marked.remove(shard);
        }
        true
    }

    #[inline]
    pub(super) const fn union(self, other: Self) -> Self {
        Self {
            all: self.all.union(other.all),
            durable: self.durable.union(other.durable),
            full: self.full.union(other.full),
        }
    }
}
