//! Failures that last, and the condition of the journal that follows from them.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::options::Condition;

/// One lasting failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Trouble {
    /// The live records exceed `journal_bytes_max`.
    Limit = 1,
    /// A commit has found the disk full.
    CommitFull = 2,
    /// The disk is too full for a new segment: the remaining space is for acknowledgements.
    NoSegment = 4,
    /// A commit has failed.
    CommitFails = 8,
    /// A new segment could not be prepared for another reason.
    BadSegment = 16,
    /// The path of the data directory leads elsewhere, or another process may use it.
    Displaced = 32,
}

/// The set of lasting failures, one bit each.
#[derive(Default)]
pub(crate) struct Troubles(AtomicU8);

impl Troubles {
    /// True if it was not set before.
    pub(crate) fn begin(&self, trouble: Trouble) -> bool {
        self.0.fetch_or(trouble as u8, Ordering::Relaxed) & trouble as u8 == 0
    }

    /// True if it was set before.
    pub(crate) fn end(&self, trouble: Trouble) -> bool {
        self.0.load(Ordering::Relaxed) & trouble as u8 != 0
            && self.0.fetch_and(!(trouble as u8), Ordering::Relaxed) & trouble as u8 != 0
    }

    pub(crate) fn condition(&self) -> Condition {
        match self.0.load(Ordering::Relaxed) {
            0 => Condition::Fine,
            1 => Condition::Limited,
            2..8 => Condition::Full,
            8..32 => Condition::Failing,
            _ => Condition::Displaced,
        }
    }
}
