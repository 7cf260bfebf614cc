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
    /// What comes first. Boxed: most connections write all they have at once, from `tail`.
    head: Option<Box<Head<S>>>,
    /// New bytes are appended here; none of them are written yet.
    tail: Vec<u8>,
}

struct Head<S> {
    pieces: VecDeque<Piece<S>>,
    /// Bytes of all pieces, including the written part of the first one.
    bytes: usize,
    /// Bytes of the shared pieces among them.
    shared_bytes: usize,
    /// Bytes of the first piece that are written already.
    written_bytes: usize,
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

impl<S> Default for Head<S> {
    fn default() -> Self {
        Self { pieces: VecDeque::new(), bytes: 0, shared_bytes: 0, written_bytes: 0 }
    }
}

impl<S: AsRef<[u8]>> Head<S> {
    fn push_owned(&mut self, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        self.pieces.push_back(Piece::Owned(bytes));
    }

    fn push_shared(&mut self, shared: S) {
        let len = shared.as_ref().len();
        self.bytes += len;
        self.shared_bytes += len;
        self.pieces.push_back(Piece::Shared(shared));
    }

    /// One vectored write, of as many pieces as it takes and the tail behind them.
    fn write(&self, tail: &[u8], sink: &mut impl Write) -> io::Result<Written> {
        let mut slices = [IoSlice::new(&[]); PIECES_PER_WRITE_MAX];
        let mut offered = 0;
        let mut skip = self.written_bytes;
        let tail = if tail.is_empty() { None } else { Some(tail) };
        let pieces = self.pieces.iter().map(Piece::bytes).chain(tail);
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

    /// Discards pieces that are written completely, and returns their buffers. What is written
    /// behind the last piece stays in `written_bytes`.
    fn discard_written(&mut self, pool: &mut BufferPool) {
        while let Some(first) = self.pieces.front() {
            let len = first.bytes().len();
            if self.written_bytes < len {
                return;
            }
            self.written_bytes -= len;
            self.bytes -= len;
            match self.pieces.pop_front() {
                Some(Piece::Owned(bytes)) => pool.give(bytes),
                Some(Piece::Shared(_)) => self.shared_bytes -= len,
                None => {}
            }
        }
        if self.pieces.capacity() > PIECES_PER_WRITE_MAX {
            self.pieces = VecDeque::new();
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
        Self { head: None, tail: Vec::new() }
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
        if shared.as_ref().is_empty() {
            return;
        }
        self.seal();
        self.head.get_or_insert_default().push_shared(shared);
    }

    /// Bytes not written yet.
    #[must_use]
    #[inline]
    pub fn len_bytes(&self) -> usize {
        let head = self.head.as_ref().map_or(0, |head| head.bytes - head.written_bytes);
        head + self.tail.len()
    }

    /// Bytes in buffers that belong to this connection alone, whether written or not.
    #[inline]
    pub(crate) fn owned_bytes(&self) -> usize {
        let head = self.head.as_ref().map_or(0, |head| head.bytes - head.shared_bytes);
        head + self.tail.len()
    }

    /// True when everything is written.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tail.is_empty() && self.pieces().is_none()
    }

    /// The head, if something is in it.
    #[inline]
    fn pieces(&self) -> Option<&Head<S>> {
        self.head.as_deref().filter(|head| !head.pieces.is_empty())
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
        for piece in self.head.take().into_iter().flat_map(|head| head.pieces) {
            if let Piece::Owned(bytes) = piece {
                pool.give(bytes);
            }
        }
    }

    /// Passes all bytes, in order, to `sink`, and discards them.
    pub(crate) fn drain_into<E>(
        &mut self,
        pool: &mut BufferPool,
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut result = Ok(());
        if let Some(head) = self.pieces() {
            let mut skip = head.written_bytes;
            for piece in &head.pieces {
                if result.is_ok() {
                    result = sink(&piece.bytes()[skip..]);
                }
                skip = 0;
            }
        }
        if result.is_ok() && !self.tail.is_empty() {
            result = sink(&self.tail);
        }
        self.clear(pool);
        result
    }

    /// Takes all output out, if it is in one buffer. [`restore`](Self::restore) it.
    #[inline]
    pub(crate) fn take_whole(&mut self) -> Option<Vec<u8>> {
        if self.tail.is_empty() || self.pieces().is_some() {
            return None;
        }
        Some(std::mem::take(&mut self.tail))
    }

    /// Puts a buffer back of which the first `taken` bytes are written. Nothing was appended
    /// meanwhile.
    #[inline]
    pub(crate) fn restore(&mut self, buffer: Vec<u8>, taken: usize, pool: &mut BufferPool) {
        debug_assert!(self.is_empty(), "the output was taken whole");
        self.tail = buffer;
        self.advance_tail(taken, pool);
    }

    /// One write, vectored if there is more than one piece.
    pub(crate) fn write_to(
        &mut self,
        sink: &mut impl Write,
        pool: &mut BufferPool,
    ) -> io::Result<Written> {
        if let Some(head) = self.pieces() {
            let written = head.write(&self.tail, sink)?;
            self.advance(written.taken, pool);
            return Ok(written);
        }
        let offered = self.tail.len();
        let taken = sink.write(&self.tail)?;
        self.advance_tail(taken, pool);
        Ok(Written { offered, taken })
    }

    /// Discards the first `taken` bytes of the tail, which comes first.
    #[inline]
    fn advance_tail(&mut self, taken: usize, pool: &mut BufferPool) {
        if taken == self.tail.len() {
            pool.give(std::mem::take(&mut self.tail));
        } else if taken > 0 {
            self.seal();
            self.head.get_or_insert_default().written_bytes = taken;
        }
    }

    /// Discards the first `taken` bytes and returns the buffers that are written completely.
    fn advance(&mut self, taken: usize, pool: &mut BufferPool) {
        let Some(head) = &mut self.head else { return };
        head.written_bytes += taken;
        head.discard_written(pool);
        if !head.pieces.is_empty() {
            return;
        }
        if head.written_bytes == self.tail.len() {
            head.written_bytes = 0;
            pool.give(std::mem::take(&mut self.tail));
        } else if head.written_bytes > 0 {
            self.seal();
        }
    }

    /// Moves the tail behind the pieces, without copying.
    fn seal(&mut self) {
        if !self.tail.is_empty() {
            let bytes = std::mem::take(&mut self.tail);
            self.head.get_or_insert_default().push_owned(bytes);
        }
    }
}

#[cfg(test)]
mod tests;
