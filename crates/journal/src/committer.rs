//! The commit: takes the records of all writers, writes them as a frame, and publishes its number.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::blocks::Blocks;
use crate::commit_frame::Frame;
use crate::compaction::Compactor;
use crate::custody::CustodyWatch;
use crate::error::OpenError;
use crate::frame::Header;
use crate::id::{CommitSeq, SegmentId};
use crate::index::FrameAt;
use crate::pool::Unused;
use crate::segment::{Freed, Segment, file_name};
use crate::settle;
use crate::shared::Shared;
use crate::storage::is_full;
use crate::tail::Tail;
use crate::transient::TransientFilter;
use crate::troubles::Trouble;

/// Memory of a frame that is kept for the next one.
const KEPT_BYTES: usize = 4 << 20;

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// No records were waiting.
    Idle,
    /// Every commit up to this one is complete.
    Committed(CommitSeq),
    /// The disk is full or failing, or the directory is no longer the one that was locked: the
    /// records are kept for the next try.
    Held,
}

/// The writing end of the log. One thread drives it: [`Committer::spawn`], or a simulation.
pub struct Committer {
    pub(crate) shared: Arc<Shared>,
    tail: Option<Tail>,
    /// The frame that was cut and is not complete yet.
    pending: Option<Frame>,
    /// Complete frames that may not be on the disk: at the end of the log when it was opened, or in
    /// a file that has failed. They are written again before any other.
    unsettled: Vec<Frame>,
    /// The number of the next frame.
    next: u64,
    /// All frames up to this are synced.
    synced: u64,
    /// A file has failed: no commit is complete before the next sync, at any level.
    doubtful: bool,
    /// Segments without live records, and the frame that must be synced before they are recycled.
    freed: VecDeque<(u64, SegmentId)>,
    /// Memory for the next frame and the next cut.
    bytes: Blocks,
    spares: Vec<Vec<u8>>,
    transients: TransientFilter,
    /// Compacts the log unless a separate thread does.
    collector: Compactor,
    /// Whether the directory is still the one that was locked.
    custody: CustodyWatch,
    /// A separate thread prepares segments.
    pub(crate) is_threaded: bool,
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
    /// Continues at the end of the log, once all of it is on the disk.
    pub(crate) fn open(shared: Arc<Shared>) -> Result<Self, OpenError> {
        let last = shared.committed.load(Ordering::Acquire);
        let mut frames = Vec::new();
        if let Some((id, segment)) = shared.segments.last() {
            let what = || format!("cannot sync {}", file_name(id));
            // Needed only if the disk is full and the frames cannot be written again.
            segment.file.sync().map_err(OpenError::io(what()))?;
            frames = settle::unsynced(id, &segment.file, shared.salt, last)
                .map_err(OpenError::io(what()))?;
        }
        let names = "cannot sync the names in the data directory";
        shared.storage.sync_names().map_err(OpenError::io(names))?;
        let mut committer = Self::new(shared, last, frames);
        match committer.settle() {
            Ok(()) => Ok(committer),
            Err(held @ Held::Full(_)) => {
                committer.hold(&held);
                Ok(committer)
            }
            Err(Held::Fails(source)) => {
                let what = "cannot write the unsynced end of the log again".to_owned();
                Err(OpenError::Io { what, source })
            }
        }
    }

    fn new(shared: Arc<Shared>, last: u64, unsettled: Vec<Frame>) -> Self {
        Self {
            shared,
            tail: None,
            pending: None,
            next: last + 1,
            synced: last - unsettled.len() as u64,
            unsettled,
            doubtful: false,
            freed: VecDeque::new(),
            bytes: Blocks::default(),
            spares: Vec::new(),
            transients: TransientFilter::default(),
            collector: Compactor::default(),
            custody: CustodyWatch::default(),
            is_threaded: false,
        }
    }

    /// Takes one commit. Reads a clock only to measure durations.
    ///
    /// Without [`Committer::spawn`] each step also does a part of the preparation of segments and
    /// of compaction.
    pub fn step(&mut self) -> Step {
        if self.is_displaced() {
            return Step::Held;
        }
        if !self.is_threaded {
            self.shared.pool.work(&self.shared);
            self.collector.step(&self.shared);
        }
        if self.pending.is_none() && self.unsettled.is_empty() {
            self.take_free_segments();
            if !self.cut() {
                return self.idle();
            }
        }
        let written = self.settle().and_then(|()| self.write());
        self.publish_tail_room();
        match written {
            Ok(()) => Step::Committed(self.complete()),
            Err(held) => {
                self.hold(&held);
                Step::Held
            }
        }
    }

    /// Whether nothing may be promised because the directory is no longer the one that was locked.
    pub(crate) fn is_displaced(&mut self) -> bool {
        self.custody.is_displaced(&self.shared)
    }

    /// Compaction reads this: with a full disk it moves only segments that fit.
    fn publish_tail_room(&self) {
        let room = self.tail.as_ref().map_or(0, Tail::room);
        self.shared.tail_room.store(room, Ordering::Relaxed);
    }

    /// Writes frames again that may not be on the disk, to a new segment that is valid only once it
    /// holds all of them.
    fn settle(&mut self) -> Result<(), Held> {
        let Some(last) = self.unsettled.last().map(|frame| frame.header.number) else {
            return Ok(());
        };
        self.open_tail()?;
        let Some(tail) = &mut self.tail else { return Ok(()) };
        if let Err(error) = tail.write_at_once(&mut self.unsettled, self.synced) {
            self.shared.stats.write_errors.add(1);
            self.abandon();
            return Err(Held::from_error(error));
        }
        self.synced = last;
        self.shared.segments.grown(tail.id, tail.offset);
        let mut index = self.shared.index();
        for frame in self.unsettled.drain(..) {
            self.shared.stats.written_bytes.add(frame.bytes.len() as u64);
            if let (Some(from), Some(to)) = (frame.moved_from, frame.place) {
                let number = frame.header.number;
                let (from, to) = (FrameAt::new(from, number), FrameAt::new(to, number));
                index.moved(from, to, frame.records());
            }
        }
        Ok(())
    }

    /// Builds a frame from the records to be moved and those of the writers; false without records.
    fn cut(&mut self) -> bool {
        let mut bytes = mem::take(&mut self.bytes);
        Frame::begin(&mut bytes);
        let relocated = self.shared.index().relocate(bytes.tail());
        self.shared.stats.relocated_records.add(relocated.records.into());
        self.shared.stats.relocated_bytes.add(relocated.bytes);
        let since = Instant::now();
        let cut = self.shared.buffers.cut(relocated.records > 0, &mut self.spares);
        let Some(cut) = cut else {
            self.bytes = bytes;
            return false;
        };
        let left_out = self.transients.append(self.shared.index(), &cut.taken, bytes.tail());
        self.shared.stats.left_out_records.add(left_out.records.into());
        self.shared.stats.left_out_bytes.add(left_out.bytes);
        // After the cut, so that the header covers all ids in the frame.
        let records = cut.records - left_out.records;
        let header = self.header(self.next, relocated.records + records);
        self.next += 1;
        let mut frame = Frame::new(header, bytes);
        frame.wants_sync = cut.synced && records > 0;
        if cut.records > 0 {
            frame.appended_bytes = frame.bytes.len() as u64 - relocated.bytes;
        }
        cut.end(&mut self.spares);
        frame.since = since;
        self.pending = Some(frame);
        true
    }

    /// Writes the frame, and syncs it if a record in it requires that.
    fn write(&mut self) -> Result<(), Held> {
        let Some(mut frame) = self.pending.take() else { return Ok(()) };
        let result = self.write_frame(&mut frame);
        let wants_sync = frame.wants_sync;
        self.pending = Some(frame);
        result?;
        if wants_sync || self.doubtful || !self.freed.is_empty() {
            self.sync()?;
            self.doubtful = false;
        }
        Ok(())
    }

    fn write_frame(&mut self, frame: &mut Frame) -> Result<(), Held> {
        if !self.tail.as_ref().is_some_and(|tail| self.suits(tail, frame)) {
            // Recovery relies on a segment being complete when a later one exists.
            self.sync()?;
            self.tail = None;
            self.open_tail()?;
        }
        let Some(tail) = &mut self.tail else { return Ok(()) };
        match tail.write(frame, self.synced) {
            Ok(()) => {
                self.shared.stats.written_bytes.add(frame.bytes.len() as u64);
                self.shared.segments.grown(tail.id, tail.offset);
                Ok(())
            }
            // The next try overwrites the part that was written.
            Err(error) if is_full(&error) => Err(Held::Full(error)),
            Err(error) => {
                self.shared.stats.write_errors.add(1);
                self.abandon();
                Err(Held::Fails(error))
            }
        }
    }

    /// Whether the log continues in this segment. One that was used before it was zeroed is left
    /// for the first prepared one, where a sync has only data to write.
    fn suits(&self, tail: &Tail, frame: &Frame) -> bool {
        let leaves = tail.is_raw && tail.offset > 0 && self.shared.pool.has_prepared();
        tail.has_room(frame) && !leaves
    }

    /// Begins a new segment.
    fn open_tail(&mut self) -> Result<(), Held> {
        let ready = self.shared.pool.take(&self.shared).map_err(Held::from_error)?;
        let (file, bytes) = (Arc::clone(&ready.file), ready.bytes.into());
        let segment = Segment::new(file, bytes);
        self.shared.segments.insert(ready.id, segment);
        self.tail = Some(Tail::new(ready, self.shared.salt, self.shared.owner));
        Ok(())
    }

    /// Syncs the unsynced frames of the tail, if there are any.
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
                // The system may have dropped the data that it could not write: a second sync of
                // this file could succeed without it.
                self.abandon();
                Err(Held::from_error(error))
            }
        }
    }

    /// Abandons the tail at its last synced position; the frames behind it are written again.
    fn abandon(&mut self) {
        let Some(tail) = self.tail.take() else { return };
        self.doubtful = true;
        let settles = !self.unsettled.is_empty();
        let in_memory = self.pending.as_ref().map_or(u64::MAX, |frame| frame.header.number);
        for unsynced in &tail.unsynced {
            // All others are in memory.
            if !settles && unsynced.number < in_memory {
                let saved = tail.read_back(unsynced);
                let saved = saved.unwrap_or_else(|| self.lost(&tail, unsynced.number));
                self.unsettled.push(saved);
            }
        }
        let holds_complete = tail.holds_synced || !self.unsettled.is_empty();
        if holds_complete && !settles {
            self.shared.segments.suspect(tail.id);
        } else {
            // Its frames are void and must not survive: once the segment that replaces it is
            // freed, they would be read as valid.
            self.shared.segments.remove(tail.id);
            self.shared.pool.give_back(Unused { name: file_name(tail.id), sound: false });
        }
    }

    /// An empty frame in place of an unreadable one, since numbers have no gaps.
    fn lost(&self, tail: &Tail, number: u64) -> Frame {
        self.shared.stats.lost_frames.add(1);
        tracing::error!(
            commit = number,
            file = file_name(tail.id),
            "a commit at level `written` cannot be saved from a failing file"
        );
        Frame::empty(self.header(number, 0))
    }

    /// The header of a frame that is about to be built.
    fn header(&self, number: u64, records: u32) -> Header {
        Header {
            segment: SegmentId::new(0),
            number,
            synced: 0,
            owner: 0,
            message_ids: self.shared.message_ids.load(Ordering::Relaxed),
            queue_ids: self.shared.queue_ids.load(Ordering::Relaxed),
            salt: 0,
            len: 0,
            records,
            crc: 0,
        }
    }

    /// The frame is written: applies it to the index, then publishes its number.
    fn complete(&mut self) -> CommitSeq {
        let Some(frame) = self.pending.take() else {
            self.end_trouble();
            return CommitSeq::new(self.next - 1);
        };
        let shared = Arc::clone(&self.shared);
        let number = frame.header.number;
        // Invariant: a frame that was written has a place.
        let place = frame.place.expect("the frame has a place");
        let mut index = shared.index();
        // Writers encoded the records, so they can be decoded.
        if let Err(error) = index.apply(FrameAt::new(place, number), frame.records()) {
            tracing::error!(%error, commit = number, "a commit contains a malformed record");
        }
        index.count_appended(frame.appended_bytes);
        index.take_free(number, &mut self.freed);
        let live_bytes = index.live().bytes;
        drop(index);
        self.limit(live_bytes);
        shared.committed.store(number, Ordering::Release);
        self.end_trouble();
        let stats = &shared.stats;
        stats.commits.add(1);
        stats.records.add(u64::from(frame.header.records));
        stats.record_bytes.add(u64::from(frame.header.len));
        stats.commit.record(frame.since.elapsed());
        self.bytes = frame.bytes;
        self.bytes.end(KEPT_BYTES);
        self.recycle_freed();
        self.count_segments();
        CommitSeq::new(number)
    }

    fn end_trouble(&self) {
        for trouble in [Trouble::CommitFull, Trouble::CommitFails] {
            if self.shared.troubles.end(trouble) {
                tracing::info!("the journal commits again");
            }
        }
    }

    /// Above the limit new messages are refused, until the live bytes are a sixteenth below it.
    fn limit(&self, live_bytes: u64) {
        let Some(max) = self.shared.options.journal_bytes_max else { return };
        if live_bytes > max {
            self.shared.troubles.begin(Trouble::Limit);
        } else if live_bytes < max - max / 16 {
            self.shared.troubles.end(Trouble::Limit);
        }
    }

    /// Segments may become free without a commit, when compaction drops records.
    fn take_free_segments(&mut self) {
        self.shared.index().take_free(self.next - 1, &mut self.freed);
    }

    fn idle(&mut self) -> Step {
        if !self.freed.is_empty() {
            // The removals that made them free must be on the disk before the segments go.
            if let Err(held) = self.sync() {
                self.hold(&held);
                return Step::Held;
            }
            self.recycle_freed();
            self.count_segments();
        }
        Step::Idle
    }

    fn recycle_freed(&mut self) {
        while let Some((_, segment)) = self.freed.front().filter(|(frame, _)| *frame <= self.synced)
        {
            let segment = *segment;
            let freed = self.shared.segments.free(segment);
            if matches!(freed, Freed::Pinned) {
                return;
            }
            self.freed.pop_front();
            let Freed::Removed(removed) = freed else { continue };
            let sound = !removed.suspect && !removed.lent;
            self.shared.pool.give_back(Unused { name: file_name(segment), sound });
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
        if self.shared.troubles.begin(trouble) {
            tracing::error!(%error, "the journal cannot commit; nothing durable is acknowledged");
        }
    }
}

#[cfg(test)]
mod tests;
