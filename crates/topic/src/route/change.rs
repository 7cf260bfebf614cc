//! Changes of the route map.

use crate::Filter;

/// One change of the route map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteChange {
    /// `shard` has its first subscription to `filter`.
    Add {
        /// The plain or shared filter.
        filter: Filter,
        /// The shard's number, below [`SHARDS_MAX`].
        shard: usize,
    },
    /// `shard` lost its last subscription to `filter`, and its marks there.
    Remove {
        /// The plain or shared filter.
        filter: Filter,
        /// The shard's number, below [`SHARDS_MAX`].
        shard: usize,
    },
    /// A mark of `shard` at `filter` is set or cleared. Without effect at a shared filter, and at
    /// one to which the shard has no subscription.
    Mark {
        /// The plain filter.
        filter: Filter,
        /// The shard's number, below [`SHARDS_MAX`].
        shard: usize,
        /// Which mark.
        mark: RouteMark,
        /// Whether it is set.
        is_set: bool,
    },
}

/// What publishers need to know of a shard's subscriptions to a filter, beside that there are some.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteMark {
    /// At least one of the subscribers is durable: a message may have to be written.
    Durable,
    /// At least one of the subscribers has no room for messages of QoS 1 and 2: publishers have to
    /// keep them.
    Full,
}

impl RouteChange {
    /// The filter that gains or loses a shard, or a mark.
    pub fn filter(&self) -> &Filter {
        match self {
            Self::Add { filter, .. } | Self::Remove { filter, .. } | Self::Mark { filter, .. } => {
                filter
            }
        }
    }

    /// The shard whose subscriptions changed.
    pub(super) fn shard(&self) -> usize {
        match self {
            Self::Add { shard, .. } | Self::Remove { shard, .. } | Self::Mark { shard, .. } => {
                *shard
            }
        }
    }
}
