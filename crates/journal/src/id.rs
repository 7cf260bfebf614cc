//! Numbers of messages, queues, segments and commits.

use std::fmt;
use std::num::NonZeroU64;

/// A message: a body that is written once and may have many references.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(NonZeroU64);

impl MessageId {
    /// The message of this number; `None` for 0.
    #[must_use]
    pub fn new(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    /// Its number, never 0.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

/// A queue: the entries and keys of one owner, such as a session or a shared group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(u64);

impl QueueId {
    /// The queue of keys that belong to no other. It has no entries and cannot be dropped.
    pub const COMMON: Self = Self(0);

    /// The queue of this number, as read from a record.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The number of a commit: complete once [`Journal::committed`](crate::Journal::committed) is at
/// least this.
///
/// It is the number of the frame, so it grows with time, also across restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitSeq(u64);

impl CommitSeq {
    /// Always complete: nothing to wait for.
    pub const DONE: Self = Self(0);

    /// The commit of this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number of the frame.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A segment of the log: a file. Numbers grow, with gaps, and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(u64);

impl SegmentId {
    /// The segment of this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for SegmentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}
