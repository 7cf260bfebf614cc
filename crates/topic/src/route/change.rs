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
    /// `shard` lost its last subscription to `filter`.
    Remove {
        /// The plain or shared filter.
        filter: Filter,
        /// The shard's number, below [`SHARDS_MAX`].
        shard: usize,
    },
}

impl RouteChange {
    /// The filter that gains or loses a shard.
    pub fn filter(&self) -> &Filter {
        match self {
            Self::Add { filter, .. } | Self::Remove { filter, .. } => filter,
        }
    }
}
