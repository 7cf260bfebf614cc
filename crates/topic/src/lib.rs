//! Topic filters as checked types, and the indexes built on them.
//!
//! - [`TopicFilter`], [`SharedFilter`] and [`Filter`]: text that is checked once and needs no
//!   validation later (MQTT 5.0 sections 4.7 and 4.8.2). Topic names are checked by the codec, with
//!   the bytes of the packet that they arrive in; the indexes take them as `&str`.
//! - [`SubscriptionIndex`]: the full filters of one shard, with subscribers and their options.
//! - [`RouteMap`]: the read-mostly map from filters to shards that all shards share, with the
//!   shared subscription groups ([`Group`]).
//! - [`RetainedIndex`]: retained values by topic, with resumable cursors over a filter's matches.
//! - [`GradualMap`]: the hash map that these use, which never pauses to be copied as a whole.
//!   [`GradualTable`], [`GradualList`] and [`GradualSlab`] grow the same way.
//! - [`owner_shard`]: which shard owns a session or a retained topic.
//!
//! Nothing here knows sockets, sessions or time. Nothing recurses over topic levels, so a topic of
//! tens of thousands of levels is slow, but safe.

mod filter;
mod gradual;
mod index;
mod level;
mod matching;

mod owner;
mod retained;
mod route;

pub use filter::{Filter, FilterError, SharedFilter, TOPIC_LEN_MAX, TopicFilter};
pub use gradual::{GradualList, GradualMap, GradualSlab, GradualTable};
pub use index::SubscriptionIndex;
pub use matching::matches;

pub use owner::owner_shard;
pub use retained::{Progress, RetainedCursor, RetainedIndex};
pub use route::{
    Choice, DurableMember, FullQueue, Group, GroupLoad, MatchedShards, RouteChange, RouteMap,
    RouteMark, RouteSnapshot, SHARDS_MAX, ShardSet, ShardSetIter, TopicHash, WaitingPlace,
};
