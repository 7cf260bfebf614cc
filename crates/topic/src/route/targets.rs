//! The targets of one filter: shards with plain subscriptions, and shared groups.

use std::sync::Arc;

use super::{Group, ShardSet};

/// Shards with plain subscriptions to a filter, and the shared groups with that filter.
#[derive(Clone, Debug, Default)]
pub(super) struct Targets {
    pub(super) shards: ShardSet,
    /// Ordered by share name.
    groups: Option<Arc<Vec<GroupTarget>>>,
}

#[derive(Clone, Debug)]
struct GroupTarget {
    group: Arc<Group>,
    /// Shards that have members, connected or not.
    shards: ShardSet,
}

impl Targets {
    pub(super) fn is_empty(&self) -> bool {
        self.shards.is_empty() && self.groups.is_none()
    }

    pub(super) fn for_each_group(&self, found: &mut impl FnMut(&Arc<Group>)) {
        for target in self.groups.iter().flat_map(|groups| groups.iter()) {
            found(&target.group);
        }
    }

    pub(super) fn group(&self, name: &str) -> Option<&Arc<Group>> {
        let groups = self.groups.as_ref()?;
        let at = find(groups, name).ok()?;
        Some(&groups[at].group)
    }

    /// Adds a shard to the group `name`, which `new_group` creates if it is missing; true if that
    /// changed anything.
    pub(super) fn add_to_group(
        &mut self,
        name: &str,
        shard: usize,
        new_group: impl FnOnce() -> Arc<Group>,
    ) -> bool {
        let groups = Arc::make_mut(self.groups.get_or_insert_default());
        match find(groups, name) {
            Ok(at) => {
                let is_new = !groups[at].shards.contains(shard);
                groups[at].shards.insert(shard);
                is_new
            }
            Err(at) => {
                let target = GroupTarget { group: new_group(), shards: ShardSet::single(shard) };
                groups.insert(at, target);
                true
            }
        }
    }

    /// Removes a shard from the group `name`, and the group with its last shard; true if that
    /// changed anything.
    pub(super) fn remove_from_group(&mut self, name: &str, shard: usize) -> bool {
        let Some(groups) = self.groups.as_mut().map(Arc::make_mut) else { return false };
        let Ok(at) = find(groups, name) else { return false };
        let was_present = groups[at].shards.contains(shard);
        groups[at].shards.remove(shard);
        if groups[at].shards.is_empty() {
            groups.remove(at);
        }
        if groups.is_empty() {
            self.groups = None;
        }
        was_present
    }
}

fn find(groups: &[GroupTarget], name: &str) -> Result<usize, usize> {
    groups.binary_search_by(|target| target.group.name().cmp(name))
}
