//! Finds the frames that the last process may not have synced.
//!
//! A frame that can be read when the log is opened was written, but perhaps not synced: a power cut
//! could still remove it, and a sync of the old file proves nothing if an earlier one failed. So
//! the frames that no later frame marks as synced are written again to a new segment before new
//! ones.

use std::io;
use std::sync::Arc;

use crate::blocks::BLOCK;
use crate::commit_frame::{Frame, read_frame};
use crate::frame;
use crate::id::SegmentId;
use crate::salt::Salt;
use crate::storage::StorageFile;

/// The frames at the end of the log that may not be on the disk. `last` is the number of the last
/// one, which is in this segment; all earlier segments are synced.
pub(crate) fn unsynced(
    segment: SegmentId,
    file: &Arc<dyn StorageFile>,
    salt: Option<Salt>,
    last: u64,
) -> io::Result<Vec<Frame>> {
    let size = file.size()?;
    let mut places = Vec::new();
    let first = frame::header_at(&**file, 0).unwrap_or_default();
    let mut salt = Salt::for_segment(salt, segment, first);
    let (mut synced, mut seen, mut offset) = (0, 0, 0);
    while seen < last && offset < size {
        // What cannot be read was found to be lost already, or is missed below.
        let header = frame::header_at(&**file, offset).unwrap_or_default();
        let Some(header) = header.filter(|header| {
            let salt = *salt.get_or_insert(header.salt);
            header.segment == segment && header.salt == salt && header.number > seen
        }) else {
            offset += BLOCK as u64;
            continue;
        };
        seen = header.number;
        synced = synced.max(header.synced);
        places.push((header.number, offset));
        offset += header.frame_bytes();
    }
    places.retain(|(number, _)| (synced + 1..=last).contains(number));
    if places.len() as u64 != last.saturating_sub(synced) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is missing"));
    }
    places.into_iter().map(|(_, offset)| read_frame(segment, &**file, offset)).collect()
}
