//! The targets of one filter: shards with plain subscriptions, and shared groups.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::hamt::{Entry, Hamt};
use super::{Group, MatchedShards, ShardSet};

/// Shards with plain subscriptions to a filter, and the shared groups with that filter.
#[derive(Clone, Debug, Default)]
pub(super) struct Targets {
    pub(super) plain: MatchedShards,
    /// By share name. Versions of the map share its nodes, so that a change costs as much with one
    /// group as with many.
    groups: Option<Arc<Hamt<GroupTarget>>>,
}

#[derive(Debug)]
struct GroupTarget {
    group: Arc<Group>,
    /// Shards that have members, connected or not.
    shards: ShardSet,
}

#[cfg(test)]
thread_local! {
    /// Group targets that updates have copied.
    pub(super) static COPIES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Clone for GroupTarget {
    fn clone(&self) -> Self {
        #[cfg(test)]
        COPIES.set(COPIES.get() + 1);
        Self { group: Arc::clone(&self.group), shards: self.shards }
    }
}

impl Entry for GroupTarget {
    fn hash(&self, state: &RandomState) -> u64 {
        state.hash_one(self.group.name())
    }
}

impl Targets {
    pub(super) fn is_empty(&self) -> bool {
        self.plain.all.is_empty() && self.groups.is_none()
    }

    pub(super) fn for_each_group(&self, found: &mut impl FnMut(&Arc<Group>)) {
        if let Some(groups) = &self.groups {
            groups.for_each(&mut |target| found(&target.group));
        }
    }

    pub(super) fn group(&self, name: &str, state: &RandomState) -> Option<&Arc<Group>> {
        let groups = self.groups.as_ref()?;
        let target = groups.get(state.hash_one(name), |target| target.group.name() == name)?;
        Some(&target.group)
    }

    /// Adds a shard to the group `name`, which `new_group` creates if it is missing; true if that
    /// changed anything.
    pub(super) fn add_to_group(
        &mut self,
        name: &str,
        shard: usize,
        state: &RandomState,
        new_group: impl FnOnce() -> Arc<Group>,
    ) -> bool {
        let hash = state.hash_one(name);
        let is_it = |target: &GroupTarget| target.group.name() == name;
        let groups = Arc::make_mut(self.groups.get_or_insert_default());
        match groups.get(hash, is_it).map(|target| target.shards) {
            Some(shards) if shards.contains(shard) => return false,
            Some(_) => {
                if let Some(target) = groups.get_mut(hash, is_it) {
                    target.shards.insert(shard);
                }
            }
            None => {
                let target = GroupTarget { group: new_group(), shards: ShardSet::single(shard) };
                groups.insert(hash, target, state);
            }
        }
        true
    }

    /// Removes a shard from the group `name`, and the group with its last shard; true if that
    /// changed anything.
    pub(super) fn remove_from_group(
        &mut self,
        name: &str,
        shard: usize,
        state: &RandomState,
    ) -> bool {
        let hash = state.hash_one(name);
        let is_it = |target: &GroupTarget| target.group.name() == name;
        let Some(groups) = &mut self.groups else { return false };
        let shards = groups.get(hash, is_it).map(|target| target.shards).unwrap_or_default();
        if !shards.contains(shard) {
            return false;
        }
        let is_last = shards == ShardSet::single(shard);
        if is_last && groups.len() == 1 {
            self.groups = None;
            return true;
        }
        let groups = Arc::make_mut(groups);
        if is_last {
            groups.remove(hash, is_it);
        } else if let Some(target) = groups.get_mut(hash, is_it) {
            target.shards.remove(shard);
        }
        true
    }
}
