//! The hash table.

use hashbrown::HashTable;

/// Tables of so few buckets are copied at once: that takes less than a tenth of a millisecond.
pub(super) const AT_ONCE_MAX: usize = 1_024;
/// Buckets of the former table that each insertion empties.
pub(super) const BUCKETS_PER_INSERTION: usize = 8;

/// A hash table whose elements move to a larger one a few at a time. Callers pass hashes, as with
/// [`HashTable`].
#[derive(Debug)]
pub struct GradualTable<T> {
    table: HashTable<T>,
    /// The table before it was full. Its buckets from `former_end` on are empty.
    former: HashTable<T>,
    former_end: usize,
}

impl<T> Default for GradualTable<T> {
    fn default() -> Self {
        Self { table: HashTable::new(), former: HashTable::new(), former_end: 0 }
    }
}

impl<T> GradualTable<T> {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.table.len() + self.former.len()
    }

    /// Buckets for elements, those of the former table among them.
    #[cfg(test)]
    pub(super) fn buckets(&self) -> usize {
        self.table.num_buckets() + self.former.num_buckets()
    }

    /// All elements, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.table.iter().chain(self.former.iter())
    }

    /// The element with this hash of which `is_it` holds.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(&T) -> bool) -> Option<&T> {
        let found = self.table.find(hash, &mut is_it);
        if found.is_some() || self.former.is_empty() {
            return found;
        }
        self.former.find(hash, is_it)
    }

    /// The same, to change.
    #[inline]
    pub fn find_mut(&mut self, hash: u64, mut is_it: impl FnMut(&T) -> bool) -> Option<&mut T> {
        self.table_of(hash, &mut is_it).find_mut(hash, is_it)
    }

    /// Takes an element out.
    pub fn remove(&mut self, hash: u64, mut is_it: impl FnMut(&T) -> bool) -> Option<T> {
        let entry = self.table_of(hash, &mut is_it).find_entry(hash, is_it).ok()?;
        let (removed, _) = entry.remove();
        if self.former.is_empty() {
            self.forget_former();
            if self.table.is_empty() && self.table.num_buckets() > AT_ONCE_MAX {
                self.table = HashTable::new();
            }
        }
        Some(removed)
    }

    /// Adds an element that is not in the table.
    pub fn insert_unique(&mut self, hash: u64, element: T, hash_of: impl Fn(&T) -> u64) {
        if self.table.len() == self.table.capacity() && self.table.num_buckets() > AT_ONCE_MAX {
            self.grow(&hash_of);
        }
        if self.former_end > 0 {
            self.move_some(&hash_of);
        }
        self.table.insert_unique(hash, element, hash_of);
    }

    /// The table that has an element, or neither.
    #[inline]
    fn table_of(&mut self, hash: u64, is_it: impl FnMut(&T) -> bool) -> &mut HashTable<T> {
        if self.former.is_empty() || self.table.find(hash, is_it).is_some() {
            &mut self.table
        } else {
            &mut self.former
        }
    }

    /// The table is full, of elements or of the traces of removed ones: the next one has room for
    /// what is in it and for what comes until all of it has moved.
    #[cold]
    fn grow(&mut self, hash_of: impl Fn(&T) -> u64) {
        while self.former_end > 0 {
            self.move_some(&hash_of);
        }
        let (len, buckets) = (self.table.len(), self.table.num_buckets());
        let capacity = (2 * len).max(len + buckets / BUCKETS_PER_INSERTION + 1);
        self.former = std::mem::replace(&mut self.table, HashTable::with_capacity(capacity));
        self.former_end = buckets;
    }

    #[cold]
    fn move_some(&mut self, hash_of: impl Fn(&T) -> u64) {
        for _ in 0..BUCKETS_PER_INSERTION.min(self.former_end) {
            self.former_end -= 1;
            if let Ok(entry) = self.former.get_bucket_entry(self.former_end) {
                let (element, _) = entry.remove();
                self.table.insert_unique(hash_of(&element), element, &hash_of);
            }
        }
        if self.former_end == 0 || self.former.is_empty() {
            self.forget_former();
        }
    }

    fn forget_former(&mut self) {
        if self.former_end > 0 || self.former.num_buckets() > 1 {
            (self.former, self.former_end) = (HashTable::new(), 0);
        }
    }
}
