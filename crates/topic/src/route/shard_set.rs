//! A set of shards as one word.

use std::fmt;

/// The maximum number of shards of a process: a set of them is one word.
pub const SHARDS_MAX: usize = 64;

/// A set of shard numbers below [`SHARDS_MAX`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ShardSet(u64);

impl ShardSet {
    /// No shard.
    pub const EMPTY: Self = Self(0);

    /// The set with only `shard`.
    ///
    /// # Panics
    /// When `shard` is not below [`SHARDS_MAX`].
    pub const fn single(shard: usize) -> Self {
        assert!(shard < SHARDS_MAX, "a shard number is below SHARDS_MAX");
        Self(1 << shard)
    }

    /// Adds `shard`; see [`ShardSet::single`] for the limit.
    pub const fn insert(&mut self, shard: usize) {
        self.0 |= Self::single(shard).0;
    }

    /// Removes `shard`, present or not; see [`ShardSet::single`] for the limit.
    pub const fn remove(&mut self, shard: usize) {
        self.0 &= !Self::single(shard).0;
    }

    /// Whether `shard` is in the set.
    pub const fn contains(self, shard: usize) -> bool {
        shard < SHARDS_MAX && self.0 & (1 << shard) != 0
    }

    /// The shards of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the set has no shard.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The number of shards.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The shards in ascending order.
    pub const fn iter(self) -> ShardSetIter {
        ShardSetIter(self.0)
    }
}

impl FromIterator<usize> for ShardSet {
    fn from_iter<I: IntoIterator<Item = usize>>(shards: I) -> Self {
        let mut set = Self::EMPTY;
        shards.into_iter().for_each(|shard| set.insert(shard));
        set
    }
}

impl IntoIterator for ShardSet {
    type Item = usize;
    type IntoIter = ShardSetIter;

    fn into_iter(self) -> ShardSetIter {
        self.iter()
    }
}

impl fmt::Debug for ShardSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The shards of a [`ShardSet`] in ascending order.
#[derive(Clone, Debug)]
pub struct ShardSetIter(u64);

impl Iterator for ShardSetIter {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let shard = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contains_numbers_up_to_the_limit() {
        let mut set: ShardSet = [63, 0, 5, 5].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 5, 63]);
        assert_eq!(set.len(), 3);
        set.remove(5);
        assert!(set.contains(63) && !set.contains(5) && !set.contains(64));
        assert_eq!(set.union(ShardSet::single(5)).len(), 3);
        assert!(!set.is_empty() && ShardSet::EMPTY.is_empty());
        assert_eq!(format!("{set:?}"), "{0, 63}");
    }

    #[test]
    #[should_panic(expected = "below SHARDS_MAX")]
    fn refuses_a_shard_above_the_limit() {
        ShardSet::single(64);
    }
}
