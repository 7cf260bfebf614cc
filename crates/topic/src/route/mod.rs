//! The map from filters to shards, shared by all shards.

mod change;
mod generations;
mod group;
mod hamt;
mod map;
mod matched;
mod shard_set;
mod snapshot;
mod targets;
mod tree;

pub use change::{RouteChange, RouteMark};
pub use generations::TopicHash;
pub use group::{Choice, DurableMember, FullQueue, Group, GroupLoad, WaitingPlace};
pub use map::RouteMap;
pub use matched::MatchedShards;
pub use shard_set::{SHARDS_MAX, ShardSet, ShardSetIter};
pub use snapshot::RouteSnapshot;
