//! A first-in, first-out queue in chunks of a bounded size.
//!
//! A ring that doubles copies all of its entries at once, and asks for twice their memory. When
//! hundreds of sessions that do not read have queues of one length, all of them double in one turn:
//! 200 queues of 8,192 messages took 400 ms, most of it for memory that the system cleared. Here an
//! addition allocates one chunk at most, however long the queue is.

use std::collections::VecDeque;

/// Entries of a chunk.
pub(crate) const CHUNK_LEN: usize = 64;

/// Entries, the oldest first.
#[derive(Debug)]
pub(crate) struct Chunks<T> {
    /// The oldest entries; empty only if there are none. It grows by doubling, up to a chunk, and
    /// is kept when it is emptied: most queues are short.
    front: VecDeque<T>,
    /// What follows, no chunk of it empty. All but the last were full once.
    rest: VecDeque<VecDeque<T>>,
    len: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { front: VecDeque::new(), rest: VecDeque::new(), len: 0 }
    }
}

impl<T> Chunks<T> {
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.front.front()
    }

    #[inline]
    pub(crate) fn push_back(&mut self, entry: T) {
        self.len += 1;
        if self.rest.is_empty() && self.front.len() < CHUNK_LEN {
            self.front.push_back(entry);
        } else {
            self.push_behind(entry);
        }
    }

    fn push_behind(&mut self, entry: T) {
        match self.rest.back_mut() {
            Some(last) if last.len() < CHUNK_LEN => last.push_back(entry),
            _ => {
                let mut chunk = VecDeque::with_capacity(CHUNK_LEN);
                chunk.push_back(entry);
                self.rest.push_back(chunk);
            }
        }
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let entry = self.front.pop_front()?;
        self.len -= 1;
        if self.front.is_empty() && !self.rest.is_empty() {
            self.advance();
        }
        Some(entry)
    }

    /// The first chunk is empty: the next one takes its place.
    fn advance(&mut self) {
        if let Some(next) = self.rest.pop_front() {
            self.front = next;
        }
        if self.rest.is_empty() {
            self.rest = VecDeque::new();
        }
    }

    /// The entry at a position. Takes as long as there are chunks before it.
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let (chunk, index) = self.find(index)?;
        self.chunk(chunk)?.get(index)
    }

    /// Takes out the entry at a position. Takes as long as there are chunks before it.
    pub(crate) fn remove(&mut self, index: usize) -> Option<T> {
        let (chunk, index) = self.find(index)?;
        let entry = match chunk.checked_sub(1) {
            None => self.front.remove(index)?,
            Some(chunk) => self.rest.get_mut(chunk)?.remove(index)?,
        };
        self.len -= 1;
        match chunk.checked_sub(1) {
            None if self.front.is_empty() => self.advance(),
            Some(chunk) if self.rest.get(chunk).is_some_and(VecDeque::is_empty) => {
                self.rest.remove(chunk);
            }
            _ => {}
        }
        Some(entry)
    }

    /// The position of the entry with this key, where the entries are sorted by it.
    pub(crate) fn position_by_key<K: Ord>(&self, key: &K, of: impl Fn(&T) -> K) -> Option<usize> {
        let before = |chunk: &VecDeque<T>| chunk.front().is_some_and(|entry| of(entry) <= *key);
        let chunk = self.rest.partition_point(before);
        let chunks_before = self.chunks().take(chunk);
        let entries_before: usize = chunks_before.map(VecDeque::len).sum();
        let index = self.chunk(chunk)?.binary_search_by_key(key, of).ok()?;
        Some(entries_before + index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks().flatten()
    }

    /// The entries from a position on.
    pub(crate) fn iter_mut_from(&mut self, from: usize) -> impl Iterator<Item = &mut T> {
        let mut skipped = 0;
        std::iter::once(&mut self.front).chain(&mut self.rest).flat_map(move |chunk| {
            let skip = (from - skipped).min(chunk.len());
            skipped += skip;
            chunk.range_mut(skip..)
        })
    }

    /// Where the entry at a position is: its chunk, the first one being `front`, and its place.
    fn find(&self, mut index: usize) -> Option<(usize, usize)> {
        for (number, chunk) in self.chunks().enumerate() {
            match index.checked_sub(chunk.len()) {
                None => return Some((number, index)),
                Some(behind) => index = behind,
            }
        }
        None
    }

    fn chunk(&self, number: usize) -> Option<&VecDeque<T>> {
        match number.checked_sub(1) {
            None => Some(&self.front),
            Some(number) => self.rest.get(number),
        }
    }

    fn chunks(&self) -> impl Iterator<Item = &VecDeque<T>> {
        std::iter::once(&self.front).chain(&self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest allocation that the structure has made for entries.
    fn capacity_max<T>(chunks: &Chunks<T>) -> usize {
        chunks.chunks().map(VecDeque::capacity).max().unwrap_or(0)
    }

    #[test]
    fn any_operations_have_the_results_that_a_ring_has() {
        let (mut chunks, mut ring) = (Chunks::default(), VecDeque::new());
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) as usize % below
        };
        for step in 0..60_000_u64 {
            // Rises and falls over several chunks.
            let rises = (step / 1_000) % 2 == 0;
            match next(10) {
                0..6 if rises => {
                    chunks.push_back(step);
                    ring.push_back(step);
                }
                0..7 => assert_eq!(chunks.pop_front(), ring.pop_front()),
                7 => {
                    let index = next(ring.len() + 3);
                    assert_eq!(chunks.remove(index), ring.remove(index));
                }
                8 => {
                    let key = ring.get(next(ring.len() + 1)).copied().unwrap_or(step);
                    let position = ring.binary_search(&key).ok();
                    assert_eq!(chunks.position_by_key(&key, |entry| *entry), position);
                    assert_eq!(chunks.position_by_key(&(key + 1), |entry| *entry), {
                        ring.binary_search(&(key + 1)).ok()
                    });
                }
                _ => {
                    let from = next(ring.len() + 2);
                    let rest: Vec<u64> = chunks.iter_mut_from(from).map(|entry| *entry).collect();
                    let expected: Vec<u64> = ring.iter().skip(from).copied().collect();
                    assert_eq!(rest, expected);
                }
            }
            assert_eq!((chunks.len(), chunks.is_empty()), (ring.len(), ring.is_empty()));
            assert_eq!(chunks.front(), ring.front());
        }
        assert!(chunks.iter().eq(ring.iter()));
    }

    #[test]
    fn a_long_queue_grows_by_chunks_and_an_emptied_one_keeps_one() {
        let mut chunks = Chunks::default();
        assert_eq!(capacity_max(&chunks), 0);
        for number in 0..100_000 {
            chunks.push_back(number);
        }
        assert!(capacity_max(&chunks) <= CHUNK_LEN);
        assert_eq!(chunks.get(99_999), Some(&99_999));
        while chunks.pop_front().is_some() {}
        assert!(capacity_max(&chunks) <= CHUNK_LEN && chunks.rest.capacity() == 0);
    }
}
