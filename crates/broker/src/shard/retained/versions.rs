//! Versions of retained messages: a total order per owner, and the versions that have arrived.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};

use tacho_topic::TopicFilter;

use super::replays::Owner;

/// Numbers the retained messages of each owner from 1 without gaps, in routing order.
#[derive(Debug)]
pub(crate) struct RetainedVersions(Box<[LastVersion]>);

#[derive(Debug, Default)]
#[repr(align(64))]
struct LastVersion {
    version: AtomicU64,
    /// Whether any of them had a topic that does not start with `$`.
    is_plain: AtomicBool,
}

impl RetainedVersions {
    pub(crate) fn new(owners: usize) -> Self {
        Self((0..owners).map(|_| LastVersion::default()).collect())
    }

    /// Takes a version for a message that must then be routed and sent to its owner. The caller
    /// reads the route map after this: either the map contains a subscription, or
    /// [`last`](Self::last), read after that subscription was made, contains the version.
    pub(crate) fn take(&self, owner: usize, topic: &str) -> u64 {
        let last = &self.0[owner];
        if !topic.starts_with('$') && !last.is_plain.load(Relaxed) {
            last.is_plain.store(true, SeqCst);
        }
        let version = last.version.fetch_add(1, SeqCst) + 1;
        fence(SeqCst);
        version
    }

    /// Records that an owner has messages of an earlier start of the broker.
    pub(crate) fn restored(&self, owner: usize) {
        // Regardless of their topics: the only effect is that replays query the owner.
        self.0[owner].is_plain.store(true, SeqCst);
    }

    /// Whether an owner may have, or receive, a message that was routed without a subscription to
    /// `filter` that is now visible. If no client retains messages, only the broker's own topics
    /// below `$SYS` are retained, and most subscriptions need no replay.
    fn may_have(&self, owner: usize, filter: &TopicFilter) -> bool {
        fence(SeqCst);
        let last = &self.0[owner];
        last.is_plain.load(SeqCst)
            || filter.as_str().starts_with('$') && last.version.load(SeqCst) > 0
    }

    /// The `owners` that a replay of `filter` must query.
    pub(super) fn owners_to_ask(&self, owners: Range<usize>, filter: &TopicFilter) -> Vec<Owner> {
        let owner = |shard| Owner { shard, after: self.last(shard) };
        owners.filter(|&shard| self.may_have(shard, filter)).map(owner).collect()
    }

    /// The newest version taken for an owner.
    fn last(&self, owner: usize) -> u64 {
        fence(SeqCst);
        self.0[owner].version.load(SeqCst)
    }
}

/// The versions that have arrived at their owner.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// All versions up to this one have arrived.
    up_to: u64,
    /// Versions after a gap: at most as many as are in transit.
    ahead: BTreeSet<u64>,
}

impl Arrivals {
    pub(super) fn note(&mut self, version: u64) {
        if version != self.up_to + 1 {
            self.ahead.insert(version);
            return;
        }
        self.up_to = version;
        while self.ahead.first().is_some_and(|&next| next == self.up_to + 1) {
            self.ahead.pop_first();
            self.up_to += 1;
        }
    }

    pub(super) fn up_to(&self) -> u64 {
        self.up_to
    }

    /// Whether a version older than the newest is still in transit.
    pub(super) fn has_gap(&self) -> bool {
        !self.ahead.is_empty()
    }
}
