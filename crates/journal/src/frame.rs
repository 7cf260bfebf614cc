//! A frame: one commit, as bytes.
//!
//! ```text
//!  0  u32 magic            8  u32 crc of this header (with 0 here)   16  u32 bytes of records
//!  4  u16 format version  12  u32 crc of the records                 20  u32 count of records
//!  6  u16 owner
//! 24  u64 segment         32  u64 number      40  u64 synced
//! 48  u64 message ids     56  u64 queue ids   64  u64 salt
//! 72  the records, then zeros up to 4 KiB
//! ```
//!
//! All little-endian. How a log is read from this:
//!
//! - **Segment** distinguishes frames of this segment from the former content of a recycled file.
//! - **Salt** is random per data directory and kept in the file `salt`; segments written before
//!   that file was introduced have one each. Clients choose the bodies of messages, and a body may
//!   contain a whole block: without the salt no client can send one that would be accepted as a
//!   frame where a log is damaged.
//! - **Owner** is random per process that opens the directory, and 0 in frames of versions that
//!   knew no owners. Two processes never write at once, unless the locks were removed. Then the
//!   former one goes on in a segment behind which the later one has begun another, so that its
//!   frames do not count: by their owner they are told from frames that were written again, and
//!   reported.
//! - **Numbers** are consecutive through the whole log. Segments are read in the order of their
//!   numbers, which may have gaps, each from its beginning up to the first block that is not the
//!   frame with the next number. A segment without a frame at its beginning holds nothing.
//! - **The later segment wins**: frames with the number of the first frame of a later segment, or
//!   above, do not count. They were cut off when the log was opened, or written again there: all of
//!   them, with the first one last, so that such a segment has nothing before it has everything.
//! - **Synced** is the newest frame that was on the disk for certain when this one was written. The
//!   frame that is missing at the end of the log is damaged if a frame that can still be read says
//!   that it was synced; otherwise the log just ends there, as after a power cut. A frame missing
//!   before the first frame of a later segment is damaged: segments are synced before the next one
//!   is begun.
//! - **Ids** are the greatest assigned when the frame was cut: no earlier frame has greater ones.

use std::io;

use crate::blocks::BLOCK;
use crate::id::SegmentId;
use crate::storage::{StorageFile, read_patiently};

/// The version of everything in a data directory that this program reads and writes.
pub(crate) const FORMAT: u16 = 1;

/// "tjnl"
const MAGIC: u32 = u32::from_le_bytes(*b"tjnl");

/// Where a frame begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FramePlace {
    pub(crate) segment: SegmentId,
    pub(crate) offset: u32,
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The segment that it was written to.
    pub(crate) segment: SegmentId,
    /// The commit.
    pub(crate) number: u64,
    /// The newest frame that was synced when this one was written.
    pub(crate) synced: u64,
    /// The process that wrote it; 0: unknown.
    pub(crate) owner: u16,
    /// The greatest message id assigned so far.
    pub(crate) message_ids: u64,
    /// The greatest queue id assigned so far.
    pub(crate) queue_ids: u64,
    /// The salt of the frames of this segment.
    pub(crate) salt: u64,
    /// Bytes of the records.
    pub(crate) len: u32,
    /// Count of the records.
    pub(crate) records: u32,
    /// Checksum of the records.
    pub(crate) crc: u32,
}

/// The content of a place where a frame may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The header of a frame, whose records are still to be checked.
    Header(Header),
    /// The header of a frame of another format.
    Format(u16),
    /// Anything else: zeros, records, a torn header.
    Nothing,
}

impl Found {
    /// The header of a frame of this format.
    pub(crate) const fn header(self) -> Option<Header> {
        match self {
            Self::Header(header) => Some(header),
            Self::Format(_) | Self::Nothing => None,
        }
    }
}

impl Header {
    /// Bytes of a header.
    pub(crate) const BYTES: usize = 72;

    /// Size of the frame in its segment.
    pub(crate) fn frame_bytes(&self) -> u64 {
        frame_bytes(self.len as usize) as u64
    }

    /// Its bytes.
    pub(crate) fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            // Invariant: the fields below are 72 bytes together.
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&MAGIC.to_le_bytes());
        put(&FORMAT.to_le_bytes());
        put(&self.owner.to_le_bytes());
        put(&[0; 4]);
        put(&self.crc.to_le_bytes());
        put(&self.len.to_le_bytes());
        put(&self.records.to_le_bytes());
        put(&self.segment.get().to_le_bytes());
        put(&self.number.to_le_bytes());
        put(&self.synced.to_le_bytes());
        put(&self.message_ids.to_le_bytes());
        put(&self.queue_ids.to_le_bytes());
        put(&self.salt.to_le_bytes());
        let crc = crc32fast::hash(&bytes);
        bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes the first bytes of a block.
    pub(crate) fn decode(bytes: &[u8]) -> Found {
        let Some(bytes) = bytes.first_chunk::<{ Self::BYTES }>() else { return Found::Nothing };
        let mut unsummed = *bytes;
        unsummed[CRC_AT..CRC_AT + 4].fill(0);
        if u32_at(bytes, 0) != MAGIC || u32_at(bytes, CRC_AT) != crc32fast::hash(&unsummed) {
            return Found::Nothing;
        }
        let format = u16::from_le_bytes([bytes[4], bytes[5]]);
        if format != FORMAT {
            return Found::Format(format);
        }
        Found::Header(Self {
            segment: SegmentId::new(u64_at(bytes, 24)),
            number: u64_at(bytes, 32),
            synced: u64_at(bytes, 40),
            owner: u16::from_le_bytes([bytes[6], bytes[7]]),
            message_ids: u64_at(bytes, 48),
            queue_ids: u64_at(bytes, 56),
            salt: u64_at(bytes, 64),
            len: u32_at(bytes, 16),
            records: u32_at(bytes, 20),
            crc: u32_at(bytes, 12),
        })
    }

    /// Whether these are the records of the frame.
    pub(crate) fn fits(&self, records: &[u8]) -> bool {
        records.len() == self.len as usize && crc32fast::hash(records) == self.crc
    }
}

/// The offset of the header's checksum, the same in every format.
const CRC_AT: usize = 8;

fn u32_at(bytes: &[u8; Header::BYTES], at: usize) -> u32 {
    // Invariant: the callers pass places inside the header.
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8; Header::BYTES], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Size of a frame with this many bytes of records.
pub(crate) const fn frame_bytes(records: usize) -> usize {
    (Header::BYTES + records).next_multiple_of(BLOCK)
}

/// Reads the header at `offset`. `None`: there is none of this format.
pub(crate) fn header_at(file: &dyn StorageFile, offset: u64) -> io::Result<Option<Header>> {
    let mut head = [0; Header::BYTES];
    let read = read_patiently(file, offset, &mut head)?;
    Ok(Header::decode(&head[..read]).header())
}

/// Reads the frame at `offset` into `buffer`: its records alone. `None`: there is no whole frame.
///
/// It may belong to another segment or have another number; the caller checks that.
pub(crate) fn read(
    file: &dyn StorageFile,
    offset: u64,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<Header>> {
    let Some(header) = header_at(file, offset)? else { return Ok(None) };
    let records_at = offset + Header::BYTES as u64;
    // A damaged length must not cause a large allocation.
    if records_at + u64::from(header.len) > file.size()? {
        return Ok(None);
    }
    buffer.clear();
    buffer.resize(header.len as usize, 0);
    let read = read_patiently(file, records_at, buffer)?;
    Ok((read == buffer.len() && header.fits(buffer)).then_some(header))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            segment: SegmentId::new(7),
            number: 1 << 40,
            synced: 12,
            owner: 77,
            message_ids: 99,
            queue_ids: 5,
            salt: 1 << 50,
            len: 3,
            records: 1,
            crc: crc32fast::hash(b"abc"),
        }
    }

    #[test]
    fn headers_come_back() {
        let bytes = header().encode();
        assert_eq!(Header::decode(&bytes), Found::Header(header()));
        assert!(header().fits(b"abc"));
        assert!(!header().fits(b"abd"));
        assert!(!header().fits(b"ab"));
    }

    #[test]
    fn any_changed_bit_is_found() {
        let bytes = header().encode();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&changed), Found::Nothing, "bit {bit}");
        }
        assert_eq!(Header::decode(&bytes[..71]), Found::Nothing);
        assert_eq!(Header::decode(&[0; BLOCK]), Found::Nothing);
    }

    #[test]
    fn another_format_is_told_apart_from_damage() {
        let mut bytes = header().encode();
        bytes[4] = 2;
        bytes[CRC_AT..CRC_AT + 4].fill(0);
        let crc = crc32fast::hash(&bytes);
        bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Header::decode(&bytes), Found::Format(2));
    }

    #[test]
    fn frames_take_whole_blocks() {
        assert_eq!(frame_bytes(0), BLOCK);
        assert_eq!(frame_bytes(BLOCK - Header::BYTES), BLOCK);
        assert_eq!(frame_bytes(BLOCK - Header::BYTES + 1), 2 * BLOCK);
    }
}
