//! The list.

use std::ops::{Index, IndexMut};

/// Elements that are allocated together, and copied at most.
pub(super) const CHUNK_LEN: usize = 4_096;

/// A list at whose end elements are added without moving all others.
#[derive(Debug)]
pub struct GradualList<T> {
    /// All are full, except the last one. The first one is as large as it needs to be.
    chunks: Vec<Vec<T>>,
}

impl<T> Default for GradualList<T> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<T> GradualList<T> {
    /// A list of one element.
    pub fn with(first: T) -> Self {
        Self { chunks: vec![vec![first]] }
    }

    /// The element at an index, if there is one.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.chunks.get(index / CHUNK_LEN)?.get(index % CHUNK_LEN)
    }

    /// The element at an index, to change.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.chunks.get_mut(index / CHUNK_LEN)?.get_mut(index % CHUNK_LEN)
    }

    /// All elements in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        let last = self.chunks.last().map_or(0, Vec::len);
        self.chunks.len().saturating_sub(1) * CHUNK_LEN + last
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Adds an element and returns its index.
    pub fn push(&mut self, element: T) -> usize {
        let index = self.len();
        match self.chunks.last_mut() {
            None => self.chunks.push(vec![element]),
            Some(last) if last.len() < CHUNK_LEN => last.push(element),
            Some(_) => {
                let mut chunk = Vec::with_capacity(CHUNK_LEN);
                chunk.push(element);
                self.chunks.push(chunk);
            }
        }
        index
    }
}

impl<T> Index<usize> for GradualList<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        &self.chunks[index / CHUNK_LEN][index % CHUNK_LEN]
    }
}

impl<T> IndexMut<usize> for GradualList<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.chunks[index / CHUNK_LEN][index % CHUNK_LEN]
    }
}
