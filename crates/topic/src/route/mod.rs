//! The map from filters to shards that all shards share.

mod generations;
mod group;
mod hamt;
mod map;
mod shard_set;
mod snapshot;
mod targets;
mod tree;

pub use generations::TopicHash;
pub use group::{Choice, Group, GroupLoad};
pub use map::{RouteChange, RouteMap};
pub use shard_set::{SHARDS_MAX, ShardSet, ShardSetIter};
pub use snapshot::RouteSnapshot;
