//! The hash map.

use std::borrow::Borrow;
use std::hash::{BuildHasher as _, Hash};

use foldhash::fast::RandomState;

use super::GradualTable;

/// Tables of a map. The memory of a new table is touched at random while elements move into it, so
/// that nearly each of the first insertions makes the system clear a page: huge pages of a table
/// for two million keys took 80 ms. Parts are full at different times.
const PARTS: usize = 64;
/// Its bits of a hash are neither those of a bucket nor those that tell keys of a bucket apart.
const PART_SHIFT: u32 = 40;

/// A hash map that grows a little with each insertion. Its seed is random: clients choose the keys.
#[derive(Debug)]
pub struct GradualMap<K, V> {
    parts: Box<[GradualTable<(K, V)>; PARTS]>,
    len: usize,
    state: RandomState,
}

impl<K, V> Default for GradualMap<K, V> {
    fn default() -> Self {
        let parts = Box::new(std::array::from_fn(|_| GradualTable::default()));
        Self { parts, len: 0, state: RandomState::default() }
    }
}

/// The part that a hash belongs to.
const fn part_of(hash: u64) -> usize {
    (hash >> PART_SHIFT) as usize % PARTS
}

impl<K: Hash + Eq, V> GradualMap<K, V> {
    /// The number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Buckets of all parts.
    #[cfg(test)]
    pub(super) fn buckets(&self) -> usize {
        self.parts.iter().map(GradualTable::buckets).sum()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All keys with their values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.parts.iter().flat_map(GradualTable::iter).map(|(key, value)| (key, value))
    }

    /// Whether there is a value for `key`.
    #[inline]
    pub fn contains_key<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// The value for `key`.
    #[inline]
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// The value for `key`, with the key as it was inserted.
    #[inline]
    pub fn get_key_value<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        let hash = self.state.hash_one(key);
        let found = self.parts[part_of(hash)].find(hash, |(own, _)| own.borrow() == key)?;
        Some((&found.0, &found.1))
    }

    /// The value for `key`, to change in place.
    #[inline]
    pub fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let hash = self.state.hash_one(key);
        let part = &mut self.parts[part_of(hash)];
        let found = part.find_mut(hash, |(own, _)| own.borrow() == key)?;
        Some(&mut found.1)
    }

    /// Sets the value for `key`; returns the value it replaces.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (state, hash) = (&self.state, self.state.hash_one(&key));
        let part = &mut self.parts[part_of(hash)];
        if let Some((_, present)) = part.find_mut(hash, |(own, _)| *own == key) {
            return Some(std::mem::replace(present, value));
        }
        part.insert_unique(hash, (key, value), |(key, _)| state.hash_one(key));
        self.len += 1;
        None
    }

    /// Removes and returns the value for `key`.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let hash = self.state.hash_one(key);
        let (_, removed) =
            self.parts[part_of(hash)].remove(hash, |(own, _)| own.borrow() == key)?;
        self.len -= 1;
        Some(removed)
    }
}
