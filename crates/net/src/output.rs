//! The unwritten output of one connection.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};

use crate::pool::BufferPool;

/// A buffer that has grown to this is no longer appended to, so that it returns to the pool as soon
/// as it is written.
const TAIL_BYTES_MAX: usize = 64 * 1024;
/// Pieces passed to the kernel in one vectored write.
const PIECES_PER_WRITE_MAX: usize = 64;

/// The unwritten output of one connection: copied bytes and pieces shared by reference, in order.
pub struct Output<S> {
    head: VecDeque<Piece<S>>,
    /// Bytes of all pieces in `head`, including the written part of the first one.
    head_bytes: usize,
    /// Bytes of the shared pieces among them.
    shared_bytes: usize,
    /// Bytes of the first piece in `head` that are written already.
    written_bytes: usize,
    /// New bytes are appended here; none of them are written yet.
    tail: Vec<u8>,
}

enum Piece<S> {
    Owned(Vec<u8>),
    Shared(S),
}

impl<S: AsRef<[u8]>> Piece<S> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Owned(bytes) => bytes,
            Self::Shared(shared) => shared.as_ref(),
        }
    }
}

/// The result of one write.
pub(crate) struct Written {
    /// Bytes the kernel was offered.
    pub(crate) offered: usize,
    /// Bytes the kernel has accepted.
    pub(crate) taken: usize,
}

impl<S: AsRef<[u8]>> Output<S> {
    pub(crate) const fn new() -> Self {
        Self {
            head: VecDeque::new(),
            head_bytes: 0,
            shared_bytes: 0,
            written_bytes: 0,
            tail: Vec::new(),
        }
    }

    /// Appends a copy of `bytes`.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
    }

    /// The buffer to append to, for encoders. It may already hold output of this connection: remove
    /// only bytes that you have appended yourself.
    #[inline]
    pub fn as_vec_mut(&mut self) -> &mut Vec<u8> {
        &mut self.tail
    }

    /// Appends bytes by reference. Worth it from about 1 KiB; below that a copy is cheaper.
    pub fn push_shared(&mut self, shared: S) {
        let len = shared.as_ref().len();
        if len == 0 {
            return;
        }
        self.seal();
        self.head_bytes += len;
        self.shared_bytes += len;
        self.head.push_back(Piece::Shared(shared));
    }

    /// Bytes not written yet.
    #[must_use]
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.head_bytes - self.written_bytes + self.tail.len()
    }

    /// Bytes in buffers that belong to this connection alone, whether written or not.
    #[inline]
    pub(crate) fn owned_bytes(&self) -> usize {
        self.head_bytes - self.shared_bytes + self.tail.len()
    }

    /// True when everything is written.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tail.is_empty() && self.head.is_empty()
    }

    /// Makes the tail ready for appending.
    #[inline]
    pub(crate) fn prepare(&mut self, pool: &mut BufferPool) {
        if self.tail.capacity() == 0 {
            self.tail = pool.take();
        } else if self.tail.len() >= TAIL_BYTES_MAX {
            self.seal();
            self.tail = pool.take();
        }
    }

    /// Discards everything and returns the buffers to the pool.
    pub(crate) fn clear(&mut self, pool: &mut BufferPool) {
        pool.give(std::mem::take(&mut self.tail));
        for piece in std::mem::take(&mut self.head) {
            if let Piece::Owned(bytes) = piece {
                pool.give(bytes);
            }
        }
        self.head_bytes = 0;
        self.shared_bytes = 0;
        self.written_bytes = 0;
    }

    /// Passes all bytes, in order, to `sink`, and discards them.
    pub(crate) fn drain_into<E>(
        &mut self,
        pool: &mut BufferPool,
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut result = Ok(());
        let mut skip = self.written_bytes;
        for piece in &self.head {
            if result.is_ok() {
                result = sink(&piece.bytes()[skip..]);
            }
            skip = 0;
        }
        if result.is_ok() && !self.tail.is_empty() {
            result = sink(&self.tail);
        }
        self.clear(pool);
        result
    }

    /// One write, vectored if there is more than one piece.
    pub(crate) fn write_to(
        &mut self,
        sink: &mut impl Write,
        pool: &mut BufferPool,
    ) -> io::Result<Written> {
        if self.head.is_empty() {
            let offered = self.tail.len();
            let taken = sink.write(&self.tail)?;
            if taken == offered {
                pool.give(std::mem::take(&mut self.tail));
            } else if taken > 0 {
                self.seal();
                self.written_bytes = taken;
            }
            return Ok(Written { offered, taken });
        }
        let written = self.write_pieces(sink)?;
        self.advance(written.taken, pool);
        Ok(written)
    }

    fn write_pieces(&self, sink: &mut impl Write) -> io::Result<Written> {
        let mut slices = [IoSlice::new(&[]); PIECES_PER_WRITE_MAX];
        let mut offered = 0;
        let mut skip = self.written_bytes;
        let tail = if self.tail.is_empty() { None } else { Some(self.tail.as_slice()) };
        let pieces = self.head.iter().map(Piece::bytes).chain(tail);
        let mut count = 0;
        for (slice, bytes) in slices.iter_mut().zip(pieces) {
            let bytes = &bytes[skip..];
            skip = 0;
            *slice = IoSlice::new(bytes);
            offered += bytes.len();
            count += 1;
        }
        let taken = sink.write_vectored(&slices[..count])?;
        Ok(Written { offered, taken })
    }

    /// Discards the first `taken` bytes and returns the buffers that are written completely.
    fn advance(&mut self, taken: usize, pool: &mut BufferPool) {
        self.written_bytes += taken;
        while let Some(first) = self.head.front() {
            let len = first.bytes().len();
            if self.written_bytes < len {
                return;
            }
            self.written_bytes -= len;
            self.head_bytes -= len;
            match self.head.pop_front() {
                Some(Piece::Owned(bytes)) => pool.give(bytes),
                Some(Piece::Shared(_)) => self.shared_bytes -= len,
                None => {}
            }
        }
        if self.head.capacity() > PIECES_PER_WRITE_MAX {
            self.head = VecDeque::new();
        }
        if self.written_bytes == self.tail.len() {
            pool.give(std::mem::take(&mut self.tail));
            self.written_bytes = 0;
        } else if self.written_bytes > 0 {
            self.seal();
        }
    }

    /// Moves the tail behind the pieces, without copying.
    fn seal(&mut self) {
        if !self.tail.is_empty() {
            let bytes = std::mem::take(&mut self.tail);
            self.head_bytes += bytes.len();
            self.head.push_back(Piece::Owned(bytes));
        }
    }
}

#[cfg(test)]
mod tests;
