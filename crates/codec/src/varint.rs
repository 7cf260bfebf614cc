//! Variable byte integers (5.0 section 1.5.5): seven bits a byte, least significant first.

use crate::DecodeError;

/// The largest value, which needs four bytes.
pub const VARINT_MAX: u32 = 268_435_455;

/// The number of bytes that the encoding of `value` takes.
#[inline]
#[must_use]
pub const fn varint_len(value: u32) -> usize {
    match value {
        0..=0x7F => 1,
        0x80..=0x3FFF => 2,
        0x4000..=0x1F_FFFF => 3,
        _ => 4,
    }
}

/// The value at the start of `bytes` and the length of its encoding; `None` if more bytes are
/// needed. The encoding need not be the shortest.
///
/// # Errors
/// Malformed if the fourth byte announces a fifth.
#[inline]
pub(crate) fn read(bytes: &[u8]) -> Result<Option<(u32, usize)>, DecodeError> {
    let part = |byte: u8, index: u32| u32::from(byte & 0x7F) << (7 * index);
    Ok(match *bytes {
        [a, ..] if a < 0x80 => Some((u32::from(a), 1)),
        [a, b, ..] if b < 0x80 => Some((part(a, 0) | part(b, 1), 2)),
        [a, b, c, ..] if c < 0x80 => Some((part(a, 0) | part(b, 1) | part(c, 2), 3)),
        [a, b, c, d, ..] if d < 0x80 => {
            Some((part(a, 0) | part(b, 1) | part(c, 2) | part(d, 3), 4))
        }
        [_, _, _, _, ..] => {
            return Err(DecodeError::malformed("a variable byte integer has more than four bytes"));
        }
        _ => None,
    })
}

/// The encoding of `value`, at most [`VARINT_MAX`]: four bytes, and how many of them are used.
#[inline]
pub(crate) const fn bytes(value: u32) -> ([u8; 4], usize) {
    debug_assert!(value <= VARINT_MAX);
    let len = varint_len(value);
    let [a, b, c, d] = [value as u8, (value >> 7) as u8, (value >> 14) as u8, (value >> 21) as u8];
    let bytes = match len {
        1 => [a, 0, 0, 0],
        2 => [a | 0x80, b, 0, 0],
        3 => [a | 0x80, b | 0x80, c, 0],
        _ => [a | 0x80, b | 0x80, c | 0x80, d & 0x7F],
    };
    (bytes, len)
}
