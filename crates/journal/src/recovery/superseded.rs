//! Frames that do not count, because a later segment begins with their number or a smaller one.
//!
//! Nearly all of them were written again there, with the same records: when the log was opened, or
//! when a file failed. Those with other records whose process is not that of the later segment were
//! written after the directory had been taken over from it.

use std::collections::BTreeMap;

use super::Foreign;
use crate::frame::Header;
use crate::id::SegmentId;
use crate::segment::file_name;

/// A frame that does not count.
struct Superseded {
    offset: u64,
    len: u32,
    crc: u32,
    /// It and the later segment are known to be of different processes.
    is_of_another: bool,
}

/// The frames of all segments that do not count and are not known to have been written again.
#[derive(Default)]
pub(super) struct SupersededFrames {
    frames: BTreeMap<(u64, SegmentId), Superseded>,
}

impl SupersededFrames {
    /// Notes a frame that does not count because of a later segment, which `owner` has begun.
    pub(super) fn note(&mut self, segment: SegmentId, offset: u64, header: &Header, owner: u16) {
        let is_of_another = header.owner != 0 && owner != 0 && header.owner != owner;
        let frame = Superseded { offset, len: header.len, crc: header.crc, is_of_another };
        self.frames.insert((header.number, segment), frame);
    }

    /// A frame counts: those like it were written again.
    pub(super) fn counted(&mut self, header: &Header) {
        if self.frames.is_empty() {
            return;
        }
        let (least, most) = (SegmentId::new(0), SegmentId::new(u64::MAX));
        let same = self.frames.range((header.number, least)..=(header.number, most));
        let is_again = |frame: &Superseded| (frame.len, frame.crc) == (header.len, header.crc);
        let again: Vec<_> =
            same.filter(|(_, frame)| is_again(frame)).map(|(place, _)| *place).collect();
        for place in again {
            self.frames.remove(&place);
        }
    }

    /// Those of a process that the directory had been taken over from.
    pub(super) fn foreign(self) -> Vec<Foreign> {
        let mut frames: Vec<_> = self.frames.into_iter().collect();
        frames.retain(|(_, frame)| frame.is_of_another);
        frames.sort_by_key(|((number, segment), _)| (*segment, *number));
        let mut found: Vec<Foreign> = Vec::new();
        for ((number, segment), Superseded { offset, .. }) in frames {
            let file = file_name(segment);
            match found.last_mut() {
                Some(last) if last.file == file && last.last_frame + 1 == number => {
                    last.last_frame = number;
                }
                _ => {
                    let (first_frame, last_frame) = (number, number);
                    found.push(Foreign { file, offset, first_frame, last_frame });
                }
            }
        }
        found
    }
}
