//! Threads that closed their books for an earlier controller, which did not come to use them.

use std::collections::HashMap;

use crate::plan::StreamIndex;
use crate::verifier::{Books, StreamEnds};

/// The last answers of such threads: they have begun new books, which are empty.
#[derive(Debug, Default)]
pub(super) struct ClosedBooks {
    /// Also of threads that have only been asked for them.
    ends: HashMap<usize, Vec<(StreamIndex, StreamEnds)>>,
    books: HashMap<usize, Option<Books>>,
}

impl ClosedBooks {
    pub(super) fn note_ends(&mut self, thread: usize, ends: Vec<(StreamIndex, StreamEnds)>) {
        self.ends.insert(thread, ends);
    }

    pub(super) fn note_books(&mut self, thread: usize, books: Books) {
        self.books.insert(thread, Some(books));
    }

    /// Whether this thread has closed its books.
    pub(super) fn are_of(&self, thread: usize) -> bool {
        self.books.contains_key(&thread)
    }

    /// Whether some thread has.
    pub(super) fn are_of_some(&self) -> bool {
        !self.books.is_empty()
    }

    /// What these threads have sent.
    pub(super) fn take_ends(&mut self) -> Vec<(StreamIndex, StreamEnds)> {
        let ends = std::mem::take(&mut self.ends).into_iter();
        ends.filter(|(thread, _)| self.are_of(*thread)).flat_map(|(_, ends)| ends).collect()
    }

    /// Their books.
    pub(super) fn take_books(&mut self) -> Vec<Books> {
        self.books.values_mut().filter_map(Option::take).collect()
    }
}
