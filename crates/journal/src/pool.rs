//! Prepared segments and unused files, shared by the committer and the segment keeper.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::id::SegmentId;
use crate::storage::StorageFile;

/// A segment that is ready to be written.
pub(crate) struct Ready {
    pub(crate) id: SegmentId,
    pub(crate) file: Arc<dyn StorageFile>,
    /// The size of its file.
    pub(crate) bytes: u32,
    /// Not all of its blocks are zeroed.
    pub(crate) is_raw: bool,
}

/// A file that is no longer needed.
pub(crate) struct Unused {
    pub(crate) name: String,
    /// No operation on it has failed, and no backup has it.
    pub(crate) sound: bool,
}

/// Ready segments and unused files.
pub(crate) struct Pool {
    pub(crate) state: Mutex<PoolState>,
    pub(crate) changed: Condvar,
}

pub(crate) struct PoolState {
    pub(crate) ready: VecDeque<Ready>,
    pub(crate) unused: VecDeque<Unused>,
    /// The number of the next segment.
    pub(crate) next: u64,
    /// The size of the segments that are prepared next.
    pub(crate) segment_bytes: u32,
    /// The last attempt to recycle or remove a file failed.
    pub(crate) recycling_failed: bool,
    /// The committer needs a segment now, whether zeroed or not.
    pub(crate) hurry: bool,
    /// The error of the last attempt to prepare a segment.
    pub(crate) failed: Option<io::Error>,
    /// A separate thread does the work, not the committer.
    pub(crate) threaded: bool,
    pub(crate) stop: bool,
}

pub(crate) enum Job {
    Create(SegmentId),
    /// The file becomes this segment.
    Recycle(Unused, SegmentId),
    Remove(Unused),
}

impl Pool {
    pub(crate) fn new(
        next: u64,
        segment_bytes: u32,
        unused: impl IntoIterator<Item = Unused>,
    ) -> Self {
        let state = PoolState {
            ready: VecDeque::new(),
            unused: unused.into_iter().collect(),
            next,
            segment_bytes,
            recycling_failed: false,
            hurry: false,
            failed: None,
            threaded: false,
            stop: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Whether the next segment is ready and zeroed.
    pub(crate) fn has_prepared(&self) -> bool {
        self.lock().ready.front().is_some_and(|ready| !ready.is_raw)
    }

    /// The size of the next segment that is ready, zeroed or not; 0 without one.
    pub(crate) fn ready_bytes(&self) -> u64 {
        self.lock().ready.front().map_or(0, |ready| ready.bytes.into())
    }

    /// Returns a file for reuse or removal. Files are processed in the order of their return.
    pub(crate) fn give_back(&self, unused: Unused) {
        self.lock().unused.push_back(unused);
        self.changed.notify_all();
    }

    /// From now on a thread is in [`Pool::run`].
    pub(crate) fn set_threaded(&self) {
        self.lock().threaded = true;
    }

    /// Ends [`Pool::run`].
    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, PoolState> {
        // The state is consistent between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    /// Zeroing has to stop: the committer waits, or the journal closes.
    pub(crate) fn is_called(&self) -> bool {
        self.hurry || self.stop
    }

    pub(crate) fn wants_more(&self, ready: usize) -> bool {
        self.ready.len() < ready || self.hurry && self.ready.is_empty()
    }
}
