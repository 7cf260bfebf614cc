//! The route map: one writer at a time, readers that never wait.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use arc_swap::ArcSwap;

use super::group::GroupRegistry;
use super::{Group, RouteChange, RouteSnapshot, SHARDS_MAX, ShardSet};
use crate::{Filter, SharedFilter};

/// The shards that have subscriptions to a filter, with marks: the first of the two levels of
/// routing.
///
/// All shards of a process share one map. Each keeps the full filters of its own sessions in a
/// [`SubscriptionIndex`](crate::SubscriptionIndex), and updates the map when its first session
/// subscribes to a filter and when the last one unsubscribes. Readers take a [`RouteSnapshot`]; an
/// update copies the changed parts and publishes a new snapshot.
#[derive(Debug)]
pub struct RouteMap {
    current: ArcSwap<RouteSnapshot>,
    /// Held while the next snapshot is made.
    writer: Mutex<()>,
    groups: Arc<GroupRegistry>,
    shards: usize,
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
            groups: Arc::default(),
            shards,
        }
    }

    /// Records the first subscription of `shard` to `filter`; returns the group of a shared one.
    pub fn add(&self, filter: &Filter, shard: usize) -> Option<Arc<Group>> {
        self.apply(&[RouteChange::Add { filter: filter.clone(), shard }]);
        let Filter::Shared(shared) = filter else { return None };
        Some(self.group(shared))
    }

    /// Records that `shard` lost its last subscription to `filter`.
    pub fn remove(&self, filter: &Filter, shard: usize) {
        self.apply(&[RouteChange::Remove { filter: filter.clone(), shard }]);
    }

    /// Applies all `changes`, in order, and publishes the result at once. Each part of the map is
    /// copied once, however many of the changes concern it: cheaper than one by one.
    ///
    /// # Panics
    /// When a shard's number is not below the map's number of shards.
    pub fn apply(&self, changes: &[RouteChange]) {
        self.update(changes, false);
    }

    /// Like [`apply`](Self::apply), but publishes a new version even without an effective change: a
    /// routing decision with that version or a later one began after this call.
    ///
    /// # Panics
    /// When a shard's number is not below the map's number of shards.
    pub fn apply_as_new_version(&self, changes: &[RouteChange]) {
        self.update(changes, true);
    }

    /// Like [`apply`](Self::apply) with what `collect` returns, unless another thread is changing
    /// the map: then this returns false at once and `collect` is not called.
    ///
    /// # Panics
    /// When a shard's number is not below the map's number of shards.
    pub fn try_apply(&self, collect: impl FnOnce() -> Vec<RouteChange>) -> bool {
        let _writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let changes = collect();
        if !changes.is_empty() {
            self.publish(&changes, false);
        }
        true
    }

    fn update(&self, changes: &[RouteChange], always: bool) {
        if changes.is_empty() && !always {
            return;
        }
        // A panic of another writer leaves its work unpublished, so the state is consistent.
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.publish(changes, always);
    }

    /// Only with the lock of the writer.
    fn publish(&self, changes: &[RouteChange], always: bool) {
        for change in changes {
            let shard = change.shard();
            assert!(shard < self.shards, "shard {shard} of {}", self.shards);
        }
        let mut next = RouteSnapshot::clone(&self.current.load());
        let mut group = |filter: &SharedFilter| self.groups.group(filter, self.shards);
        if next.apply(changes, &mut group) || always {
            self.current.store(Arc::new(next));
        }
    }

    /// The group of a shared filter, made if none is referenced. It becomes visible in the map with
    /// the first shard that is [added](RouteChange::Add) while the result is referenced.
    pub fn group(&self, filter: &SharedFilter) -> Arc<Group> {
        self.groups.group(filter, self.shards)
    }

    /// The group of a shared filter if it is referenced, by the map or elsewhere.
    pub fn find_group(&self, filter: &SharedFilter) -> Option<Arc<Group>> {
        self.groups.find(filter)
    }

    /// The number of groups that are referenced, by the map or elsewhere.
    pub fn groups_len(&self) -> usize {
        self.groups.len()
    }

    /// The current state of the map.
    pub fn snapshot(&self) -> Arc<RouteSnapshot> {
        self.current.load_full()
    }

    /// The shared groups that have members, connected or not, in no particular order.
    pub fn groups(&self) -> Vec<Arc<Group>> {
        let mut all = self.groups.all();
        let current = self.current.load();
        all.retain(|group| current.group(group.shared_filter()).is_some());
        all
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
