//! How a journal behaves, and how it is doing.

use std::time::Duration;

/// When a commit that has a record of this level is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Once the operating system has it: survives the death of the process, not that of the kernel.
    Written,
    /// Once the disk says that it has it: survives a power cut.
    Fsynced,
}

/// Whether somebody waits for the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// Goes with the next commit that somebody forces, or after [`Options::ride_max`].
    Rides,
    /// Goes with the commit that [`Journal::force`](crate::Journal::force) asks for, which the
    /// caller will do when more has come together. Very much together asks by itself.
    Waits,
    /// Wakes the commit thread.
    Forces,
}

/// How the journal is doing. Anything but `Fine` means: take no new messages for it.
///
/// Acknowledgements, removals and reads go on in every condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// All is well.
    Fine,
    /// What is live takes more than [`Options::journal_bytes_max`].
    Limited,
    /// No space is left on the disk. What was appended is kept and written once there is space.
    Full,
    /// The disk reports errors. What was appended is kept and written again elsewhere.
    Failing,
}

/// Settings of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Size of a segment. A frame that is larger gets a segment of its own.
    pub segment_bytes: u32,
    /// Segments that are kept ready: zeroed, and under the name that they will have.
    pub segments_ready: usize,
    /// Above this, and twice what is live, old live records are moved so that segments get free.
    pub log_bytes_min: u64,
    /// What is live may take so much; beyond it [`Condition::Limited`]. `None`: the disk's size.
    pub journal_bytes_max: Option<u64>,
    /// With more than this waiting in a writer,
    /// [`Journal::is_pressed`](crate::Journal::is_pressed).
    pub buffer_bytes_max: usize,
    /// At low load a commit waits this long for company.
    pub linger: Duration,
    /// While commits take more than a tenth of a processor and a quarter of what nobody uses of it,
    /// they wait for company up to this long.
    pub linger_busy: Duration,
    /// What rides is committed at the latest after this.
    pub ride_max: Duration,
    /// After a failed commit the next try comes after this.
    pub retry: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
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
