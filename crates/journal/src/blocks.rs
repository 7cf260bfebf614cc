//! Bytes that begin at a block's boundary in memory, so that a disk can take them without a copy.

use std::ops::{Deref, DerefMut};

/// Frames begin at multiples of this in their segment, and direct writes need such boundaries.
pub(crate) const BLOCK: usize = 4096;

/// A growing row of bytes. While it grows it may lose its place; [`Blocks::align`] finds it again.
#[derive(Default)]
pub(crate) struct Blocks {
    memory: Vec<u8>,
    /// What is in front of it only fills up to the boundary.
    begin: usize,
}

impl Blocks {
    /// Appends this number of zeros.
    pub(crate) fn zeroed(len: usize) -> Self {
        let mut blocks = Self::default();
        blocks.memory.reserve(len + BLOCK);
        blocks.clear();
        blocks.memory.resize(blocks.begin + len, 0);
        blocks
    }

    /// Empties it; keeps up to `kept` bytes of its memory.
    pub(crate) fn end(&mut self, kept: usize) {
        self.memory.clear();
        self.memory.shrink_to(kept);
        self.begin = 0;
    }

    /// Empties it, to be filled again.
    pub(crate) fn clear(&mut self) {
        self.memory.clear();
        self.begin = self.boundary();
        self.memory.resize(self.begin, 0);
    }

    /// Where to append.
    pub(crate) const fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.memory
    }

    /// Fills up with zeros to a whole number of blocks, and moves all to a boundary if its memory
    /// has moved since it was empty.
    pub(crate) fn align(&mut self) {
        let used = self.len();
        let len = used.next_multiple_of(BLOCK);
        self.memory.reserve(len - used + BLOCK);
        // From here on there is room, and the memory stays where it is.
        let begin = self.boundary();
        let from = self.begin..self.begin + used;
        self.memory.resize(begin.max(self.begin) + len, 0);
        if begin != self.begin {
            self.memory.copy_within(from, begin);
            self.memory[begin + used..].fill(0);
        }
        self.memory.truncate(begin + len);
        self.begin = begin;
    }

    /// How far the next boundary is from the beginning of the memory.
    fn boundary(&self) -> usize {
        let distance = self.memory.as_ptr().align_offset(BLOCK);
        if distance < BLOCK { distance } else { 0 }
    }
}

impl Deref for Blocks {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // Invariant: it begins within its memory.
        &self.memory[self.begin..]
    }
}

impl DerefMut for Blocks {
    fn deref_mut(&mut self) -> &mut [u8] {
        // Invariant: as above.
        &mut self.memory[self.begin..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_aligned(blocks: &Blocks) -> bool {
        blocks.as_ptr().align_offset(BLOCK) == 0 && blocks.len().is_multiple_of(BLOCK)
    }

    #[test]
    fn content_ends_at_a_block_boundary_with_zeros_behind() {
        let mut blocks = Blocks::default();
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            blocks.clear();
            let mut expected = Vec::new();
            for _ in 0..random.usize(..6) {
                let piece = vec![random.u8(1..); random.usize(..20_000)];
                blocks.tail().extend_from_slice(&piece);
                expected.extend_from_slice(&piece);
            }
            let begins_with = expected.len();
            assert_eq!(&blocks[..], &expected[..]);
            blocks.align();
            assert!(is_aligned(&blocks), "seed {seed}");
            assert_eq!(&blocks[..begins_with], &expected[..]);
            assert!(blocks[begins_with..].iter().all(|byte| *byte == 0));
            if random.bool() {
                blocks.end(random.usize(..30_000));
            }
        }
    }

    #[test]
    fn zeros_are_at_boundaries() {
        let zeros = Blocks::zeroed(3 * BLOCK);
        assert!(is_aligned(&zeros));
        assert_eq!(&zeros[..], &[0; 3 * BLOCK]);
    }
}
