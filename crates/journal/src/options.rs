//! Settings and condition of a journal.

use std::time::Duration;

/// When a commit with a record of this level is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Once it is written to the operating system: survives a crash of the process, not of the
    /// kernel.
    Written,
    /// Once the disk has confirmed a sync: survives a power cut.
    Fsynced,
}

/// How urgent the commit of a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// Included in the next commit that another record forces, or after [`Options::ride_max`].
    Rides,
    /// Included in the commit that the caller will request by
    /// [`Journal::force`](crate::Journal::force) after further records. A large backlog requests it
    /// by itself.
    Waits,
    /// Wakes the commit thread.
    Forces,
}

/// The condition of the journal. In all but `Fine`, new durable messages must be refused.
///
/// Acknowledgements, removals and reads continue in every condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// No failure.
    Fine,
    /// The live records exceed [`Options::journal_bytes_max`].
    Limited,
    /// The disk is full. Appended records are kept and written once there is space.
    Full,
    /// The disk reports errors. Appended records are kept and written again elsewhere.
    Failing,
    /// The data directory was moved, removed or replaced, or another process may have taken it
    /// over. Appended records are kept and written if the directory comes back.
    Displaced,
}

/// Settings of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Largest size of a segment. A frame that is larger gets a segment of its own.
    pub segment_bytes: u32,
    /// Size of the first segment of an empty log. Each segment that is begun doubles the size of
    /// those that are prepared next, up to [`Options::segment_bytes`].
    pub first_segment_bytes: u32,
    /// Segments kept ready: zeroed and under their final names.
    pub segments_ready: usize,
    /// A log larger than this and than twice its live bytes is compacted.
    pub log_bytes_min: u64,
    /// Limit of the live bytes; above it the condition is [`Condition::Limited`]. `None`: the
    /// disk's size.
    pub journal_bytes_max: Option<u64>,
    /// Limit of the backlog of a writer; above it
    /// [`Journal::is_pressed`](crate::Journal::is_pressed) is true.
    pub buffer_bytes_max: usize,
    /// At low load a commit waits this long for more records.
    pub linger: Duration,
    /// While commits take more than a tenth of a processor and a quarter of its idle time, they
    /// wait up to this long for more records.
    pub linger_busy: Duration,
    /// Riding records are committed after this at the latest.
    pub ride_max: Duration,
    /// The pause between a failed commit and the next try.
    pub retry: Duration,
}

/// Each segment that is begun doubles the size of the next ones.
const GROWTH: u32 = 2;
/// A log that exists continues with segments of this share of its size, so that the space that
/// they reserve on a full disk is in proportion to what has to be freed.
const LOG_SHARE: u64 = 8;

impl Options {
    /// The size of the first segments that are prepared for a log of this size.
    pub(crate) fn segment_bytes_for(&self, log_bytes: u64) -> u32 {
        let share = u32::try_from(log_bytes / LOG_SHARE).unwrap_or(u32::MAX);
        let mut bytes = self.first_segment_bytes.max(1);
        while bytes < share && bytes < self.segment_bytes {
            bytes = self.segment_bytes_after(bytes);
        }
        bytes.min(self.segment_bytes)
    }

    /// The size of the segments that are prepared once one of these has been begun.
    pub(crate) fn segment_bytes_after(&self, bytes: u32) -> u32 {
        bytes.saturating_mul(GROWTH).min(self.segment_bytes)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            first_segment_bytes: 1 << 20,
            segments_ready: 2,
            log_bytes_min: 512 << 20,
            journal_bytes_max: None,
            buffer_bytes_max: 8 << 20,
            linger: Duration::from_micros(200),
            linger_busy: Duration::from_millis(1),
            ride_max: Duration::from_millis(100),
            retry: Duration::from_secs(1),
        }
    }
}
