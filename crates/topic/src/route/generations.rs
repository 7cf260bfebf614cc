//! How old what is known about a topic may be: numbers that change when its routes may have.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;

use crate::TopicFilter;

/// Places for filters by their hash; a power of two. Half a MiB: with a thousand changes a second,
/// a topic is taken for changed once in sixteen seconds though it was not.
const BUCKETS: usize = 1 << 16;

/// Leading levels of a wildcard filter that count. Filters with more literal levels in front share
/// a bucket with their siblings.
const PREFIX_LEVELS: usize = 3;

/// For each bucket the version of the map in which something in it changed last.
///
/// All snapshots of a map share one: see [`Generations::of_topic`] for why a snapshot is not misled
/// by changes that are younger than itself.
#[derive(Clone, Debug)]
pub(super) struct Generations {
    buckets: Arc<[AtomicU64]>,
    /// Filters that start with a wildcard.
    leading: Arc<AtomicU64>,
}

impl Default for Generations {
    fn default() -> Self {
        Self { buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), leading: Arc::default() }
    }
}

/// The hashes of a topic that a route map works with, computed once and good for all snapshots of
/// that map. Seeded at random per map, so holders may use them for tables of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicHash {
    topic: u64,
    /// Of the first level, the first two, the first three; a topic with fewer repeats its last.
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

    /// The places, below [`TopicHash::PLACES`], of the wildcard filters that may match this topic
    /// and do not start with a wildcard. Two topics may have a place in common by chance.
    #[inline]
    pub fn places(self) -> [usize; PREFIX_LEVELS] {
        self.prefixes.map(bucket)
    }

    /// The place of a wildcard filter that does not start with a wildcard: one of those of every
    /// topic that it matches. `None` when it does, or has no wildcard.
    pub(super) fn place_of(filter: &TopicFilter, state: &RandomState) -> Option<usize> {
        prefix_hash(filter, state).map(bucket)
    }

    /// The number of places.
    pub const PLACES: usize = BUCKETS;
}

impl Generations {
    /// The version of the last change that concerns a topic, or `version` if that is less.
    ///
    /// A change is noted before the snapshot that has it is published. So who holds the snapshot of
    /// version v sees all changes up to v, and perhaps later ones, which `version` cuts off: what
    /// is computed from it is never labelled as newer than it is. Of two snapshots with the same
    /// result the newer one has no change that the older one lacks.
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

    /// Notes that `filter` changes in `version`, which is not published yet.
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
    // A wildcard stands alone in its level, so what is before it ends with a slash.
    let literal = &bytes[..wildcard.checked_sub(1)?];
    let end = memchr::memchr_iter(b'/', literal).nth(PREFIX_LEVELS - 1).unwrap_or(literal.len());
    Some(state.hash_one(&literal[..end]))
}

/// From the high bits, as the low ones lead through the map.
#[inline]
fn bucket(hash: u64) -> usize {
    (hash >> (u64::BITS - BUCKETS.trailing_zeros())) as usize
}
