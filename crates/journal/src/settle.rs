//! Makes sure of what the last process left behind, before anything is built on it.
//!
//! What can be read when the log is opened was written, but perhaps not synced: the system shows it
//! and the next power cut takes it away. A sync of the old file says nothing if an earlier one
//! failed. So the frames of which no later one says that they are on the disk are written again, to
//! a new segment.

use std::io;
use std::sync::Arc;

use crate::frame::{self, Found, Header};
use crate::id::SegmentId;
use crate::storage::{StorageFile, read_full_at};
use crate::tail::{Frame, Place};

/// The frames at the end of the log that may not be on the disk. `last` is the number of the last
/// one, in this segment; all before the segment are on the disk.
pub(crate) fn unsynced(
    segment: SegmentId,
    file: &Arc<dyn StorageFile>,
    last: u64,
) -> io::Result<Vec<Frame>> {
    let mut places = Vec::new();
    let mut synced = 0;
    let mut offset = 0;
    while let Some(header) = header_at(&**file, offset)? {
        if header.segment != segment || header.number > last {
            break;
        }
        synced = synced.max(header.synced);
        places.push((header.number, offset));
        if header.number == last {
            break;
        }
        offset += header.frame_bytes();
    }
    places.retain(|(number, _)| *number > synced);
    places.into_iter().map(|(_, offset)| read_frame(segment, &**file, offset)).collect()
}

/// Reads a frame, to be written again.
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
    let mut bytes = Vec::with_capacity(frame::frame_bytes(records.len()));
    Frame::begin(&mut bytes);
    bytes.extend_from_slice(&records);
    let mut frame = Frame::new(header, bytes);
    // Invariant: frames begin at offsets below 4 GiB, see `Tail::write`.
    let offset = u32::try_from(offset).expect("frames begin within the segment");
    frame.moved_from = Some(Place { segment, offset });
    Ok(frame)
}

fn header_at(file: &dyn StorageFile, offset: u64) -> io::Result<Option<Header>> {
    let mut head = [0; Header::BYTES];
    let read = read_full_at(file, offset, &mut head)?;
    match Header::decode(head.get(..read).unwrap_or_default()) {
        Found::Header(header) => Ok(Some(header)),
        Found::Format(_) | Found::Nothing => Ok(None),
    }
}
