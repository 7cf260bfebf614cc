//! The segment that is being written.

use std::io;
use std::sync::Arc;

use crate::commit_frame::{Frame, read_frame};
use crate::frame::{FramePlace, Header};
use crate::id::SegmentId;
use crate::pool::Ready;
use crate::salt::Salt;
use crate::storage::{StorageFile, write_all_at};

/// A frame of the tail that is written but not synced.
pub(crate) struct Unsynced {
    pub(crate) number: u64,
    pub(crate) offset: u32,
}

/// The segment that is being written.
pub(crate) struct Tail {
    pub(crate) id: SegmentId,
    pub(crate) file: Arc<dyn StorageFile>,
    salt: u64,
    owner: u16,
    /// The size of its file before any frame that is larger.
    bytes: u32,
    /// The offset of the next frame.
    pub(crate) offset: u64,
    pub(crate) unsynced: Vec<Unsynced>,
    /// At least one frame in it is synced.
    pub(crate) holds_synced: bool,
    /// It was taken before it was zeroed.
    pub(crate) is_raw: bool,
}

impl Tail {
    pub(crate) fn new(ready: Ready, salt: Option<Salt>, owner: u16) -> Self {
        let Ready { id, file, bytes, is_raw } = ready;
        let salt = Salt::for_new_frames(salt);
        let unsynced = Vec::new();
        let holds_synced = false;
        Self { id, file, salt, owner, bytes, offset: 0, unsynced, holds_synced, is_raw }
    }

    /// The bytes that are left in it.
    pub(crate) fn room(&self) -> u64 {
        u64::from(self.bytes).saturating_sub(self.offset)
    }

    /// True if the frame ends within the segment, or is its only one.
    pub(crate) fn has_room(&self, frame: &Frame) -> bool {
        self.offset == 0 || frame.bytes.len() as u64 <= self.room()
    }

    /// Appends a frame.
    pub(crate) fn write(&mut self, frame: &mut Frame, synced: u64) -> io::Result<()> {
        frame.header.segment = self.id;
        frame.header.synced = synced;
        frame.header.salt = self.salt;
        frame.header.owner = self.owner;
        frame.bytes[..Header::BYTES].copy_from_slice(&frame.header.encode());
        write_all_at(&*self.file, self.offset, &frame.bytes)?;
        // Invariant: a second frame begins below `bytes`, which is a u32.
        let offset = u32::try_from(self.offset).expect("frames begin within the segment");
        frame.place = Some(FramePlace { segment: self.id, offset });
        self.unsynced.push(Unsynced { number: frame.header.number, offset });
        self.offset += frame.bytes.len() as u64;
        Ok(())
    }

    /// Syncs the file.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.file.sync()?;
        self.holds_synced |= !self.unsynced.is_empty();
        self.unsynced.clear();
        Ok(())
    }

    /// Writes and syncs frames so that the segment is valid only once it holds all of them: the
    /// first frame is written last, and a segment without it is void.
    pub(crate) fn write_at_once(&mut self, frames: &mut [Frame], synced: u64) -> io::Result<()> {
        let Some((first, others)) = frames.split_first_mut() else { return Ok(()) };
        self.offset = first.bytes.len() as u64;
        for frame in others {
            self.write(frame, synced)?;
        }
        let end = self.offset;
        self.sync()?;
        self.offset = 0;
        self.write(first, synced)?;
        self.offset = end;
        self.sync()
    }

    /// Reads a frame back that is no longer in memory.
    pub(crate) fn read_back(&self, unsynced: &Unsynced) -> Option<Frame> {
        let frame = read_frame(self.id, &*self.file, unsynced.offset.into()).ok()?;
        (frame.header.number == unsynced.number).then_some(frame)
    }
}
