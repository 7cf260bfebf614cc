//! Topic names and filters as checked types, and the indexes built on them.
//!
//! - [`TopicName`], [`TopicFilter`], [`SharedFilter`] and [`Filter`]: text that was checked once
//!   and needs no validation later (MQTT 5.0 sections 4.7 and 4.8.2).
//! - [`SubscriptionIndex`]: the full filters of one shard, who subscribed with which options.
//! - [`RouteMap`]: the read-mostly map from filters to shards that all shards share, with the
//!   shared subscription groups ([`Group`]).
//! - [`RetainedIndex`]: retained values by topic, with resumable cursors over a filter's matches.
//! - [`owner_shard`]: which shard owns a session or a retained topic.
//!
//! Nothing here knows sockets, sessions or time. Nothing recurses over topic levels, so a topic of
//! tens of thousands of levels is slow at worst.

mod filter;
mod index;
mod level;
mod matching;
mod name;
mod owner;
mod retained;
mod route;

pub use filter::{Filter, FilterError, SharedFilter, TopicFilter};
pub use index::SubscriptionIndex;
pub use matching::matches;
pub use name::{TOPIC_LEN_MAX, TopicError, TopicName, check_topic_name};
pub use owner::owner_shard;
pub use retained::{Progress, RetainedCursor, RetainedIndex};
pub use route::{
    Choice, Group, GroupLoad, RouteChange, RouteMap, RouteSnapshot, SHARDS_MAX, ShardSet,
    ShardSetIter, TopicHash,
};
