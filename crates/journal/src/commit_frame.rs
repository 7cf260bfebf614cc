//! One commit in memory, on its way into the log.

use std::io;
use std::time::Instant;

use crate::blocks::Blocks;
use crate::frame::{self, FramePlace, Header};
use crate::id::SegmentId;
use crate::storage::StorageFile;

/// One commit in memory: room for the header, the records, zeros up to a whole block.
pub(crate) struct Frame {
    pub(crate) header: Header,
    pub(crate) bytes: Blocks,
    /// The commit is complete only once it is synced.
    pub(crate) wants_sync: bool,
    /// Its bytes on the disk without records moved by compaction; 0 if it has no others.
    pub(crate) appended_bytes: u64,
    /// Where it was last written.
    pub(crate) place: Option<FramePlace>,
    /// Where it was complete before, in a file that has failed.
    pub(crate) moved_from: Option<FramePlace>,
    /// When the buffers were cut.
    pub(crate) since: Instant,
}

impl Frame {
    /// Room for the header of a frame whose records are appended behind it.
    pub(crate) fn begin(bytes: &mut Blocks) {
        bytes.clear();
        bytes.tail().extend_from_slice(&[0; Header::BYTES]);
    }

    /// `header` lacks the length and the checksum of the records.
    pub(crate) fn new(mut header: Header, mut bytes: Blocks) -> Self {
        let records = bytes.get(Header::BYTES..).unwrap_or_default();
        // Invariant: writers hold publishers at a few MiB, far below 4 GiB.
        header.len = u32::try_from(records.len()).expect("a frame is less than 4 GiB");
        header.crc = crc32fast::hash(records);
        bytes.align();
        Self {
            header,
            bytes,
            wants_sync: false,
            appended_bytes: 0,
            place: None,
            moved_from: None,
            since: Instant::now(),
        }
    }

    /// A frame without records.
    pub(crate) fn empty(header: Header) -> Self {
        let mut bytes = Blocks::default();
        Self::begin(&mut bytes);
        Self::new(header, bytes)
    }

    pub(crate) fn records(&self) -> &[u8] {
        // Invariant: the records stand behind the header.
        &self.bytes[Header::BYTES..Header::BYTES + self.header.len as usize]
    }
}

/// Reads a frame that is to be written again.
pub(crate) fn read_frame(
    segment: SegmentId,
    file: &dyn StorageFile,
    offset: u64,
) -> io::Result<Frame> {
    let mut records = Vec::new();
    let header = frame::read(file, offset, &mut records)?;
    let Some(header) = header.filter(|header| header.segment == segment) else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the frame is damaged"));
    };
    let mut bytes = Blocks::default();
    Frame::begin(&mut bytes);
    bytes.tail().extend_from_slice(&records);
    let mut frame = Frame::new(header, bytes);
    // Invariant: frames begin at offsets below 4 GiB, see `Tail::write`.
    let offset = u32::try_from(offset).expect("frames begin within the segment");
    frame.moved_from = Some(FramePlace { segment, offset });
    Ok(frame)
}
