//! The buffers of all writers, and the cut that takes them at one instant.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::id::CommitSeq;
use crate::stats::Stats;

/// Minimum capacity of a piece that records are copied to.
const PIECE_BYTES: usize = 32 << 10;

/// Memory that an empty piece keeps.
const KEPT_BYTES: usize = 64 << 10;

/// Empty pieces kept by each writer, and by the committer.
const SPARES_MAX: usize = 128;

/// Encoded records of one writer that no commit has taken yet.
pub(crate) struct Buffer {
    /// In order; each begins with a whole record.
    pub(crate) pieces: Vec<Vec<u8>>,
    /// Total bytes of the pieces.
    pub(crate) bytes: usize,
    /// Empty pieces for reuse.
    pub(crate) spares: Vec<Vec<u8>>,
    pub(crate) records: u32,
    /// Something in it asks for [`Level::Fsynced`].
    pub(crate) synced: bool,
    /// The commit that will take it.
    pub(crate) commit: CommitSeq,
}

impl Buffer {
    fn new(commit: CommitSeq) -> Self {
        let (pieces, spares) = (Vec::new(), Vec::new());
        Self { pieces, bytes: 0, spares, records: 0, synced: false, commit }
    }

    /// The piece to append this many bytes to.
    pub(crate) fn piece(&mut self, bytes: usize) -> &mut Vec<u8> {
        if self.pieces.last().is_none_or(|last| last.capacity() - last.len() <= bytes) {
            let mut piece = self.spares.pop().unwrap_or_default();
            piece.reserve(PIECE_BYTES);
            self.pieces.push(piece);
        }
        let last = self.pieces.len() - 1;
        &mut self.pieces[last]
    }

    /// Takes all pieces and keeps as many of `spares` instead.
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
    all: Mutex<BufferSet>,
    /// The backlog of a writer exceeds its limit.
    pressed: AtomicBool,
}

struct BufferSet {
    buffers: Vec<Arc<Mutex<Buffer>>>,
    /// The commit that will include the records appended now.
    commit: CommitSeq,
}

/// The content of a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The records, grouped by writer.
    pub(crate) taken: Vec<Vec<u8>>,
    pub(crate) records: u32,
    /// Something in it asks for [`Level::Fsynced`].
    pub(crate) synced: bool,
}

impl Buffers {
    /// Buffers whose first cut has this number.
    pub(crate) fn new(first: CommitSeq) -> Self {
        let all = BufferSet { buffers: Vec::new(), commit: first };
        Self { all: Mutex::new(all), pressed: AtomicBool::new(false) }
    }

    pub(crate) fn add(&self) -> Arc<Mutex<Buffer>> {
        let mut all = lock(&self.all);
        let buffer = Arc::new(Mutex::new(Buffer::new(all.commit)));
        all.buffers.push(Arc::clone(&buffer));
        buffer
    }

    pub(crate) fn press(&self, stats: &Stats) {
        if !self.pressed.swap(true, Ordering::Relaxed) {
            stats.pressed.add(1);
        }
    }

    pub(crate) fn is_pressed(&self) -> bool {
        self.pressed.load(Ordering::Relaxed)
    }

    /// Number of records that wait for the next cut.
    pub(crate) fn records(&self) -> u32 {
        lock(&self.all).buffers.iter().map(|buffer| lock(buffer).records).sum()
    }

    /// The commit that includes, or will include, the last record appended so far.
    pub(crate) fn appended(&self) -> CommitSeq {
        let all = lock(&self.all);
        let waiting = all.buffers.iter().any(|buffer| lock(buffer).records > 0);
        if waiting { all.commit } else { CommitSeq::new(all.commit.get() - 1) }
    }

    /// Takes the records of all writers; those appended from now on are in the next cut.
    ///
    /// With `anyway` there is a cut even without records. `spares` are empty pieces that replace
    /// the writers' full ones.
    pub(crate) fn cut(&self, anyway: bool, spares: &mut Vec<Vec<u8>>) -> Option<Cut> {
        let mut all = lock(&self.all);
        let BufferSet { buffers, commit } = &mut *all;
        // While all are locked, no record can be appended after one in this cut and still be in it
        // or before it.
        let mut locked: Vec<_> = buffers.iter().map(|buffer| lock(buffer)).collect();
        if !anyway && locked.iter().all(|buffer| buffer.records == 0) {
            drop(locked);
            // Buffers of dropped writers.
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
    /// Returns the memory for the next cut.
    pub(crate) fn end(self, spares: &mut Vec<Vec<u8>>) {
        let room = SPARES_MAX.saturating_sub(spares.len());
        for mut bytes in self.taken.into_iter().take(room) {
            bytes.clear();
            bytes.shrink_to(KEPT_BYTES);
            spares.push(bytes);
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Only a failed allocation can panic under these locks; the process ends then.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
