//! The result of reading a log.

use std::fmt;

/// The result of reading the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Segments that belong to the log.
    pub segments: u64,
    /// Commits in them.
    pub frames: u64,
    /// Records in these commits.
    pub records: u64,
    /// Bytes of these records.
    pub record_bytes: u64,
    /// The incomplete commit at the end of the log, as after a power cut. None of its records was
    /// acknowledged at the level [`Fsynced`](crate::Level::Fsynced).
    pub torn: Option<Torn>,
    /// Commits that were on the disk and cannot be read.
    pub damage: Vec<Damage>,
    /// Commits of a process that another one had taken the directory over from. They are not used.
    pub foreign: Vec<Foreign>,
    /// Files that were quarantined.
    pub quarantined: Vec<String>,
    /// Entries and keys whose message is missing.
    pub unresolved: u64,
}

/// A commit that was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The segment.
    pub file: String,
    /// Where it begins.
    pub offset: u64,
    /// Its number.
    pub frame: u64,
}

/// Commits that are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The segment that they were in, or should have been in.
    pub file: String,
    /// Where they began.
    pub offset: u64,
    /// The first that is lost.
    pub first_frame: u64,
    /// The last that is lost.
    pub last_frame: u64,
    /// The disk reported a read error.
    pub unreadable: bool,
}

/// Commits that a process wrote after another one had taken the data directory over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The segment that they are in.
    pub file: String,
    /// Where they begin.
    pub offset: u64,
    /// The number of the first.
    pub first_frame: u64,
    /// The number of the last.
    pub last_frame: u64,
}

impl fmt::Display for Foreign {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, first_frame, last_frame } = self;
        let count = last_frame.saturating_sub(*first_frame) + 1;
        write!(
            formatter,
            "{file}: {count} commits ({first_frame} to {last_frame}) from byte {offset} on are lost: \
             a broker wrote them after another one had begun to use the directory"
        )
    }
}

impl Damage {
    /// Number of lost commits.
    #[must_use]
    pub const fn frames(&self) -> u64 {
        self.last_frame.saturating_sub(self.first_frame) + 1
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, first_frame, last_frame, unreadable } = self;
        let why = if *unreadable { "the disk cannot read them" } else { "they are damaged" };
        let count = self.frames();
        write!(
            formatter,
            "{file}: {count} commits ({first_frame} to {last_frame}) from byte {offset} on are \
             lost: {why}"
        )
    }
}

impl Report {
    /// Writes it to the program's log.
    pub(super) fn log(&self) {
        for damage in &self.damage {
            tracing::error!("the journal is damaged: {damage}; everything else in it is used");
        }
        for foreign in &self.foreign {
            tracing::error!("two brokers have used the data directory at once: {foreign}");
        }
        for file in &self.quarantined {
            tracing::error!(file, "the segment was put into quarantine");
        }
        if let Some(Torn { file, offset, frame }) = &self.torn {
            tracing::info!(file, offset, frame, "the journal ends in a commit that was cut off");
        }
        if self.unresolved > 0 {
            let entries = self.unresolved;
            tracing::error!(entries, "entries of the journal refer to messages that are lost");
        }
    }
}
