//! The state that the parts of an open journal share.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::buffers::Buffers;
use crate::doubts::Doubts;
use crate::id::CommitSeq;
use crate::index::Index;
use crate::lock::Lock;
use crate::options::{Condition, Options};
use crate::pool::{Pool, Unused};
use crate::recovery::Recovery;
use crate::salt::{self, Salt};
use crate::segment::Segments;
use crate::signal::Signal;
use crate::stats::Stats;
use crate::storage::Storage;
use crate::troubles::Troubles;

/// A log of this size is not compacted even when the disk is full.
const SMALL_LOG_BYTES: u64 = 16 << 20;

/// The state that the parts of an open journal share.
pub(crate) struct Shared {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) options: Options,
    pub(crate) stats: Stats,
    pub(crate) troubles: Troubles,
    pub(crate) signal: Signal,
    pub(crate) buffers: Buffers,
    pub(crate) pool: Pool,
    pub(crate) segments: Segments,
    /// Bytes left in the segment that is being written; 0 if there is none.
    pub(crate) tail_room: AtomicU64,
    /// The salt of frames.
    pub(crate) salt: Option<Salt>,
    /// The high-water mark: the newest complete frame.
    pub(crate) committed: AtomicU64,
    /// The greatest message id assigned.
    pub(crate) message_ids: AtomicU64,
    /// The greatest queue id assigned.
    pub(crate) queue_ids: AtomicU64,
    index: Mutex<Index>,
    pub(crate) doubts: Doubts,
    /// Tells the frames of this process from those of every other one that uses the directory.
    pub(crate) owner: u16,
    /// Held until the last user of the journal has dropped it.
    pub(crate) lock: Option<Lock>,
}

impl Shared {
    /// Continues at the end of the log.
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        options: Options,
        stats: Stats,
        lock: Option<Lock>,
        recovery: Recovery,
    ) -> Self {
        let segments = Segments::default();
        let log_bytes = recovery.segments.iter().map(|(_, segment)| segment.bytes).sum();
        let segment_bytes = options.segment_bytes_for(log_bytes);
        for (id, segment) in recovery.segments {
            segments.insert(id, segment);
        }
        let unused = recovery.unused.into_iter().map(|name| Unused { name, sound: true });
        Self {
            storage,
            options,
            stats,
            troubles: Troubles::default(),
            signal: Signal::default(),
            buffers: Buffers::new(CommitSeq::new(recovery.last_frame + 1)),
            pool: Pool::new(recovery.next_segment, segment_bytes, unused),
            segments,
            tail_room: AtomicU64::new(0),
            salt: recovery.salt,
            committed: AtomicU64::new(recovery.last_frame),
            message_ids: AtomicU64::new(recovery.message_ids),
            queue_ids: AtomicU64::new(recovery.queue_ids),
            index: Mutex::new(recovery.index),
            doubts: Doubts::default(),
            owner: salt::new_owner(),
            lock,
        }
    }

    /// For the committer, readers and compaction only: a shard must never wait for this lock.
    pub(crate) fn index(&self) -> MutexGuard<'_, Index> {
        // Only a failed allocation can panic under this lock; the process ends then.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The size up to which the log may grow with this many live bytes before it is compacted.
    pub(crate) fn log_bytes_max(&self, live_bytes: u64) -> u64 {
        if self.troubles.condition() == Condition::Full {
            // Only compaction can make room.
            return SMALL_LOG_BYTES.max(live_bytes + live_bytes / 4);
        }
        self.options.log_bytes_min.max(2 * live_bytes)
    }
}
