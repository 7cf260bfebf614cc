//! The subscribers of one filter: a map that allocates nothing for a single entry.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;

use crate::gradual::GradualTable;

/// Up to this many subscribers are searched linearly; above, positions are hashed.
const SCAN_LEN_MAX: usize = 16;

/// Subscribers by key; a single one is stored inline.
#[derive(Debug)]
pub(super) enum Subscribers<K, V> {
    None,
    One(K, V),
    Many(Box<Many<K, V>>),
}

/// Two or more subscribers, contiguous for the fan-out.
#[derive(Debug)]
pub(super) struct Many<K, V> {
    entries: Vec<(K, V)>,
    /// Positions in `entries` by key; present above [`SCAN_LEN_MAX`].
    positions: Option<Positions>,
}

#[derive(Debug, Default)]
struct Positions {
    table: GradualTable<u32>,
    state: RandomState,
}

impl<K, V> Subscribers<K, V> {
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(..) => 1,
            Self::Many(many) => many.entries.len(),
        }
    }

    /// Those from a place on, up to `limit`.
    pub(super) fn part(&self, from: usize, limit: usize, found: &mut impl FnMut(&K, &V)) {
        match self {
            Self::None => {}
            Self::One(key, value) if from == 0 && limit > 0 => found(key, value),
            Self::One(..) => {}
            Self::Many(many) => {
                let part = many.entries.iter().skip(from).take(limit);
                part.for_each(|(key, value)| found(key, value));
            }
        }
    }

    pub(super) fn for_each<'a>(&'a self, found: &mut impl FnMut(&'a K, &'a V)) {
        match self {
            Self::None => {}
            Self::One(key, value) => found(key, value),
            Self::Many(many) => many.entries.iter().for_each(|(key, value)| found(key, value)),
        }
    }
}

impl<K: Copy + Eq + Hash, V> Subscribers<K, V> {
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self {
            Self::None => {
                *self = Self::One(key, value);
                None
            }
            Self::One(present, old) if *present == key => Some(std::mem::replace(old, value)),
            Self::One(..) => {
                let mut many = Many { entries: Vec::with_capacity(2), positions: None };
                if let Self::One(first, first_value) = std::mem::replace(self, Self::None) {
                    many.entries.push((first, first_value));
                }
                many.entries.push((key, value));
                *self = Self::Many(Box::new(many));
                None
            }
            Self::Many(many) => many.insert(key, value),
        }
    }

    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        match self {
            Self::One(present, _) if *present == key => match std::mem::replace(self, Self::None) {
                Self::One(_, value) => Some(value),
                _ => None,
            },
            Self::None | Self::One(..) => None,
            Self::Many(many) => {
                let removed = many.remove(key)?;
                if many.entries.len() == 1
                    && let Some((last, value)) = many.entries.pop()
                {
                    *self = Self::One(last, value);
                }
                Some(removed)
            }
        }
    }

    pub(super) fn get(&self, key: K) -> Option<&V> {
        match self {
            Self::None => None,
            Self::One(present, value) => (*present == key).then_some(value),
            Self::Many(many) => many.find(key).map(|at| &many.entries[at].1),
        }
    }
}

impl<K: Copy + Eq + Hash, V> Many<K, V> {
    fn find(&self, key: K) -> Option<usize> {
        match &self.positions {
            None => self.entries.iter().position(|(present, _)| *present == key),
            Some(positions) => positions.find(&self.entries, key),
        }
    }

    fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(at) = self.find(key) {
            return Some(std::mem::replace(&mut self.entries[at].1, value));
        }
        self.entries.push((key, value));
        if let Some(positions) = &mut self.positions {
            positions.add(&self.entries, self.entries.len() - 1);
        } else if self.entries.len() > SCAN_LEN_MAX {
            let positions = self.positions.insert(Positions::default());
            (0..self.entries.len()).for_each(|at| positions.add(&self.entries, at));
        }
        None
    }

    fn remove(&mut self, key: K) -> Option<V> {
        let at = self.find(key)?;
        let last = self.entries.len() - 1;
        if let Some(positions) = &mut self.positions {
            positions.remove(&self.entries, at);
            if at != last {
                positions.rename(&self.entries, last, at);
            }
        }
        let (_, value) = self.entries.swap_remove(at);
        // Half the limit, so that one subscriber that joins and leaves does not rebuild the table.
        if self.entries.len() <= SCAN_LEN_MAX / 2 {
            self.positions = None;
        }
        if self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(self.entries.len() * 2);
        }
        Some(value)
    }
}

impl Positions {
    fn find<K: Copy + Eq + Hash, V>(&self, entries: &[(K, V)], key: K) -> Option<usize> {
        let hash = self.state.hash_one(key);
        self.table.find(hash, |&at| entries[at as usize].0 == key).map(|&at| at as usize)
    }

    fn add<K: Copy + Eq + Hash, V>(&mut self, entries: &[(K, V)], at: usize) {
        let hash = self.state.hash_one(entries[at].0);
        let rehash = |&at: &u32| self.state.hash_one(entries[at as usize].0);
        self.table.insert_unique(hash, at as u32, rehash);
    }

    fn remove<K: Copy + Eq + Hash, V>(&mut self, entries: &[(K, V)], at: usize) {
        let hash = self.state.hash_one(entries[at].0);
        self.table.remove(hash, |&present| present as usize == at);
    }

    /// Records that the entry at `from` is about to move to `to`.
    fn rename<K: Copy + Eq + Hash, V>(&mut self, entries: &[(K, V)], from: usize, to: usize) {
        let hash = self.state.hash_one(entries[from].0);
        if let Some(at) = self.table.find_mut(hash, |&present| present as usize == from) {
            *at = to as u32;
        }
    }
}
