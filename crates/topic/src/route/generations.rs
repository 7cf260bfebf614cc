//! Generations: numbers that change whenever the routes of a topic may have changed, so that
//! remembered routes can be checked for validity.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;

use crate::TopicFilter;

/// Buckets for filters by hash; a power of two. They take half a MiB: with a thousand changes per
/// second, a topic is falsely reported as changed once in sixteen seconds.
const BUCKETS: usize = 1 << 16;

/// The number of leading levels of a wildcard filter that select its bucket. Filters with more
/// literal levels in front share a bucket with their siblings.
const PREFIX_LEVELS: usize = 3;

/// For each bucket, the version of the map in which a filter of the bucket changed last.
///
/// All snapshots of a map share one instance: [`Generations::of_topic`] explains why changes that
/// are newer than a snapshot do not mislead it.
#[derive(Clone, Debug)]
pub(super) struct Generations {
    buckets: Arc<[AtomicU64]>,
    /// The version of the last change of a filter that starts with a wildcard.
    leading: Arc<AtomicU64>,
}

impl Default for Generations {
    fn default() -> Self {
        Self { buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), leading: Arc::default() }
    }
}

/// The hashes of a topic in a route map, computed once and valid for all snapshots of that map.
/// Each map has a random seed, so callers may use the hashes for tables of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicHash {
    topic: u64,
    /// Of the first level, the first two, the first three; a shorter topic repeats its last hash.
    prefixes: [u64; PREFIX_LEVELS],
    is_reserved: bool,
}

impl TopicHash {
    #[inline]
    pub(super) fn new(topic: &str, state: &RandomState) -> Self {
        let bytes = topic.as_bytes();
        let mut prefixes = [0; PREFIX_LEVELS];
        let mut ends = memchr::memchr_iter(b'/', bytes);
        let mut hash = 0;
        let mut is_whole = false;
        for prefix in &mut prefixes {
            if !is_whole {
                let end = ends.next();
                is_whole = end.is_none();
                hash = state.hash_one(&bytes[..end.unwrap_or(bytes.len())]);
            }
            *prefix = hash;
        }
        Self { topic: state.hash_one(topic), prefixes, is_reserved: topic.starts_with('$') }
    }

    /// The hash of the whole topic.
    pub fn topic(self) -> u64 {
        self.topic
    }

    /// The buckets, below [`TopicHash::PLACES`], of the wildcard filters that may match this topic
    /// and do not start with a wildcard. Two topics may share a bucket by chance.
    #[inline]
    pub fn places(self) -> [usize; PREFIX_LEVELS] {
        self.prefixes.map(bucket)
    }

    /// The bucket of a wildcard filter that does not start with a wildcard: it is among
    /// [`TopicHash::places`] of every topic that the filter matches. `None` for other filters.
    pub(super) fn place_of(filter: &TopicFilter, state: &RandomState) -> Option<usize> {
        prefix_hash(filter, state).map(bucket)
    }

    /// The number of buckets.
    pub const PLACES: usize = BUCKETS;
}

impl Generations {
    /// The version of the last change that may concern a topic, capped at `version`.
    ///
    /// A change is recorded before the snapshot that contains it is published. A reader of the
    /// snapshot of version v therefore sees all changes up to v, and possibly later ones, which the
    /// cap hides: a result computed from the snapshot is never labelled newer than it is. Of two
    /// snapshots with equal generations, the newer one has no relevant change that the older lacks.
    #[inline]
    pub(super) fn of_topic(&self, hash: TopicHash, version: u64) -> u64 {
        let at = |bucket: usize| self.buckets[bucket].load(Ordering::Acquire);
        let mut newest = at(bucket(hash.topic));
        for place in hash.places() {
            newest = newest.max(at(place));
        }
        if !hash.is_reserved {
            newest = newest.max(self.leading.load(Ordering::Acquire));
        }
        newest.min(version)
    }

    /// Records that `filter` changes in `version`, which is not published yet.
    pub(super) fn note(&self, filter: &TopicFilter, version: u64, state: &RandomState) {
        let place = if filter.is_exact() {
            &self.buckets[bucket(state.hash_one(filter.as_str()))]
        } else {
            match prefix_hash(filter, state) {
                Some(hash) => &self.buckets[bucket(hash)],
                None => &self.leading,
            }
        };
        place.store(version, Ordering::Release);
    }
}

/// The hash of the literal levels in front of the first wildcard, of at most [`PREFIX_LEVELS`].
fn prefix_hash(filter: &TopicFilter, state: &RandomState) -> Option<u64> {
    let bytes = filter.as_str().as_bytes();
    let wildcard = memchr::memchr2(b'+', b'#', bytes)?;
    // A wildcard stands alone in its level, so the text before it ends with a slash.
    let literal = &bytes[..wildcard.checked_sub(1)?];
    let end = memchr::memchr_iter(b'/', literal).nth(PREFIX_LEVELS - 1).unwrap_or(literal.len());
    Some(state.hash_one(&literal[..end]))
}

/// The bucket of a hash, from its high bits: the hash map uses the low ones.
#[inline]
fn bucket(hash: u64) -> usize {
    (hash >> (u64::BITS - BUCKETS.trailing_zeros())) as usize
}
