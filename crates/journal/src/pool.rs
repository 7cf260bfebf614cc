//! Segments that are ready to be written, and files that are no longer needed.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::id::SegmentId;
use crate::storage::StorageFile;

/// A segment that can be written.
pub(crate) struct Ready {
    pub(crate) id: SegmentId,
    pub(crate) file: Arc<dyn StorageFile>,
    /// Not all of its blocks were written once.
    pub(crate) is_raw: bool,
}

/// A file that is not needed any more.
pub(crate) struct Unused {
    pub(crate) name: String,
    /// Nothing ever failed on it.
    pub(crate) sound: bool,
}

/// Segments that are ready, and files that are not needed any more.
pub(crate) struct Pool {
    pub(crate) state: Mutex<PoolState>,
    pub(crate) changed: Condvar,
}

pub(crate) struct PoolState {
    pub(crate) ready: VecDeque<Ready>,
    pub(crate) unused: VecDeque<Unused>,
    /// The number of the next segment.
    pub(crate) next: u64,
    /// The last try to give back a file failed.
    pub(crate) stuck: bool,
    /// The committer needs a segment now, whether zeroed or not.
    pub(crate) hurry: bool,
    /// Why the last try to make a segment failed.
    pub(crate) failed: Option<io::Error>,
    /// A thread of its own does the work, not the committer.
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
    pub(crate) fn new(next: u64, unused: impl IntoIterator<Item = Unused>) -> Self {
        let state = PoolState {
            ready: VecDeque::new(),
            unused: unused.into_iter().collect(),
            next,
            stuck: false,
            hurry: false,
            failed: None,
            threaded: false,
            stop: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Whether the next segment is ready, with all its blocks written once.
    pub(crate) fn has_prepared(&self) -> bool {
        self.lock().ready.front().is_some_and(|ready| !ready.is_raw)
    }

    /// Whether another segment is ready, whatever was written to it.
    pub(crate) fn has_ready(&self) -> bool {
        !self.lock().ready.is_empty()
    }

    /// Gives back a file. What was given back before is gone before it is.
    pub(crate) fn give_back(&self, unused: Unused) {
        self.lock().unused.push_back(unused);
        self.changed.notify_all();
    }

    /// From now on somebody is in [`Pool::run`].
    pub(crate) fn set_threaded(&self) {
        self.lock().threaded = true;
    }

    /// Ends [`Pool::run`].
    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, PoolState> {
        // What is under the lock is whole between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    /// There is no time for zeros.
    pub(crate) fn is_called(&self) -> bool {
        self.hurry || self.stop
    }

    pub(crate) fn wants_more(&self, ready: usize) -> bool {
        self.ready.len() < ready || self.hurry && self.ready.is_empty()
    }
}
