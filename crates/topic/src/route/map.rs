//! The route map: one writer at a time, readers that never wait.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::{Group, RouteChange, RouteSnapshot, SHARDS_MAX, ShardSet};
use crate::{Filter, SharedFilter};

/// The shards that have subscriptions to a filter: the first of the two levels of routing.
///
/// All shards of a process share one map. Each keeps the full filters of its own sessions in a
/// [`SubscriptionIndex`](crate::SubscriptionIndex), and updates the map when its first session
/// subscribes to a filter and when the last one unsubscribes. Readers take a [`RouteSnapshot`]; an
/// update copies the changed parts and publishes a new snapshot.
#[derive(Debug)]
pub struct RouteMap {
    current: ArcSwap<RouteSnapshot>,
    writer: Mutex<Writer>,
    shards: usize,
}

#[derive(Debug, Default)]
struct Writer {
    groups: GroupRegistry,
}

/// All groups that are still referenced. While a group is referenced, it is the only one for its
/// filter, even if the map dropped it in between.
#[derive(Debug, Default)]
struct GroupRegistry {
    known: HashMap<SharedFilter, Weak<Group>, RandomState>,
    last_id: u64,
    /// The number of known groups at which unreferenced ones are removed.
    prune_at: usize,
}

impl GroupRegistry {
    fn group(&mut self, filter: &SharedFilter, shards: usize) -> Arc<Group> {
        if let Some(group) = self.known.get(filter).and_then(Weak::upgrade) {
            return group;
        }
        if self.known.len() >= self.prune_at {
            self.known.retain(|_, group| group.strong_count() > 0);
            self.prune_at = (self.known.len() * 2).max(64);
        }
        self.last_id += 1;
        let group = Arc::new(Group::new(self.last_id, filter.clone(), shards));
        self.known.insert(filter.clone(), Arc::downgrade(&group));
        group
    }
}

impl Default for RouteMap {
    fn default() -> Self {
        Self::new()
    }
}

impl RouteMap {
    /// An empty map for up to [`SHARDS_MAX`] shards. A process that knows its number of shards
    /// should use [`RouteMap::with_shards`].
    pub fn new() -> Self {
        Self::with_shards(SHARDS_MAX)
    }

    /// An empty map for `shards` shards: shared groups choose their owner among them and allocate
    /// no more memory than they need.
    ///
    /// # Panics
    /// When `shards` is 0 or above [`SHARDS_MAX`].
    pub fn with_shards(shards: usize) -> Self {
        assert!((1..=SHARDS_MAX).contains(&shards), "between 1 and SHARDS_MAX shards");
        Self {
            current: ArcSwap::from_pointee(RouteSnapshot::new()),
            writer: Mutex::default(),
            shards,
        }
    }

    /// Records the first subscription of `shard` to `filter`; returns the group of a shared one.
    pub fn add(&self, filter: &Filter, shard: usize) -> Option<Arc<Group>> {
        self.apply(&[RouteChange::Add { filter: filter.clone(), shard }]);
        let Filter::Shared(shared) = filter else { return None };
        self.snapshot().group(shared).cloned()
    }

    /// Records that `shard` lost its last subscription to `filter`.
    pub fn remove(&self, filter: &Filter, shard: usize) {
        self.apply(&[RouteChange::Remove { filter: filter.clone(), shard }]);
    }

    /// Applies all `changes`, in order, and publishes the result at once; cheaper than one by one.
    ///
    /// # Panics
    /// When a shard's number is not below the map's number of shards.
    pub fn apply(&self, changes: &[RouteChange]) {
        self.publish(changes, false);
    }

    /// Like [`apply`](Self::apply), but publishes a new version even without an effective change: a
    /// routing decision with that version or a later one began after this call.
    ///
    /// # Panics
    /// When a shard's number is not below the map's number of shards.
    pub fn apply_as_new_version(&self, changes: &[RouteChange]) {
        self.publish(changes, true);
    }

    fn publish(&self, changes: &[RouteChange], always: bool) {
        for change in changes {
            let (RouteChange::Add { shard, .. } | RouteChange::Remove { shard, .. }) = change;
            assert!(*shard < self.shards, "shard {shard} of {}", self.shards);
        }
        // A panic of another writer leaves its work unpublished, so the state is consistent.
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = RouteSnapshot::clone(&self.current.load());
        let mut group = |filter: &SharedFilter| writer.groups.group(filter, self.shards);
        if next.apply(changes, &mut group) || always {
            self.current.store(Arc::new(next));
        }
    }

    /// The current state of the map.
    pub fn snapshot(&self) -> Arc<RouteSnapshot> {
        self.current.load_full()
    }

    /// The shared groups that have members, connected or not, in no particular order.
    pub fn groups(&self) -> Vec<Arc<Group>> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current.load();
        let known = writer.groups.known.values().filter_map(Weak::upgrade);
        known.filter(|group| current.group(group.shared_filter()).is_some()).collect()
    }

    /// Replaces `snapshot` by the current state of the map; true if that is a newer one. Cheap when
    /// it is not, so a shard can call it in every turn.
    pub fn refresh(&self, snapshot: &mut Arc<RouteSnapshot>) -> bool {
        let current = self.current.load();
        let is_newer = !Arc::ptr_eq(&current, snapshot);
        if is_newer {
            *snapshot = Arc::clone(&current);
        }
        is_newer
    }

    /// The shards that currently have a plain subscription matching `topic`, and the matching
    /// groups. For a series of topics take a [`snapshot`](Self::snapshot).
    pub fn shards_for(&self, topic: &str, found_group: &mut impl FnMut(&Arc<Group>)) -> ShardSet {
        self.current.load().shards_for(topic, found_group)
    }
}

#[cfg(test)]
mod tests;
