//! Scanning the blocks of a segment for its frames.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use crate::blocks::BLOCK;
use crate::frame::{Found, Header};
use crate::id::SegmentId;
use crate::salt::Salt;
use crate::storage::{StorageFile, read_patiently};

/// Bytes per read of a sequential scan.
const CHUNK: usize = 1 << 20;

/// Bytes per read of scattered records.
const SMALL_CHUNK: usize = 1 << 16;

/// A part of a file in memory, which moves to the requested position.
pub(crate) struct Window {
    file: Arc<dyn StorageFile>,
    size: u64,
    start: u64,
    bytes: Vec<u8>,
    chunk: usize,
    /// Blocks that cannot be read; they look like zeros.
    unreadable: BTreeSet<u64>,
    /// Why the first of them cannot.
    error: Option<io::Error>,
}

impl Window {
    pub(crate) fn new(file: Arc<dyn StorageFile>) -> io::Result<Self> {
        let size = file.size()?;
        let (bytes, unreadable) = (Vec::new(), BTreeSet::new());
        Ok(Self { file, size, start: 0, bytes, chunk: CHUNK, unreadable, error: None })
    }

    /// For scattered records.
    pub(crate) fn small(file: Arc<dyn StorageFile>) -> io::Result<Self> {
        Ok(Self { chunk: SMALL_CHUNK, ..Self::new(file)? })
    }

    /// The file.
    pub(crate) const fn file(&self) -> &Arc<dyn StorageFile> {
        &self.file
    }

    /// The size of the file.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// Bytes from `offset` on; fewer than requested at the end of the file.
    pub(crate) fn get(&mut self, offset: u64, len: usize) -> &[u8] {
        let end = self.start + self.bytes.len() as u64;
        if offset < self.start || offset + len as u64 > end {
            self.fill(offset, len);
        }
        let from = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        let rest = self.bytes.get(from..).unwrap_or_default();
        rest.get(..len).unwrap_or(rest)
    }

    /// True if any of these bytes lies in a block that cannot be read.
    pub(crate) fn is_unreadable(&self, offset: u64, len: u64) -> bool {
        let block = offset - offset % BLOCK as u64;
        self.unreadable.range(block..offset + len).next().is_some()
    }

    /// Why some block cannot be read, once; `None` if all that were looked at can.
    pub(crate) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    fn fill(&mut self, offset: u64, len: usize) {
        let left = self.size.saturating_sub(offset);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(len.max(self.chunk));
        self.start = offset;
        self.bytes.clear();
        self.bytes.shrink_to(len.max(8 * CHUNK));
        self.bytes.resize(wanted, 0);
        match read_patiently(&*self.file, offset, &mut self.bytes) {
            Ok(read) => self.bytes.truncate(read),
            Err(_) => self.fill_in_blocks(),
        }
    }

    /// A part cannot be read: reads the others block by block.
    fn fill_in_blocks(&mut self) {
        let mut at = 0;
        while at < self.bytes.len() {
            let offset = self.start + at as u64;
            let piece = (BLOCK - (offset % BLOCK as u64) as usize).min(self.bytes.len() - at);
            // Invariant: the piece ends within the bytes.
            let into = &mut self.bytes[at..at + piece];
            if let Err(error) = read_patiently(&*self.file, offset, into) {
                self.error.get_or_insert(error);
                into.fill(0);
                self.unreadable.insert(offset - offset % BLOCK as u64);
            }
            at += piece;
        }
    }
}

/// The content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// A frame of this segment.
    Whole(Header),
    /// The header of a frame of this segment whose records do not match it.
    Broken(Header),
    /// Anything else.
    Other,
}

/// A segment that is being scanned.
pub(crate) struct Scan {
    pub(crate) id: SegmentId,
    pub(crate) window: Window,
    /// The salt of its frames, once it is known.
    salt: Option<u64>,
}

impl Scan {
    pub(crate) fn new(
        id: SegmentId,
        file: Arc<dyn StorageFile>,
        salt: Option<Salt>,
    ) -> io::Result<Self> {
        let mut window = Window::new(file)?;
        let first = Header::decode(window.get(0, Header::BYTES)).header();
        Ok(Self { id, window, salt: Salt::for_segment(salt, id, first) })
    }

    /// The format of the segment, if it is another one.
    pub(crate) fn other_format(&mut self) -> Option<u16> {
        match Header::decode(self.window.get(0, Header::BYTES)) {
            Found::Format(format) => Some(format),
            _ => None,
        }
    }

    /// Examines a block.
    pub(crate) fn block(&mut self, offset: u64) -> Block {
        let found = Header::decode(self.window.get(offset, Header::BYTES));
        let Some(header) = found.header() else {
            return Block::Other;
        };
        if header.segment != self.id || *self.salt.get_or_insert(header.salt) != header.salt {
            return Block::Other;
        }
        // A damaged length must not cause a large allocation.
        if offset + header.frame_bytes() > self.window.size().next_multiple_of(BLOCK as u64) {
            return Block::Broken(header);
        }
        if header.fits(self.records(offset, &header)) {
            Block::Whole(header)
        } else {
            Block::Broken(header)
        }
    }

    /// The records of the frame at `offset`.
    pub(crate) fn records(&mut self, offset: u64, header: &Header) -> &[u8] {
        self.window.get(offset + Header::BYTES as u64, header.len as usize)
    }

    /// The first whole frame of this segment that begins at `offset` or behind it.
    pub(crate) fn next_whole(&mut self, mut offset: u64) -> Option<(u64, Header)> {
        while offset < self.window.size() {
            match self.block(offset) {
                Block::Whole(header) => return Some((offset, header)),
                // Its body is skipped, even where it looks like a frame.
                Block::Broken(header) => offset += header.frame_bytes(),
                Block::Other => offset += BLOCK as u64,
            }
        }
        None
    }
}
