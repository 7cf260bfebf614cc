//! The hash map.

use std::borrow::Borrow;
use std::hash::{BuildHasher as _, Hash};

use foldhash::fast::RandomState;

use super::GradualTable;

/// A hash map that grows a little with each insertion. Its seed is random: clients choose the keys.
#[derive(Debug)]
pub struct GradualMap<K, V> {
    table: GradualTable<(K, V)>,
    state: RandomState,
}

impl<K, V> Default for GradualMap<K, V> {
    fn default() -> Self {
        Self { table: GradualTable::default(), state: RandomState::default() }
    }
}

impl<K: Hash + Eq, V> GradualMap<K, V> {
    /// The number of keys.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All keys with their values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.table.iter().map(|(key, value)| (key, value))
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
        let found = self.table.find(hash, |(own, _)| own.borrow() == key)?;
        Some((&found.0, &found.1))
    }

    /// The value for `key`, to change in place.
    #[inline]
    pub fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let hash = self.state.hash_one(key);
        let found = self.table.find_mut(hash, |(own, _)| own.borrow() == key)?;
        Some(&mut found.1)
    }

    /// Sets the value for `key`; returns the value it replaces.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (state, hash) = (&self.state, self.state.hash_one(&key));
        if let Some((_, present)) = self.table.find_mut(hash, |(own, _)| *own == key) {
            return Some(std::mem::replace(present, value));
        }
        self.table.insert_unique(hash, (key, value), |(key, _)| state.hash_one(key));
        None
    }

    /// Removes and returns the value for `key`.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let hash = self.state.hash_one(key);
        self.table.remove(hash, |(own, _)| own.borrow() == key).map(|(_, value)| value)
    }
}
