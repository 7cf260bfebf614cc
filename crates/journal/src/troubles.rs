//! Failures that last, and the condition of the journal that follows from them.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::options::Condition;

/// What is wrong at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Trouble {
    /// What is live takes more than it may.
    Limit = 1,
    /// A commit found the disk full.
    CommitFull = 2,
    /// No new segment can be made, the disk is full: what is left is for acknowledgements.
    NoSegment = 4,
    /// A commit failed.
    CommitFails = 8,
    /// A new segment could not be made for another reason.
    BadSegment = 16,
}

/// All that is wrong, in one number.
#[derive(Default)]
pub(crate) struct Troubles(AtomicU8);

impl Troubles {
    /// True if it was not so before.
    pub(crate) fn begin(&self, trouble: Trouble) -> bool {
        self.0.fetch_or(trouble as u8, Ordering::Relaxed) & trouble as u8 == 0
    }

    /// True if it was so before.
    pub(crate) fn end(&self, trouble: Trouble) -> bool {
        self.0.load(Ordering::Relaxed) & trouble as u8 != 0
            && self.0.fetch_and(!(trouble as u8), Ordering::Relaxed) & trouble as u8 != 0
    }

    pub(crate) fn condition(&self) -> Condition {
        match self.0.load(Ordering::Relaxed) {
            0 => Condition::Fine,
            1 => Condition::Limited,
            2..8 => Condition::Full,
            _ => Condition::Failing,
        }
    }
}
