//! Versions of retained messages: a total order, and what of it has arrived at the owner.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};

use tacho_topic::TopicFilter;

use super::replays::Owner;

/// Numbers the retained messages of each owner, from 1 on without gaps, in the order in which they
/// were routed.
#[derive(Debug)]
pub(crate) struct RetainedVersions(Box<[LastVersion]>);

#[derive(Debug, Default)]
#[repr(align(64))]
struct LastVersion {
    version: AtomicU64,
    /// Whether one of them was for a topic that does not start with `$`.
    is_plain: AtomicBool,
}

impl RetainedVersions {
    pub(crate) fn new(owners: usize) -> Self {
        Self((0..owners).map(|_| LastVersion::default()).collect())
    }

    /// The version of a message that is about to be routed and then sent to its owner, whatever
    /// happens. The route map has to be looked at after this: either it knows a subscription, or
    /// [`last`](Self::last), asked after that subscription was made, knows the version.
    pub(crate) fn take(&self, owner: usize, topic: &str) -> u64 {
        let last = &self.0[owner];
        if !topic.starts_with('$') && !last.is_plain.load(Relaxed) {
            last.is_plain.store(true, SeqCst);
        }
        let version = last.version.fetch_add(1, SeqCst) + 1;
        fence(SeqCst);
        version
    }

    /// An owner has messages of an earlier start of the broker.
    pub(crate) fn restored(&self, owner: usize) {
        // Whatever their topics are: it only means that replays ask.
        self.0[owner].is_plain.store(true, SeqCst);
    }

    /// Whether an owner may have, or get, a message that was routed without regard to a
    /// subscription to `filter` that is visible by now. Where no client retains messages, the
    /// broker's own figures below `$SYS` are all there is, and most subscriptions need no replay.
    fn may_have(&self, owner: usize, filter: &TopicFilter) -> bool {
        fence(SeqCst);
        let last = &self.0[owner];
        last.is_plain.load(SeqCst)
            || filter.as_str().starts_with('$') && last.version.load(SeqCst) > 0
    }

    /// The `owners` that a replay of `filter` has to ask.
    pub(super) fn owners_to_ask(&self, owners: Range<usize>, filter: &TopicFilter) -> Vec<Owner> {
        let owner = |shard| Owner { shard, after: self.last(shard) };
        owners.filter(|&shard| self.may_have(shard, filter)).map(owner).collect()
    }

    /// The newest version of an owner's messages that has been taken.
    fn last(&self, owner: usize) -> u64 {
        fence(SeqCst);
        self.0[owner].version.load(SeqCst)
    }
}

/// Which versions have arrived at their owner.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// All up to this one have.
    up_to: u64,
    /// Those behind a gap: as many at most as are on their way.
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

    /// Whether an older one than the newest is still on its way.
    pub(super) fn has_gap(&self) -> bool {
        !self.ahead.is_empty()
    }
}
