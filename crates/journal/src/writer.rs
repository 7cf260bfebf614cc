//! Buffers of the writers, and the cut that takes them all at one instant.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::id::CommitSeq;
use crate::journal::Shared;
use crate::options::{Level, Urgency};
use crate::record::Record;

/// What is gathered in a group of this size is handed over as it is; less is copied behind what is
/// there already.
const PIECE_BYTES_MIN: usize = 4 << 10;

/// Room for what is copied.
const PIECE_BYTES: usize = 32 << 10;

/// An empty piece keeps up to so much memory.
const KEPT_BYTES: usize = 64 << 10;

/// So many empty pieces are kept by each writer, and by the committer.
const SPARES_MAX: usize = 128;

/// So much does not wait until somebody asks for its commit.
const WAITS_BYTES: usize = 4 << 20;

/// What one shard tells the journal. Made by [`Journal::writer`](crate::Journal::writer).
pub struct Writer {
    shared: Arc<Shared>,
    buffer: Arc<Mutex<Buffer>>,
    group: Group,
}

/// Records that are appended together. No commit sees a part of them.
#[derive(Default)]
struct Group {
    bytes: Vec<u8>,
    records: u32,
    synced: bool,
    body_bytes: u64,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let buffer = shared.buffers.add();
        Self { shared, buffer, group: Group::default() }
    }

    /// Appends a record and returns the commit that will take it.
    ///
    /// Of two records the one that was appended first is in the same commit or in an earlier one,
    /// whichever writers they went to. Never blocks for longer than it takes to exchange buffers.
    pub fn append(&mut self, record: Record<'_>, level: Level, urgency: Urgency) -> CommitSeq {
        let mut buffer = lock(&self.buffer);
        let piece = buffer.piece(0);
        let before = piece.len();
        record.encode_unsummed(piece);
        let more = piece.len() - before;
        buffer.bytes += more;
        buffer.records += 1;
        buffer.synced |= level == Level::Fsynced;
        let commit = buffer.commit;
        let bytes = buffer.bytes;
        drop(buffer);
        self.tell(record.body_bytes(), bytes, urgency);
        commit
    }

    /// Adds a record to the present group. Nobody else knows of it until [`Writer::close`].
    #[inline]
    pub fn gather(&mut self, record: Record<'_>, level: Level) {
        let group = &mut self.group;
        record.encode_unsummed(&mut group.bytes);
        group.records += 1;
        group.synced |= level == Level::Fsynced;
        group.body_bytes += record.body_bytes();
    }

    /// Appends the group that was gathered: one commit takes all of it, so that all of it survives
    /// or nothing. The order among what all writers append is that of this call.
    pub fn close(&mut self, urgency: Urgency) -> CommitSeq {
        let Group { records, synced, body_bytes, .. } = self.group;
        let mut gathered = mem::take(&mut self.group.bytes);
        let mut buffer = lock(&self.buffer);
        buffer.bytes += gathered.len();
        if gathered.len() < PIECE_BYTES_MIN {
            buffer.piece(gathered.len()).extend_from_slice(&gathered);
            gathered.clear();
        } else {
            let spare = buffer.spares.pop().unwrap_or_default();
            buffer.pieces.push(mem::replace(&mut gathered, spare));
        }
        buffer.records += records;
        buffer.synced |= synced;
        let commit = buffer.commit;
        let bytes = buffer.bytes;
        drop(buffer);
        self.group = Group { bytes: gathered, ..Group::default() };
        self.tell(body_bytes, bytes, urgency);
        commit
    }

    /// Something was appended, with so many bytes of bodies; `waiting` bytes are in the buffer.
    #[inline]
    fn tell(&self, body_bytes: u64, waiting: usize, urgency: Urgency) {
        if body_bytes > 0 {
            self.shared.stats.body_bytes.add(body_bytes);
        }
        if waiting > self.shared.options.buffer_bytes_max {
            self.shared.buffers.press(&self.shared);
        }
        let is_much = urgency == Urgency::Waits && waiting > WAITS_BYTES;
        self.shared.signal.appended(if is_much { Urgency::Forces } else { urgency });
    }
}

/// Encoded records of one writer that no commit has taken yet.
struct Buffer {
    /// One behind the other, none in the middle of a record.
    pieces: Vec<Vec<u8>>,
    /// What they have together.
    bytes: usize,
    /// Empty ones, to be used again.
    spares: Vec<Vec<u8>>,
    records: u32,
    /// Something in it asks for [`Level::Fsynced`].
    synced: bool,
    /// The commit that will take it.
    commit: CommitSeq,
}

impl Buffer {
    fn new(commit: CommitSeq) -> Self {
        let (pieces, spares) = (Vec::new(), Vec::new());
        Self { pieces, bytes: 0, spares, records: 0, synced: false, commit }
    }

    /// Where to append so many bytes.
    fn piece(&mut self, bytes: usize) -> &mut Vec<u8> {
        if self.pieces.last().is_none_or(|last| last.capacity() - last.len() <= bytes) {
            let mut piece = self.spares.pop().unwrap_or_default();
            piece.reserve(PIECE_BYTES);
            self.pieces.push(piece);
        }
        let last = self.pieces.len() - 1;
        &mut self.pieces[last]
    }

    /// Takes everything, for as many of `spares`.
    fn take(&mut self, taken: &mut Vec<Vec<u8>>, spares: &mut Vec<Vec<u8>>) {
        let count = self.pieces.len();
        self.spares.extend(spares.drain(spares.len().saturating_sub(count)..));
        self.spares.truncate(SPARES_MAX);
        taken.append(&mut self.pieces);
        self.bytes = 0;
    }
}

/// The buffers of all writers.
pub(crate) struct Buffers {
    all: Mutex<All>,
    /// A writer has more than it should.
    pressed: AtomicBool,
}

struct All {
    buffers: Vec<Arc<Mutex<Buffer>>>,
    /// The commit that will take what is appended now.
    commit: CommitSeq,
}

/// What a cut took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The records, those of one writer one behind the other.
    pub(crate) taken: Vec<Vec<u8>>,
    pub(crate) records: u32,
    /// Something in it asks for [`Level::Fsynced`].
    pub(crate) synced: bool,
}

impl Buffers {
    /// The first cut will be this one.
    pub(crate) fn new(first: CommitSeq) -> Self {
        let all = All { buffers: Vec::new(), commit: first };
        Self { all: Mutex::new(all), pressed: AtomicBool::new(false) }
    }

    fn add(&self) -> Arc<Mutex<Buffer>> {
        let mut all = lock(&self.all);
        let buffer = Arc::new(Mutex::new(Buffer::new(all.commit)));
        all.buffers.push(Arc::clone(&buffer));
        buffer
    }

    fn press(&self, shared: &Shared) {
        if !self.pressed.swap(true, Ordering::Relaxed) {
            shared.stats.pressed.add(1);
        }
    }

    pub(crate) fn is_pressed(&self) -> bool {
        self.pressed.load(Ordering::Relaxed)
    }

    /// How many records wait for the next cut.
    pub(crate) fn records(&self) -> u32 {
        lock(&self.all).buffers.iter().map(|buffer| lock(buffer).records).sum()
    }

    /// The commit that has, or will have, all that was appended so far.
    pub(crate) fn appended(&self) -> CommitSeq {
        let all = lock(&self.all);
        let waiting = all.buffers.iter().any(|buffer| lock(buffer).records > 0);
        if waiting { all.commit } else { CommitSeq::new(all.commit.get() - 1) }
    }

    /// Takes what all writers have; what is appended from now on is in the next cut.
    ///
    /// With `anyway` there is a cut even when they have nothing. `spares` are empty pieces, given
    /// to writers for those that they had something in.
    pub(crate) fn cut(&self, anyway: bool, spares: &mut Vec<Vec<u8>>) -> Option<Cut> {
        let mut all = lock(&self.all);
        let All { buffers, commit } = &mut *all;
        // While all are locked nobody can append after what is in the cut and be in an earlier one.
        let mut locked: Vec<_> = buffers.iter().map(|buffer| lock(buffer)).collect();
        if !anyway && locked.iter().all(|buffer| buffer.records == 0) {
            drop(locked);
            // Writers that are gone and have nothing left.
            buffers.retain(|buffer| Arc::strong_count(buffer) > 1);
            return None;
        }
        let mut cut = Cut { taken: Vec::new(), records: 0, synced: false };
        *commit = CommitSeq::new(commit.get() + 1);
        for buffer in &mut locked {
            buffer.commit = *commit;
            if buffer.records > 0 {
                cut.records += mem::take(&mut buffer.records);
                cut.synced |= mem::take(&mut buffer.synced);
                buffer.take(&mut cut.taken, spares);
            }
        }
        self.pressed.store(false, Ordering::Relaxed);
        Some(cut)
    }
}

impl Cut {
    /// Gives the memory back for the next cut.
    pub(crate) fn end(self, spares: &mut Vec<Vec<u8>>) {
        let room = SPARES_MAX.saturating_sub(spares.len());
        for mut bytes in self.taken.into_iter().take(room) {
            bytes.clear();
            bytes.shrink_to(KEPT_BYTES);
            spares.push(bytes);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic under these locks can only be one of memory that is missing; then the process ends.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use super::*;
    use crate::committer::Step;
    use crate::id::MessageId;
    use crate::journal::Journal;
    use crate::options::Options;
    use crate::sim::Disk;

    #[test]
    fn a_group_is_in_one_commit_as_a_whole() {
        let opened = Journal::open_on(Disk::new(1), Options::default()).expect("opens");
        let (journal, mut committer) = (opened.journal, opened.committer);
        let (mut writer, mut other) = (journal.writer(), journal.writer());
        let done = |id| Record::Done { message: MessageId::new(id).expect("not zero") };
        writer.gather(done(1), Level::Written);
        assert_eq!(committer.step(), Step::Idle, "nothing of a group is seen before its end");
        let before = other.append(done(2), Level::Fsynced, Urgency::Forces);
        assert_eq!(committer.step(), Step::Committed(before));
        writer.gather(done(3), Level::Fsynced);
        let group = writer.close(Urgency::Forces);
        assert!(group > before);
        // Behind what is there already.
        let single = writer.append(done(4), Level::Written, Urgency::Rides);
        writer.gather(done(5), Level::Written);
        assert_eq!((single, writer.close(Urgency::Rides)), (group, group));
        let cut = writer.shared.buffers.cut(false, &mut Vec::new());
        let mut expected = Vec::new();
        [1, 3, 4, 5].into_iter().for_each(|id| done(id).encode(&mut expected));
        assert_eq!(cut, Some(Cut { taken: vec![expected], records: 4, synced: true }));
    }
}
