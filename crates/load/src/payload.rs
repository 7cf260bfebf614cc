//! Payloads: the 24-byte header followed by the fill, or text.
//!
//! ```text
//! 0        4         8      12                   16              24         size
//! | magic+run | stream | seq | sent - intended us | intended ns  | fill .. |
//! ```
//! All numbers are big-endian. The first byte is [`MAGIC`], the three after it are the low 24
//! bits of the run's number. The top bit of `stream` marks a readiness probe. The fill is a
//! slice of a seeded random pool at a position derived from stream and sequence number, so that a
//! receiver can check every byte and a compressing link cannot shrink it.
//!
//! Text payloads carry the header in a printable form of 44 characters
//! ([`Header::write_printable`]): at the field `{{header}}` of a [`Template`] or else at its end,
//! in JMeter's random strings at the beginning of the random text.

use std::sync::Arc;

use crate::index::StreamIndex;

mod content;
mod kind;
mod printable;
mod template;

pub(crate) use content::{Content, Contents};
pub use kind::Payload;
pub use printable::PRINTABLE_BYTES;
pub(crate) use template::Facts;
pub use template::{Template, TemplateError};

/// First byte of every payload.
pub const MAGIC: u8 = 0x54;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 24;
/// The separator that JMeter's MQTT samplers write between time and text.
pub const JMETER_SEPARATOR: &str = "ts_sep_flag";
/// Bytes of time and separator: 13 digits and 11 letters.
pub const JMETER_STAMP_BYTES: usize = 13 + JMETER_SEPARATOR.len();
/// Marks a readiness probe in the stream number.
const PROBE: u32 = 1 << 31;
/// Positions at which a fill may start; a power of two. 8 KiB stay in the first-level cache.
const POOL_POSITIONS: usize = 8 * 1024;

/// The header of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The run's number, 24 bits.
    pub run: u32,
    /// Publisher stream.
    pub stream: StreamIndex,
    /// Sequence number within the stream. For probes: the attempt.
    pub seq: u32,
    /// A readiness probe, not part of the load.
    pub probe: bool,
    /// When the message was due, nanoseconds.
    pub intended_ns: u64,
    /// Its lateness in microseconds: written minus intended time, saturating at `u32::MAX`
    /// (71 minutes).
    pub late_us: u32,
}

impl Header {
    /// When the message was written, to the microsecond.
    pub const fn sent_ns(&self) -> u64 {
        self.intended_ns + self.late_us as u64 * 1_000
    }

    /// The 24 bytes of the header.
    pub const fn encode(&self) -> [u8; HEADER_BYTES] {
        let run = (MAGIC as u128) << 24 | (self.run & 0x00FF_FFFF) as u128;
        let stream = self.stream.number() | if self.probe { PROBE } else { 0 };
        let high =
            run << 96 | (stream as u128) << 64 | (self.seq as u128) << 32 | self.late_us as u128;
        let (high, low) = (high.to_be_bytes(), self.intended_ns.to_be_bytes());
        let mut bytes = [0; HEADER_BYTES];
        let (first, second) = bytes.split_at_mut(16);
        first.copy_from_slice(&high);
        second.copy_from_slice(&low);
        bytes
    }

    /// Reads the header; `None` when the payload is too short or does not start with
    /// [`MAGIC`].
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER_BYTES] = payload.first_chunk()?;
        if bytes[0] != MAGIC {
            return None;
        }
        let word = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let stream = word(4);
        Some(Self {
            run: word(0) & 0x00FF_FFFF,
            stream: StreamIndex::new(stream & !PROBE),
            seq: word(8),
            probe: stream & PROBE != 0,
            late_us: word(12),
            intended_ns: u64::from(word(16)) << 32 | u64::from(word(20)),
        })
    }
}

/// Random bytes that fill payloads; shared by all threads.
#[derive(Debug, Clone)]
pub struct Pool {
    bytes: Arc<[u8]>,
}

impl Pool {
    /// A pool for payloads of up to `payload_bytes_max` bytes. The same seed gives the same
    /// pool.
    pub fn new(seed: u64, payload_bytes_max: usize) -> Self {
        let mut bytes = vec![0; POOL_POSITIONS + payload_bytes_max];
        fastrand::Rng::with_seed(seed).fill(&mut bytes);
        Self { bytes: bytes.into() }
    }

    /// The fill of a message: `payload_bytes - 24` bytes.
    ///
    /// # Panics
    /// When the payload is smaller than the header or larger than the pool was made for.
    #[inline]
    pub fn fill(&self, stream: StreamIndex, seq: u32, payload_bytes: usize) -> &[u8] {
        // Multiplicative hashing spreads neighbours over the whole pool.
        let mixed =
            (u64::from(stream.number()) << 32 | u64::from(seq)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let at = (mixed >> 40) as usize % POOL_POSITIONS;
        &self.bytes[at..at + payload_bytes - HEADER_BYTES]
    }

    /// Appends a whole payload to `out`.
    #[inline]
    pub fn write(&self, header: &Header, payload_bytes: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&header.encode());
        out.extend_from_slice(self.fill(header.stream, header.seq, payload_bytes));
    }

    /// Whether `payload` is what [`Pool::write`] generates from its header.
    #[inline]
    pub fn is_intact(&self, header: &Header, payload: &[u8], payload_bytes: usize) -> bool {
        payload.len() == payload_bytes
            && payload[HEADER_BYTES..] == *self.fill(header.stream, header.seq, payload_bytes)
    }
}

#[cfg(test)]
mod tests;
