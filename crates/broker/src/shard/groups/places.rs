//! Where this shard keeps each group.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::GroupSlot;

/// A table is copied when it grows and when it shrinks: several small ones never take long.
const PARTS: usize = 64;

/// Places that an emptied part keeps.
const KEPT: usize = 64;

/// The slots of groups by their numbers, which the route map gives out one after the other.
pub(super) struct GroupPlaces {
    parts: Box<[HashMap<u64, GroupSlot, RandomState>]>,
}

impl GroupPlaces {
    pub(super) fn new() -> Self {
        Self { parts: (0..PARTS).map(|_| HashMap::default()).collect() }
    }

    #[inline]
    pub(super) fn get(&self, group: u64) -> Option<GroupSlot> {
        self.parts[part(group)].get(&group).copied()
    }

    pub(super) fn insert(&mut self, group: u64, slot: GroupSlot) {
        self.parts[part(group)].insert(group, slot);
    }

    pub(super) fn remove(&mut self, group: u64) {
        let part = &mut self.parts[part(group)];
        part.remove(&group);
        if part.capacity() > KEPT && part.len() < part.capacity() / 8 {
            part.shrink_to(2 * part.len());
        }
    }
}

#[inline]
const fn part(group: u64) -> usize {
    (group % PARTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_of_ended_groups_are_given_back() {
        let mut places = GroupPlaces::new();
        for group in 1..=100_000 {
            places.insert(group, GroupSlot(group as u32));
        }
        let largest = |places: &GroupPlaces| {
            places.parts.iter().map(HashMap::capacity).max().unwrap_or_default()
        };
        assert!(largest(&places) < 4 * 100_000 / PARTS, "no part is large");
        for group in 1..=100_000 {
            assert_eq!(places.get(group), Some(GroupSlot(group as u32)));
            places.remove(group);
            assert_eq!(places.get(group), None);
        }
        assert!(largest(&places) <= KEPT, "{} places are kept", largest(&places));
    }
}
