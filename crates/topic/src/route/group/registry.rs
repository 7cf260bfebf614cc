//! The groups that are referenced anywhere, found by filter.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use foldhash::fast::RandomState;

use super::Group;
use crate::SharedFilter;
use crate::route::hamt::{Entry, Hamt};

/// All groups that are still referenced. While a group is referenced, it is the only one for its
/// filter, even if the map dropped it in between. A group removes its entry when it is dropped.
///
/// The lock is held for one look-up or change. No group is dropped under it: that takes the lock.
#[derive(Debug, Default)]
pub(in crate::route) struct GroupRegistry {
    known: Mutex<KnownGroups>,
    state: RandomState,
}

/// A persistent map, though there is only one version of it: unlike a hash table it grows and
/// shrinks in small steps.
#[derive(Debug, Default)]
struct KnownGroups {
    groups: Hamt<KnownGroup>,
    last_id: u64,
}

#[derive(Clone, Debug)]
struct KnownGroup {
    id: u64,
    filter: SharedFilter,
    group: Weak<Group>,
}

impl Entry for KnownGroup {
    fn hash(&self, state: &RandomState) -> u64 {
        hash_filter(&self.filter, state)
    }
}

impl GroupRegistry {
    /// The group of a filter, if it is referenced.
    pub(in crate::route) fn find(&self, filter: &SharedFilter) -> Option<Arc<Group>> {
        let hash = hash_filter(filter, &self.state);
        let known = self.lock();
        known.groups.get(hash, |known| known.filter == *filter)?.group.upgrade()
    }

    /// The group of a filter, made for this number of shards if none is referenced.
    pub(in crate::route) fn group(
        self: &Arc<Self>,
        filter: &SharedFilter,
        shards: usize,
    ) -> Arc<Group> {
        let hash = hash_filter(filter, &self.state);
        let is_it = |known: &KnownGroup| known.filter == *filter;
        let KnownGroups { groups, last_id } = &mut *self.lock();
        let known = groups.get_mut(hash, is_it);
        if let Some(group) = known.as_ref().and_then(|known| known.group.upgrade()) {
            return group;
        }
        *last_id += 1;
        let group = Arc::new(Group::new(*last_id, filter.clone(), shards, Arc::clone(self)));
        let (id, weak) = (*last_id, Arc::downgrade(&group));
        match known {
            // The group before is just being dropped, and finds its entry taken.
            Some(known) => (known.id, known.group) = (id, weak),
            None => {
                let known = KnownGroup { id, filter: filter.clone(), group: weak };
                groups.insert(hash, known, &self.state);
            }
        }
        group
    }

    /// All groups.
    pub(in crate::route) fn all(&self) -> Vec<Arc<Group>> {
        let mut all = Vec::new();
        self.lock().groups.for_each(&mut |known| all.extend(known.group.upgrade()));
        all
    }

    /// The number of entries.
    pub(in crate::route) fn len(&self) -> usize {
        self.lock().groups.len()
    }

    /// A group is not referenced any more.
    pub(super) fn dropped(&self, id: u64, filter: &SharedFilter) {
        let hash = hash_filter(filter, &self.state);
        self.lock().groups.remove(hash, |known| known.id == id);
    }

    fn lock(&self) -> MutexGuard<'_, KnownGroups> {
        // No code panics while the lock is held.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash_filter(filter: &SharedFilter, state: &RandomState) -> u64 {
    state.hash_one(filter)
}
