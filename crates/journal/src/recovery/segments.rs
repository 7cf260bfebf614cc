//! Reading all segments, in order, into the index.

use std::io;
use std::sync::Arc;

use super::superseded::SupersededFrames;
use super::{Damage, Recovery, Report, Torn};
use crate::blocks::BLOCK;
use crate::error::OpenError;
use crate::frame::{FORMAT, FramePlace, Header};
use crate::id::SegmentId;
use crate::index::{FrameAt, Index};
use crate::salt::Salt;
use crate::scan::{Block, Scan};
use crate::segment::{Segment, file_name, parse_name};
use crate::storage::Storage;

/// A segment that has frames.
struct Begun {
    id: SegmentId,
    /// The number of its first frame. `None` if that cannot be read: it is damaged, or was never
    /// written.
    first: Option<u64>,
    /// The process that wrote that frame; 0: unknown.
    owner: u16,
    /// The next segment whose first frame can be read, if there is one.
    follower: Option<Follower>,
    /// A segment between this one and the follower may hold the frames that are missing here.
    defers: bool,
}

/// The segments behind a segment.
#[derive(Clone, Copy)]
struct Follower {
    /// Frames with this number or above were written again there.
    limit: u64,
    id: SegmentId,
    owner: u16,
}

impl Begun {
    /// True if a frame of this number was not written again later.
    fn counts(&self, number: u64) -> bool {
        self.follower.is_none_or(|follower| number < follower.limit)
    }
}

/// A log that is being read.
pub(super) struct LogReader<'a> {
    storage: &'a dyn Storage,
    begun: Vec<Begun>,
    /// Segments without a frame.
    empty: Vec<SegmentId>,
    superseded: SupersededFrames,
    /// The first segment of which nothing can be read, and why.
    unreadable: Option<(SegmentId, io::Error)>,
    recovery: Recovery,
}

impl<'a> LogReader<'a> {
    /// Looks at the beginning of all segments.
    pub(super) fn begin(storage: &'a dyn Storage) -> Result<Self, OpenError> {
        let names = storage.list().map_err(OpenError::io("cannot list the data directory"))?;
        let mut ids: Vec<_> = names.iter().filter_map(|name| parse_name(name)).collect();
        ids.sort_unstable();
        let next_segment = ids.last().map_or(1, |last| last.get() + 1);
        let recovery = Recovery {
            index: Index::default(),
            segments: Vec::new(),
            unused: Vec::new(),
            last_frame: 0,
            next_segment,
            salt: Salt::read(storage),
            message_ids: 0,
            queue_ids: 0,
            report: Report::default(),
        };
        let (begun, empty) = (Vec::new(), Vec::new());
        let superseded = SupersededFrames::default();
        let unreadable = None;
        let mut reading = Self { storage, begun, empty, superseded, unreadable, recovery };
        for id in ids {
            reading.look_at(id)?;
        }
        reading.refuse_unreadable()?;
        let mut follower: Option<Follower> = None;
        let mut defers = false;
        for begun in reading.begun.iter_mut().rev() {
            (begun.follower, begun.defers) = (follower, defers);
            if let Some(first) = begun.first {
                let limit = follower.map_or(first, |follower| follower.limit.min(first));
                follower = Some(Follower { limit, id: begun.id, owner: begun.owner });
            }
            defers = begun.first.is_none();
        }
        Ok(reading)
    }

    /// Reads everything.
    pub(super) fn finish(mut self) -> Result<Recovery, OpenError> {
        let begun = std::mem::take(&mut self.begun);
        for segment in &begun {
            self.read_segment(segment)?;
        }
        let Self { empty, mut recovery, superseded, .. } = self;
        recovery.report.foreign = superseded.foreign();
        recovery.unused.extend(empty.into_iter().map(file_name));
        recovery.index.settle();
        recovery.report.unresolved = recovery.index.unresolved();
        recovery.report.segments = recovery.segments.len() as u64;
        Ok(recovery)
    }

    /// A disk that fails altogether is not taken for one that is empty, or has lost everything.
    fn refuse_unreadable(&mut self) -> Result<(), OpenError> {
        if self.begun.iter().any(|begun| begun.first.is_some()) {
            return Ok(());
        }
        let Some((id, error)) = self.unreadable.take() else { return Ok(()) };
        Err(OpenError::io(format!("cannot read {}", file_name(id)))(error))
    }

    fn look_at(&mut self, id: SegmentId) -> Result<(), OpenError> {
        let mut scan = self.scan(id)?;
        if let Some(found) = scan.other_format() {
            return Err(OpenError::Format { file: file_name(id), found, known: FORMAT });
        }
        let (first, owner) = match scan.block(0) {
            Block::Whole(header) => (Some(header.number), header.owner),
            Block::Broken(_) => (None, 0),
            Block::Other if scan.next_whole(0).is_some() => (None, 0),
            // It may have been a part of the log: it is not used again.
            Block::Other if scan.window.is_unreadable(0, BLOCK as u64) => {
                let error = scan.window.take_error();
                let error = error.unwrap_or_else(|| io::ErrorKind::Other.into());
                self.unreadable.get_or_insert((id, error));
                (None, 0)
            }
            Block::Other => {
                self.empty.push(id);
                return Ok(());
            }
        };
        self.begun.push(Begun { id, first, owner, follower: None, defers: false });
        Ok(())
    }

    fn scan(&self, id: SegmentId) -> Result<Scan, OpenError> {
        let name = file_name(id);
        let file = self.storage.open(&name);
        let file = file.map_err(OpenError::io(format!("cannot open {name}")))?;
        Scan::new(id, file, self.recovery.salt)
            .map_err(OpenError::io(format!("cannot read {name}")))
    }

    fn read_segment(&mut self, segment: &Begun) -> Result<(), OpenError> {
        let mut scan = self.scan(segment.id)?;
        let frames_before = self.recovery.report.frames;
        let damage_before = self.recovery.report.damage.len();
        let mut offset = 0;
        let mut next = segment.first.unwrap_or(self.recovery.last_frame + 1);
        if segment.first.is_none() && self.recovery.last_frame == 0 {
            // The number of frames before the first readable one is unknown: at least one.
            next = match (scan.block(0), scan.next_whole(0)) {
                (Block::Broken(header), _) => header.number,
                (_, Some((_, header))) => header.number.saturating_sub(1),
                (_, None) => 1,
            };
        }
        loop {
            match scan.block(offset) {
                Block::Whole(header) if header.number == next && segment.counts(next) => {
                    self.apply(&mut scan, offset, &header);
                    next += 1;
                    offset += header.frame_bytes();
                    continue;
                }
                block => match self.behind(segment, &mut scan, offset, next, block) {
                    Some((at, number)) => (offset, next) = (at, number),
                    None => break,
                },
            }
        }
        self.note_superseded(segment, &mut scan, offset, next);
        let damaged = self.recovery.report.damage.len() > damage_before;
        if self.recovery.report.frames > frames_before {
            let file = Arc::clone(scan.window.file());
            let bytes = scan.window.size();
            let entry = Segment { suspect: damaged, ..Segment::new(file, bytes) };
            self.recovery.segments.push((segment.id, entry));
        } else {
            self.recovery.unused.push(file_name(segment.id));
        }
        Ok(())
    }

    /// Notes the frames from `next` on that follow at `offset` and do not count.
    fn note_superseded(
        &mut self,
        segment: &Begun,
        scan: &mut Scan,
        mut offset: u64,
        mut next: u64,
    ) {
        let Some(follower) = segment.follower.filter(|_| !segment.counts(next)) else { return };
        while let Block::Whole(header) = scan.block(offset)
            && header.number == next
        {
            self.superseded.note(segment.id, offset, &header, follower.owner);
            offset += header.frame_bytes();
            next += 1;
        }
    }

    /// Frame `next` is not at `offset`. Returns where valid frames continue behind the lost ones,
    /// if there are any.
    fn behind(
        &mut self,
        segment: &Begun,
        scan: &mut Scan,
        offset: u64,
        next: u64,
        block: Block,
    ) -> Option<(u64, u64)> {
        if !segment.counts(next) {
            return None;
        }
        let from = match block {
            Block::Broken(header) if header.number == next => offset + header.frame_bytes(),
            _ => offset + BLOCK as u64,
        };
        let later = Self::later(segment, scan, from, next);
        let unreadable = scan.window.is_unreadable(offset, BLOCK as u64);
        match (later, segment.follower) {
            // The frames before it are in the previous segment. At the end of the log they may
            // belong to frames that were being written again, which count all or not at all.
            (Some((at, number, true)), _) if number == next => Some((at, number)),
            (Some((at, number, _)), Some(_)) | (Some((at, number, true)), None) => {
                self.damage(segment.id, offset, next, number - 1, unreadable);
                Some((at, number))
            }
            (None, Some(follower)) => {
                if !segment.defers {
                    self.lost_before(segment, follower, offset, next, unreadable);
                }
                None
            }
            (None, None) if unreadable => {
                self.damage(segment.id, offset, next, next, true);
                None
            }
            (later, None) => {
                // Only the end of the last segment: a power cut may have come before its sync.
                if later.is_some() || from > offset + BLOCK as u64 || is_broken(block, next) {
                    let file = file_name(segment.id);
                    self.recovery.report.torn = Some(Torn { file, offset, frame: next });
                }
                None
            }
        }
    }

    /// Records frames that are neither here nor in the next segment as damage.
    fn lost_before(
        &mut self,
        segment: &Begun,
        follower: Follower,
        offset: u64,
        next: u64,
        unreadable: bool,
    ) {
        // They were in an unreadable file between the two.
        let between = |id: &&SegmentId| **id > segment.id && **id < follower.id;
        let (file, offset) = match self.empty.iter().find(between) {
            Some(empty) => (*empty, 0),
            None => (segment.id, offset),
        };
        self.damage(file, offset, next, follower.limit - 1, unreadable);
    }

    /// The next readable frame, its number, and whether frame `missing` before it was synced.
    fn later(
        segment: &Begun,
        scan: &mut Scan,
        from: u64,
        missing: u64,
    ) -> Option<(u64, u64, bool)> {
        let mut first = None;
        let mut offset = from;
        while let Some((at, header)) = scan.next_whole(offset) {
            offset = at + header.frame_bytes();
            if header.number < missing || !segment.counts(header.number) {
                continue;
            }
            let (at, number) = *first.get_or_insert((at, header.number));
            if header.synced >= missing || segment.follower.is_some() {
                return Some((at, number, true));
            }
        }
        first.map(|(at, number)| (at, number, false))
    }

    fn apply(&mut self, scan: &mut Scan, offset: u64, header: &Header) {
        let Recovery { index, report, .. } = &mut self.recovery;
        let Ok(small) = u32::try_from(offset) else { return };
        let at = FrameAt::new(FramePlace { segment: scan.id, offset: small }, header.number);
        let result = index.apply(at, scan.records(offset, header));
        self.superseded.counted(header);
        report.frames += 1;
        report.records += u64::from(header.records);
        report.record_bytes += u64::from(header.len);
        self.recovery.last_frame = header.number;
        self.recovery.message_ids = self.recovery.message_ids.max(header.message_ids);
        self.recovery.queue_ids = self.recovery.queue_ids.max(header.queue_ids);
        if result.is_err() {
            self.damage(scan.id, offset, header.number, header.number, false);
        }
    }

    fn damage(
        &mut self,
        segment: SegmentId,
        offset: u64,
        first_frame: u64,
        last_frame: u64,
        unreadable: bool,
    ) {
        let file = file_name(segment);
        let damage = Damage { file, offset, first_frame, last_frame, unreadable };
        self.recovery.report.damage.push(damage);
    }
}

fn is_broken(block: Block, number: u64) -> bool {
    matches!(block, Block::Broken(header) if header.number == number)
}
