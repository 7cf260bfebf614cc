//! A large unit of input, such as a packet, on its way: it arrives in pieces.
//!
//! Memory is taken for what has arrived, piece by piece, never for what was announced. Nothing is
//! copied while the unit grows; once it is whole, its bytes are copied into one allocation of their
//! size, and each piece is freed as soon as it is copied.

/// Bytes of a piece. A smaller unit is kept as it is.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;

/// The beginning of a unit.
pub(crate) struct Unit {
    /// The length of the whole unit.
    whole_len: usize,
    len: usize,
    /// All are full, except the last one.
    pieces: Vec<Box<[u8]>>,
    /// Bytes of the pieces.
    allocated: usize,
}

impl Unit {
    /// The unit of `whole_len` bytes that begins with `bytes`, which are not all of it.
    pub(crate) fn begin(whole_len: usize, bytes: &[u8]) -> Box<Self> {
        debug_assert!(bytes.len() < whole_len, "a whole unit need not grow");
        let mut unit = Box::new(Self { whole_len, len: 0, pieces: Vec::new(), allocated: 0 });
        unit.extend(bytes);
        unit
    }

    /// Bytes that have arrived.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory that it takes.
    pub(crate) const fn allocated(&self) -> usize {
        self.allocated
    }

    pub(crate) const fn is_whole(&self) -> bool {
        self.len == self.whole_len
    }

    /// Where the next bytes go: at most a piece, and nothing that is behind the unit. Empty if it
    /// is whole.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        let used = self.len % PIECE_BYTES;
        if self.len == self.allocated && !self.is_whole() {
            let bytes = PIECE_BYTES.min(self.whole_len - self.len);
            self.pieces.push(vec![0; bytes].into_boxed_slice());
            self.allocated += bytes;
        }
        match self.pieces.last_mut() {
            Some(piece) if self.len < self.allocated => &mut piece[used..],
            _ => &mut [],
        }
    }

    /// So many bytes were written to [`Self::room`].
    pub(crate) fn grown(&mut self, bytes: usize) {
        self.len += bytes;
        debug_assert!(self.len <= self.allocated, "the room was not larger");
    }

    /// Takes what belongs to the unit from the front of `bytes`; returns the number of bytes.
    pub(crate) fn extend(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while taken < bytes.len() && !self.is_whole() {
            let room = self.room();
            let count = room.len().min(bytes.len() - taken);
            room[..count].copy_from_slice(&bytes[taken..taken + count]);
            self.grown(count);
            taken += count;
        }
        taken
    }

    /// The bytes that have arrived, in one allocation of their size.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len);
        for piece in self.pieces {
            let count = piece.len().min(self.len - bytes.len());
            bytes.extend_from_slice(&piece[..count]);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at ^ (at >> 8)) as u8).collect()
    }

    #[test]
    fn a_unit_takes_memory_for_what_has_arrived_and_for_no_more_than_its_length() {
        let whole = bytes(200_000);
        let mut unit = Unit::begin(whole.len(), &whole[..70_000]);
        assert_eq!((unit.len(), unit.allocated()), (70_000, 2 * PIECE_BYTES));
        let mut at = 70_000;
        while !unit.is_whole() {
            let room = unit.room();
            let count = room.len().min(9_999);
            room[..count].copy_from_slice(&whole[at..at + count]);
            unit.grown(count);
            at += count;
            assert!(unit.allocated() < unit.len() + PIECE_BYTES);
        }
        assert_eq!((unit.len(), unit.allocated()), (whole.len(), whole.len()));
        assert!(unit.room().is_empty());
        let assembled = unit.into_bytes();
        assert!(assembled == whole);
        assert_eq!(assembled.capacity(), whole.len());
    }

    #[test]
    fn bytes_behind_a_unit_are_left() {
        let whole = bytes(3 * PIECE_BYTES);
        let mut unit = Unit::begin(2 * PIECE_BYTES, &whole[..PIECE_BYTES]);
        assert_eq!(unit.allocated(), PIECE_BYTES);
        assert_eq!(unit.extend(&whole[PIECE_BYTES..]), PIECE_BYTES);
        assert!(unit.is_whole());
        assert_eq!(unit.extend(b"behind"), 0);
        assert!(unit.into_bytes() == whole[..2 * PIECE_BYTES]);
    }

    #[test]
    fn a_beginning_can_be_taken_out() {
        let unit = Unit::begin(1_000_000, &bytes(100_000));
        assert!(unit.into_bytes() == bytes(100_000));
    }
}
