//! The map from filters to shards, shared by all shards.

mod change;
mod generations;
mod group;
mod hamt;
mod map;
mod shard_set;
mod snapshot;
mod targets;
mod tree;

pub use change::RouteChange;
pub use generations::TopicHash;
pub use group::{Choice, DurableMember, Group, GroupLoad, WaitingPlace};
pub use map::RouteMap;
pub use shard_set::{SHARDS_MAX, ShardSet, ShardSetIter};
pub use snapshot::RouteSnapshot;
