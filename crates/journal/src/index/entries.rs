//! The entries of one queue, ordered by their number.
//!
//! Kept in chunks of at most 128: appended entries fill the last one, so a growing queue has no
//! unused room in its middle, and an insertion or removal anywhere moves at most three kilobytes.

use std::collections::VecDeque;

const CHUNK: usize = 128;

/// An entry: 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntrySlot {
    pub(crate) seq: u64,
    /// 0 for none.
    pub(crate) message: u64,
    pub(crate) state: u32,
    /// The segment of its record.
    pub(crate) segment: u32,
}

/// The entries of a queue.
#[derive(Default)]
pub(super) struct Entries {
    /// None of them is empty.
    chunks: VecDeque<Vec<EntrySlot>>,
    len: usize,
}

impl Entries {
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[cfg(test)]
    const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, seq: u64) -> Option<&EntrySlot> {
        let chunk = self.chunks.get(self.chunk_of(seq))?;
        let at = chunk.binary_search_by_key(&seq, |slot| slot.seq).ok()?;
        chunk.get(at)
    }

    pub(super) fn get_mut(&mut self, seq: u64) -> Option<&mut EntrySlot> {
        let chunk = self.chunk_of(seq);
        let chunk = self.chunks.get_mut(chunk)?;
        let at = chunk.binary_search_by_key(&seq, |slot| slot.seq).ok()?;
        chunk.get_mut(at)
    }

    /// Adds an entry; returns the one that had its number.
    pub(super) fn insert(&mut self, slot: EntrySlot) -> Option<EntrySlot> {
        if self.chunks.back().and_then(|chunk| chunk.last()).is_none_or(|l| l.seq < slot.seq) {
            self.push(slot);
            return None;
        }
        let index = self.chunk_of(slot.seq);
        // Invariant: there is an entry with this number or a greater one, so there is its chunk.
        let chunk = &mut self.chunks[index];
        match chunk.binary_search_by_key(&slot.seq, |slot| slot.seq) {
            Ok(at) => Some(std::mem::replace(&mut chunk[at], slot)),
            Err(at) => {
                chunk.insert(at, slot);
                self.len += 1;
                if chunk.len() > CHUNK {
                    let half = chunk.split_off(CHUNK / 2);
                    self.chunks.insert(index + 1, half);
                }
                None
            }
        }
    }

    pub(super) fn remove(&mut self, seq: u64) -> Option<EntrySlot> {
        let index = self.chunk_of(seq);
        let chunk = self.chunks.get_mut(index)?;
        let at = chunk.binary_search_by_key(&seq, |slot| slot.seq).ok()?;
        let slot = chunk.remove(at);
        self.len -= 1;
        if chunk.is_empty() {
            self.chunks.remove(index);
        }
        Some(slot)
    }

    /// Takes the last one.
    pub(super) fn pop(&mut self) -> Option<EntrySlot> {
        let chunk = self.chunks.back_mut()?;
        let slot = chunk.pop()?;
        self.len -= 1;
        if chunk.is_empty() {
            self.chunks.pop_back();
        }
        Some(slot)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &EntrySlot> {
        self.chunks.iter().flatten()
    }

    fn push(&mut self, slot: EntrySlot) {
        self.len += 1;
        match self.chunks.back_mut() {
            Some(chunk) if chunk.len() < CHUNK => {
                if chunk.len() == chunk.capacity() {
                    // Never room for more than a chunk holds.
                    let more = chunk.len().max(4);
                    chunk.reserve_exact(more.min(CHUNK - chunk.len()));
                }
                chunk.push(slot);
            }
            _ => self.chunks.push_back(vec![slot]),
        }
    }

    /// The chunk that has `seq`, if any has: the first whose last entry is not before it.
    fn chunk_of(&self, seq: u64) -> usize {
        // Most operations are at the front.
        match self.chunks.front().and_then(|chunk| chunk.last()) {
            Some(last) if last.seq >= seq => 0,
            _ => self.chunks.partition_point(|chunk| chunk.last().is_none_or(|l| l.seq < seq)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn slot(seq: u64, state: u32) -> EntrySlot {
        EntrySlot { seq, message: seq + 7, state, segment: 1 }
    }

    #[test]
    fn entries_are_a_sorted_map() {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut entries = Entries::default();
            let mut model = BTreeMap::new();
            for step in 0..3_000 {
                let seq = if random.u8(..4) == 0 { u64::from(step) } else { random.u64(..2_000) };
                if random.u8(..5) < 3 {
                    let slot = slot(seq, step);
                    assert_eq!(entries.insert(slot), model.insert(seq, slot));
                } else {
                    assert_eq!(entries.remove(seq), model.remove(&seq));
                }
                let seq = random.u64(..2_000);
                assert_eq!(entries.get(seq), model.get(&seq));
                assert_eq!(entries.get_mut(seq).copied(), model.get(&seq).copied());
                assert_eq!((entries.len(), entries.is_empty()), (model.len(), model.is_empty()));
            }
            assert!(entries.iter().eq(model.values()));
            assert!(entries.chunks.iter().all(|chunk| !chunk.is_empty()));
        }
    }

    #[test]
    fn a_queue_that_grew_has_little_room_unused() {
        let mut entries = Entries::default();
        (0..100_000).for_each(|seq| assert_eq!(entries.insert(slot(seq, 0)), None));
        let room: usize = entries.chunks.iter().map(Vec::capacity).sum();
        assert!(room < 101_000, "{room}");
        // Old ones that come back, moved in the log, while the queue has newer ones.
        let mut entries = Entries::default();
        (50_000..100_000).for_each(|seq| assert_eq!(entries.insert(slot(seq, 0)), None));
        (0..50_000).for_each(|seq| assert_eq!(entries.insert(slot(seq, 0)), None));
        assert!(entries.iter().map(|slot| slot.seq).eq(0..100_000));
    }
}
