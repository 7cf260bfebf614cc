//! Compaction: frees the oldest segments by moving their live records to the newest end.
//!
//! Segments without live records are freed anyway. When the log is larger than its limit, the
//! oldest segment is read in the background and its live records are offered to the committer; once
//! all of them are moved the segment is free as well. So a session that never returns costs the
//! space of its records, which are moved from time to time, and no more.
//!
//! Compaction proceeds in rounds: a round moves all records that were in the log when it began. How
//! small the log is then cannot be predicted, since records do not fill segments exactly. So the
//! next round does not begin before there is enough new garbage, and without appends compaction
//! stops even if the log is above its limit.

mod thread;

use std::sync::atomic::Ordering;

use crate::blocks::BLOCK;
use crate::frame::Header;
use crate::id::SegmentId;
use crate::index::{Batch, Index, SegmentUsage, place};
use crate::options::Condition;
use crate::record::Records;
use crate::recovery;
use crate::scan::{Block, Scan};
use crate::segment::file_name;
use crate::shared::Shared;

pub(crate) use thread::CompactThread;

/// Bytes offered to the committer at once.
const BATCH_BYTES: usize = 1 << 20;

/// Bytes read in one step.
const STEP_BYTES: u64 = 4 << 20;

/// Entries and keys of dropped queues that are reclaimed in one step.
const RECLAIMED_PER_STEP: usize = 1 << 12;

/// Records examined under one lock of the index.
const LOCKED_RECORDS: usize = 1 << 10;

/// A segment with live records in which this many passes find none is unreadable. One pass is not
/// enough: a message behind the position read may have become live again.
const EMPTY_PASSES: u32 = 2;

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There is no work.
    Nothing,
    /// The committer has to move the offered records first.
    Waiting,
    /// This many bytes were read, and perhaps offered.
    Read(u64),
}

/// The state of compaction, one for each journal.
#[derive(Default)]
pub(crate) struct Compactor {
    pass: Option<Pass>,
    /// The current or last round.
    round: Option<Round>,
}

/// Moves all records that were in the log when it began. It pauses while the log is below its
/// limit.
struct Round {
    /// The newest segment at its beginning.
    end: u32,
    /// [`Index::garbage_made`] at its beginning.
    made: i64,
}

/// A pass through the oldest segment.
struct Pass {
    segment: u32,
    scan: Scan,
    offset: u64,
    last_frame: u64,
    /// A live record was found in this pass.
    found: bool,
    /// Passes before this one that found nothing.
    empty_passes: u32,
}

impl Compactor {
    /// Does a part of the work.
    pub(crate) fn step(&mut self, shared: &Shared) -> Progress {
        let oldest = {
            let mut index = shared.index();
            if index.reclaim_dropped(RECLAIMED_PER_STEP) {
                return Progress::Read(0);
            }
            count_live(shared, &index);
            if index.is_moving() {
                return Progress::Waiting;
            }
            match self.next_segment(shared, &index) {
                Some(oldest) => oldest,
                None => {
                    self.pass = None;
                    return Progress::Nothing;
                }
            }
        };
        if oldest.live == 0 {
            // The committer frees it.
            shared.signal.force();
            return Progress::Waiting;
        }
        self.read_on(shared, &oldest)
    }

    /// The oldest segment, if the log is above its limit, has another segment, and a round is worth
    /// its cost.
    fn next_segment(&mut self, shared: &Shared, index: &Index) -> Option<SegmentUsage> {
        let (_, log_bytes) = shared.segments.sum();
        let live_bytes = index.live().bytes;
        let (oldest, newest) = (*index.oldest()?, index.newest()?.number);
        let is_small = log_bytes <= shared.log_bytes_max(live_bytes);
        if is_small || oldest.number == newest || !has_room_for(shared, &oldest) {
            return None;
        }
        let made = index.garbage_made();
        match &self.round {
            Some(round) if oldest.number <= round.end => {}
            Some(round) if made - round.made < worth(shared, live_bytes) => return None,
            Some(_) | None => self.round = Some(Round { end: newest, made }),
        }
        Some(oldest)
    }

    fn read_on(&mut self, shared: &Shared, oldest: &SegmentUsage) -> Progress {
        if self.pass.as_ref().is_none_or(|pass| pass.segment != oldest.number) {
            match Pass::new(shared, oldest, 0) {
                Some(pass) => self.pass = Some(pass),
                None => {
                    give_up(shared, oldest.number);
                    return Progress::Waiting;
                }
            }
        }
        let Some(pass) = &mut self.pass else { return Progress::Waiting };
        let begin = pass.offset;
        let batch = pass.collect(shared);
        let read = pass.offset - begin;
        if !batch.is_empty() {
            pass.found = true;
            shared.index().offer(batch);
            shared.signal.force();
        } else if pass.is_at_end() {
            self.next_pass(shared, oldest);
        }
        Progress::Read(read)
    }

    /// The segment was read to its end. If it is still not free it is read again.
    fn next_pass(&mut self, shared: &Shared, oldest: &SegmentUsage) {
        let Some(pass) = self.pass.take() else { return };
        let empty_passes = if pass.found { 0 } else { pass.empty_passes + 1 };
        if empty_passes >= EMPTY_PASSES {
            give_up(shared, oldest.number);
            return;
        }
        self.pass = Pass::new(shared, oldest, empty_passes);
    }
}

impl Pass {
    fn new(shared: &Shared, oldest: &SegmentUsage, empty_passes: u32) -> Option<Self> {
        let id = SegmentId::new(oldest.number.into());
        let scan = Scan::new(id, shared.segments.get(id)?.file, shared.salt).ok()?;
        let last_frame = oldest.last_frame;
        let segment = oldest.number;
        Some(Self { segment, scan, offset: 0, last_frame, found: false, empty_passes })
    }

    fn is_at_end(&self) -> bool {
        self.offset >= self.scan.window.size()
    }

    /// Continues reading until there is enough to offer.
    fn collect(&mut self, shared: &Shared) -> Batch {
        let mut batch = Batch::new(self.segment);
        let end = self.offset + STEP_BYTES;
        while !self.is_at_end() && self.offset < end && batch.len() < BATCH_BYTES {
            match self.scan.block(self.offset) {
                Block::Whole(header) => {
                    self.collect_frame(shared, &header, &mut batch);
                    self.offset += header.frame_bytes();
                    if header.number >= self.last_frame {
                        self.offset = self.scan.window.size();
                    }
                }
                Block::Broken(header) => self.offset += header.frame_bytes(),
                Block::Other => self.offset += BLOCK as u64,
            }
        }
        batch
    }

    fn collect_frame(&mut self, shared: &Shared, header: &Header, batch: &mut Batch) {
        let at = self.offset + Header::BYTES as u64;
        let id = self.scan.id;
        let records = self.scan.records(self.offset, header);
        let mut records = Records::new(records).map_while(Result::ok).peekable();
        while records.peek().is_some() {
            let index = shared.index();
            for located in records.by_ref().take(LOCKED_RECORDS) {
                let place = place(id, at, &located);
                if index.needs(place, &located.record) {
                    batch.push(place.offset, located.bytes);
                }
            }
        }
    }
}

/// Whether there is room for all live records of a segment.
///
/// With a full disk the remaining room is for the acknowledgements and removals that free space.
/// Moving only a part of a segment would use it up and free nothing.
fn has_room_for(shared: &Shared, segment: &SegmentUsage) -> bool {
    let size = shared.segments.get(SegmentId::new(segment.number.into())).map_or(0, |s| s.bytes);
    let ready_bytes = shared.pool.ready_bytes();
    if shared.troubles.condition() != Condition::Full || ready_bytes > 0 && ready_bytes >= size {
        return true;
    }
    // Frames are padded to whole blocks, and only the mean size of entries is known.
    let needed = segment.live_bytes + segment.live_bytes / 16 + 2 * BLOCK as u64;
    let room = shared.tail_room.load(Ordering::Relaxed).max(ready_bytes);
    segment.live == 0 || needed <= room
}

/// The new garbage in bytes that is worth another round, which writes up to all live bytes.
fn worth(shared: &Shared, live_bytes: u64) -> i64 {
    let segment = u64::from(shared.options.segment_bytes);
    let bytes = match shared.troubles.condition() {
        Condition::Full => segment,
        _ => segment.max(live_bytes / 4),
    };
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn count_live(shared: &Shared, index: &Index) {
    let live = index.live();
    shared.stats.live_bytes.set(live.bytes);
    shared.stats.live_messages.set(live.messages);
    shared.stats.live_entries.set(live.entries);
    shared.stats.live_keys.set(live.keys);
}

/// The live records of this segment cannot be read.
fn give_up(shared: &Shared, segment: u32) {
    let id = SegmentId::new(segment.into());
    let file = file_name(id);
    match recovery::keep(&*shared.storage, &file) {
        Ok(true) => shared.stats.quarantined.add(1),
        Ok(false) => {}
        Err(error) => tracing::warn!(%error, file, "a damaged segment cannot be quarantined"),
    }
    let lost = shared.index().give_up(segment);
    tracing::error!(file, records = lost, "live records of a damaged journal segment are lost");
    shared.stats.lost_records.add(lost);
    shared.segments.suspect(id);
    shared.signal.force();
}
