//! Takes what the writers have, writes it as a frame, and says that it is committed.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::frame::Header;
use crate::id::{SegmentId, Token};
use crate::journal::{Shared, Trouble};
use crate::keeper::Unused;
use crate::segment::{Segment, file_name};
use crate::storage::is_full;
use crate::tail::{Frame, Place, Tail};

/// A frame's memory is kept for the next one up to this size.
const KEPT_BYTES: usize = 4 << 20;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There was nothing to commit.
    Idle,
    /// Everything up to this is committed.
    Committed(Token),
    /// The disk is full or failing: what was taken is kept. Try again after a while.
    Held,
}

/// The writing end of the log. One thread drives it: [`Committer::spawn`], or a simulation.
pub struct Committer {
    pub(crate) shared: Arc<Shared>,
    tail: Option<Tail>,
    /// Frames to write: at most one that was cut, behind those saved from a file that failed.
    frames: VecDeque<Frame>,
    /// The number of the next frame.
    next: u64,
    /// All frames up to this are on the disk for certain.
    synced: u64,
    /// A file failed: nothing is complete before the next sync, whatever its level.
    doubtful: bool,
    /// Segments without anything live, and the frame that must be synced before they go.
    freed: VecDeque<(u64, SegmentId)>,
    freed_now: Vec<SegmentId>,
    /// Memory for the next frame and the next cut.
    bytes: Vec<u8>,
    spares: Vec<Vec<u8>>,
    /// Records of the newest frame.
    records: u32,
    /// A thread of its own prepares segments.
    pub(crate) has_keeper: bool,
}

/// Why the frames cannot be written now.
enum Held {
    /// There is no space.
    Full(io::Error),
    /// The file, or the disk, fails.
    Fails(io::Error),
}

impl Held {
    fn from_error(error: io::Error) -> Self {
        if is_full(&error) { Self::Full(error) } else { Self::Fails(error) }
    }
}

impl Committer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let last = shared.committed.load(Ordering::Acquire);
        Self {
            shared,
            tail: None,
            frames: VecDeque::new(),
            next: last + 1,
            // What was read when the log was opened was synced then.
            synced: last,
            doubtful: false,
            freed: VecDeque::new(),
            freed_now: Vec::new(),
            bytes: Vec::new(),
            spares: Vec::new(),
            records: 0,
            has_keeper: false,
        }
    }

    /// Commits what there is, once. Looks at no clock but to count how long the disk takes.
    ///
    /// Without [`Committer::spawn`] it also prepares segments, one at a time.
    pub fn step(&mut self) -> Step {
        if !self.has_keeper {
            self.shared.pool.work(&self.shared);
        }
        if self.frames.is_empty() {
            self.take_index_wishes();
            if !self.cut() {
                return self.idle();
            }
        }
        match self.write() {
            Ok(()) => Step::Committed(self.complete()),
            Err(held) => {
                self.hold(&held);
                Step::Held
            }
        }
    }

    /// Records of the newest frame: few at low load.
    pub(crate) fn last_records(&self) -> u32 {
        self.records
    }

    /// Makes a frame of what is to be moved and what the writers have; false if there is nothing.
    fn cut(&mut self) -> bool {
        let mut bytes = mem::take(&mut self.bytes);
        Frame::begin(&mut bytes);
        let relocated = self.shared.index().relocate(&mut bytes);
        let since = Instant::now();
        let cut = self.shared.buffers.cut(&mut bytes, relocated > 0, &mut self.spares);
        let Some(cut) = cut else {
            self.bytes = bytes;
            return false;
        };
        let header = Header {
            segment: SegmentId::new(0),
            number: self.next,
            synced: 0,
            // After the cut: what is in it has ids that were given out before.
            message_ids: self.shared.message_ids.load(Ordering::Relaxed),
            queue_ids: self.shared.queue_ids.load(Ordering::Relaxed),
            len: 0,
            records: relocated + cut.records,
            crc: 0,
        };
        self.next += 1;
        let mut frame = Frame::new(header, bytes);
        frame.wants_sync = cut.synced;
        frame.since = since;
        self.frames.push_back(frame);
        true
    }

    /// Brings all frames into the log, and onto the disk if one of them asks for it.
    fn write(&mut self) -> Result<(), Held> {
        for index in 0..self.frames.len() {
            // Invariant: nothing takes frames away meanwhile.
            if self.frames[index].place.is_none() {
                self.write_frame(index)?;
            }
        }
        let wanted = self.frames.iter().any(|frame| frame.wants_sync);
        if wanted || self.doubtful || !self.freed.is_empty() {
            self.sync()?;
            self.doubtful = false;
        }
        Ok(())
    }

    fn write_frame(&mut self, index: usize) -> Result<(), Held> {
        let segment_bytes = self.shared.options.segment_bytes;
        let has_room = |tail: &Tail, frame| tail.has_room(frame, segment_bytes);
        if !self.tail.as_ref().is_some_and(|tail| has_room(tail, &self.frames[index])) {
            // Who reads the log may rely on a segment being whole when there is a later one.
            self.sync()?;
            self.tail = None;
            self.open_tail()?;
        }
        let Some(tail) = &mut self.tail else { return Ok(()) };
        let frame = &mut self.frames[index];
        match tail.write(frame, self.synced) {
            Ok(()) => {
                self.shared.stats.written_bytes.add(frame.bytes.len() as u64);
                self.shared.segments.grown(tail.id, tail.offset);
                Ok(())
            }
            // What was written of it is overwritten by the next try.
            Err(error) if is_full(&error) => Err(Held::Full(error)),
            Err(error) => {
                self.shared.stats.write_errors.add(1);
                self.abandon();
                Err(Held::Fails(error))
            }
        }
    }

    /// Goes on in a new segment.
    fn open_tail(&mut self) -> Result<(), Held> {
        let ready = self.shared.pool.take(&self.shared).map_err(Held::from_error)?;
        let bytes = ready.file.size().map_err(Held::Fails)?;
        let segment = Segment { file: Arc::clone(&ready.file), bytes, suspect: false };
        self.shared.segments.insert(ready.id, segment);
        self.tail = Some(Tail::new(ready));
        Ok(())
    }

    /// Syncs what the tail has, if anything.
    fn sync(&mut self) -> Result<(), Held> {
        let Some(tail) = &mut self.tail else { return Ok(()) };
        let Some(last) = tail.unsynced.last().map(|unsynced| unsynced.number) else {
            return Ok(());
        };
        let begin = Instant::now();
        let result = tail.sync();
        self.shared.stats.sync.record(begin.elapsed());
        match result {
            Ok(()) => {
                self.synced = last;
                Ok(())
            }
            Err(error) => {
                self.shared.stats.sync_errors.add(1);
                // The system may have forgotten what it could not write: a second sync of this
                // file would say nothing about it.
                self.abandon();
                Err(Held::from_error(error))
            }
        }
    }

    /// Leaves the tail where it was last synced; what came behind is to be written again.
    fn abandon(&mut self) {
        let Some(tail) = self.tail.take() else { return };
        self.doubtful = true;
        for frame in &mut self.frames {
            if frame.place.is_some_and(|place| place.segment == tail.id) {
                frame.place = None;
            }
        }
        let first_kept = self.frames.front().map_or(u64::MAX, |frame| frame.header.number);
        let complete = tail.unsynced.iter().filter(|unsynced| unsynced.number < first_kept);
        let mut saved: Vec<Frame> = Vec::new();
        for unsynced in complete {
            saved.push(tail.read_back(unsynced).unwrap_or_else(|| {
                self.shared.stats.lost_frames.add(1);
                tracing::error!(
                    commit = unsynced.number,
                    file = file_name(tail.id),
                    "a commit at level `written` cannot be saved from a failing file"
                );
                // The numbers of the log have no gaps.
                self.lost(unsynced.number)
            }));
        }
        if tail.holds_synced || !saved.is_empty() {
            self.shared.segments.suspect(tail.id);
        } else {
            // Nothing in it counts. Left alone, a failing disk would fill up with such files.
            self.shared.segments.remove(tail.id);
            self.shared.pool.give_back(Unused { name: file_name(tail.id), sound: false });
        }
        for frame in saved.into_iter().rev() {
            self.frames.push_front(frame);
        }
    }

    fn lost(&self, number: u64) -> Frame {
        Frame::empty(Header {
            segment: SegmentId::new(0),
            number,
            synced: 0,
            message_ids: self.shared.message_ids.load(Ordering::Relaxed),
            queue_ids: self.shared.queue_ids.load(Ordering::Relaxed),
            len: 0,
            records: 0,
            crc: 0,
        })
    }

    /// Everything that was to be written is: the index learns of it, then everybody else.
    fn complete(&mut self) -> Token {
        let shared = Arc::clone(&self.shared);
        let stats = &shared.stats;
        let mut last = 0;
        let mut index = shared.index();
        for frame in self.frames.drain(..) {
            last = frame.header.number;
            // Invariant: all frames have been written.
            let place = frame.place.expect("the frame has a place");
            if let Some(from) = frame.moved_from {
                index.moved(from, place, frame.header.frame_bytes());
                continue;
            }
            let at = Place { offset: place.offset + Header::BYTES as u32, ..place };
            index.apply(at.segment, at.offset, frame.records());
            self.records = frame.header.records;
            stats.commits.add(1);
            stats.records.add(u64::from(frame.header.records));
            stats.record_bytes.add(u64::from(frame.header.len));
            stats.commit.record(frame.since.elapsed());
            self.bytes = frame.bytes;
        }
        index.take_free(&mut self.freed_now);
        let live_bytes = index.live_bytes();
        drop(index);
        self.limit(live_bytes);
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.freed.extend(self.freed_now.drain(..).map(|segment| (last, segment)));
        shared.committed.store(last, Ordering::Release);
        for trouble in [Trouble::CommitFull, Trouble::CommitFails] {
            if shared.state.end(trouble) {
                tracing::info!("the journal commits again");
            }
        }
        self.give_back_freed();
        self.count_segments();
        Token::new(last)
    }

    /// Beyond the limit new messages are refused until a little more than enough has gone.
    fn limit(&self, live_bytes: u64) {
        let Some(max) = self.shared.options.journal_bytes_max else { return };
        if live_bytes > max {
            self.shared.state.begin(Trouble::Limit);
        } else if live_bytes < max - max / 16 {
            self.shared.state.end(Trouble::Limit);
        }
    }

    /// Segments may become free without a commit: by what the garbage collection finds out.
    fn take_index_wishes(&mut self) {
        self.shared.index().take_free(&mut self.freed_now);
        let last = self.next - 1;
        self.freed.extend(self.freed_now.drain(..).map(|segment| (last, segment)));
    }

    fn idle(&mut self) -> Step {
        if !self.freed.is_empty() {
            // What made them free must be on the disk before they are gone.
            if let Err(held) = self.sync() {
                self.hold(&held);
                return Step::Held;
            }
            self.give_back_freed();
            self.count_segments();
        }
        Step::Idle
    }

    fn give_back_freed(&mut self) {
        while let Some((_, segment)) = self.freed.front().filter(|(frame, _)| *frame <= self.synced)
        {
            let segment = *segment;
            self.freed.pop_front();
            let Some(removed) = self.shared.segments.remove(segment) else { continue };
            let unused = Unused { name: file_name(segment), sound: !removed.suspect };
            self.shared.pool.give_back(unused);
        }
    }

    fn count_segments(&self) {
        let (segments, bytes) = self.shared.segments.sum();
        self.shared.stats.segments.set(segments);
        self.shared.stats.log_bytes.set(bytes);
    }

    fn hold(&self, held: &Held) {
        let (trouble, error) = match held {
            Held::Full(error) => {
                self.shared.stats.full_errors.add(1);
                (Trouble::CommitFull, error)
            }
            Held::Fails(error) => (Trouble::CommitFails, error),
        };
        if self.shared.state.begin(trouble) {
            tracing::error!(%error, "the journal cannot commit; nothing durable is acknowledged");
        }
    }
}
