//! How old what is known about a topic may be: numbers that change when its routes may have.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::TopicFilter;

/// Buckets by the hash of a whole topic, for exact filters.
const TOPIC_BUCKETS: usize = 4_096;

/// Topic buckets that are copied together when one changes: 2 KiB.
const PAGE_BUCKETS: usize = 256;

/// Buckets by the hash of the first level, for wildcard filters.
const LEVEL_BUCKETS: usize = 256;

/// For each bucket the version of the map in which something in it changed last.
#[derive(Clone, Debug)]
pub(super) struct Generations {
    /// Exact filters, by the hash of the topic.
    topics: Arc<[Arc<[u64; PAGE_BUCKETS]>]>,
    /// Wildcard filters with a literal first level, by the hash of that level.
    levels: Arc<[u64; LEVEL_BUCKETS]>,
    /// Filters that start with a wildcard.
    leading: u64,
}

impl Default for Generations {
    fn default() -> Self {
        let page = Arc::new([0; PAGE_BUCKETS]);
        Self {
            topics: vec![page; TOPIC_BUCKETS / PAGE_BUCKETS].into(),
            levels: Arc::new([0; LEVEL_BUCKETS]),
            leading: 0,
        }
    }
}

/// The hashes of a topic that a route map works with, computed once and good for all snapshots of
/// that map. Seeded at random per map, so holders may use them for tables of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicHash {
    topic: u64,
    first_level: u64,
    is_reserved: bool,
}

impl TopicHash {
    #[inline]
    pub(super) fn new(topic: &str, state: &RandomState) -> Self {
        let bytes = topic.as_bytes();
        let first_level_len = bytes.iter().position(|&byte| byte == b'/').unwrap_or(bytes.len());
        Self {
            topic: state.hash_one(topic),
            first_level: state.hash_one(&bytes[..first_level_len]),
            is_reserved: topic.starts_with('$'),
        }
    }

    /// The hash of the whole topic.
    pub fn topic(self) -> u64 {
        self.topic
    }

    /// The hash of the first level alone.
    pub fn first_level(self) -> u64 {
        self.first_level
    }

    /// The page and the place in it of an exact filter with this topic. From the high bits, as the
    /// low ones lead through the map.
    fn topic_bucket(self) -> (usize, usize) {
        let bucket = (self.topic >> 48) as usize % TOPIC_BUCKETS;
        (bucket / PAGE_BUCKETS, bucket % PAGE_BUCKETS)
    }

    fn level_bucket(self) -> usize {
        self.first_level as usize % LEVEL_BUCKETS
    }
}

impl Generations {
    /// The generation of a topic: the parts only ever grow, so their sum is the same only while
    /// each of them is.
    #[inline]
    pub(super) fn of_topic(&self, hash: TopicHash) -> u64 {
        let (page, at) = hash.topic_bucket();
        let leading = if hash.is_reserved { 0 } else { self.leading };
        self.topics[page][at] + self.levels[hash.level_bucket()] + leading
    }

    /// Notes that `filter` changed in `version`.
    pub(super) fn note(&mut self, filter: &TopicFilter, version: u64, state: &RandomState) {
        let hash = TopicHash::new(filter.as_str(), state);
        if filter.is_exact() {
            let (page, at) = hash.topic_bucket();
            Arc::make_mut(&mut Arc::make_mut(&mut self.topics)[page])[at] = version;
        } else if filter.starts_with_wildcard() {
            self.leading = version;
        } else {
            Arc::make_mut(&mut self.levels)[hash.level_bucket()] = version;
        }
    }
}
