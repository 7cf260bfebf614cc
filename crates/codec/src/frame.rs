//! Splitting a byte stream into packets.

use crate::{DecodeError, ReasonCode, Version, varint};

/// One complete packet in a buffer: its first byte and the body behind the remaining length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Packet type (high four bits) and flags (low four bits).
    pub first_byte: u8,
    /// Variable header and payload.
    pub body: &'a [u8],
    /// Length of the whole packet in bytes, fixed header included: how far to advance the buffer.
    pub total_len: usize,
}

impl Frame<'_> {
    /// The packet type number, 0 to 15.
    #[inline]
    #[must_use]
    pub const fn type_number(&self) -> u8 {
        self.first_byte >> 4
    }

    /// Refuses a remaining length that takes more bytes than needed. 5.0 forbids it [MQTT-1.5.5-1];
    /// the older versions do not, and small devices send it.
    #[inline]
    pub(crate) fn check_header_len(&self, version: Version) -> Result<(), DecodeError> {
        let header_len = self.total_len.saturating_sub(self.body.len());
        // Invariant: the body is a part of the packet, whose size fits a variable byte integer.
        if version.is_v5() && header_len != 1 + varint::varint_len(self.body.len() as u32) {
            return Err(DecodeError::malformed(
                "the remaining length has more bytes than needed [MQTT-1.5.5-1]",
            ));
        }
        Ok(())
    }
}

/// The length of the packet at the start of `buf`, fixed header included, as it is announced;
/// `None` means that more bytes are needed to know it, or that they are no packet.
#[must_use]
pub fn announced_len(buf: &[u8]) -> Option<usize> {
    let (_, rest) = buf.split_first()?;
    let (remaining_len, varint_len) = varint::read(rest).ok()??;
    Some(1 + varint_len + remaining_len as usize)
}

/// Splits off the packet at the start of `buf`; `None` means that more bytes are needed.
///
/// Nothing is allocated, and the size is checked from the fixed header alone, before the body
/// arrives. `packet_size_max` limits the whole packet; `u32::MAX` disables the limit.
///
/// # Errors
/// [`ReasonCode::MALFORMED_PACKET`] for a remaining length of more than four bytes,
/// [`ReasonCode::PACKET_TOO_LARGE`] for a packet above `packet_size_max` bytes.
#[inline]
pub fn split_frame(buf: &[u8], packet_size_max: u32) -> Result<Option<Frame<'_>>, DecodeError> {
    let Some((&first_byte, rest)) = buf.split_first() else {
        return Ok(None);
    };
    let Some((remaining_len, varint_len)) = varint::read(rest)? else {
        return Ok(None);
    };
    let total_len = 1 + varint_len + remaining_len as usize;
    if total_len > packet_size_max as usize {
        return Err(DecodeError::new(
            ReasonCode::PACKET_TOO_LARGE,
            "the packet is larger than the maximum packet size",
        ));
    }
    Ok(buf.get(1 + varint_len..total_len).map(|body| Frame { first_byte, body, total_len }))
}
