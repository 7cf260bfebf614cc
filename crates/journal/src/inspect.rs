//! Inspection of a data directory that is not in use: its content, and whether it is sound.
//!
//! Inspection changes nothing, even if it finds damage. A directory in use by a broker is refused;
//! several inspections may run at once.

use std::path::Path;
use std::sync::Arc;

use crate::backup_list::{BackupList, LIST_NAME};
use crate::error::{OpenError, ReadError};
use crate::frame::FORMAT;
use crate::id::{MessageId, SegmentId};
use crate::lock::Lock;
use crate::read::{self, Body};
use crate::recovery::{self, Places, Recovery, Report, Visitor};
use crate::segment::{Segment, file_name};
use crate::storage::{Files, Storage, StorageFile};

/// A data directory, opened for inspection.
pub struct Inspection {
    recovery: Recovery,
    /// What is missing in a backup.
    missing: Vec<String>,
    _lock: Option<Lock>,
}

/// The content of a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The version of its format.
    pub format: u16,
    /// The segments that are the log, oldest first.
    pub segments: Vec<SegmentSummary>,
    /// Files without valid frames: prepared, or about to be removed.
    pub unused: Vec<String>,
    /// Bytes of the segments.
    pub log_bytes: u64,
    /// Bytes of what is live in them.
    pub live_bytes: u64,
    /// Messages that something refers to.
    pub messages: u64,
    /// Entries of all queues.
    pub entries: u64,
    /// Keys that have a value.
    pub keys: u64,
    /// Queues that have entries or keys.
    pub queues: u64,
    /// Messages whose distribution is not finished.
    pub open_messages: u64,
    /// The newest commit.
    pub last_commit: u64,
    /// The greatest number of a message.
    pub last_message: u64,
    /// The greatest number of a queue.
    pub last_queue: u64,
}

/// The content of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentSummary {
    /// The name of its file.
    pub file: String,
    /// The size of that.
    pub bytes: u64,
    /// Its last commit.
    pub last_commit: u64,
    /// Records in it that are live.
    pub live_records: u64,
    /// Bytes of these.
    pub live_bytes: u64,
    /// Some of it is damaged.
    pub is_damaged: bool,
}

/// A problem of a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// Commits that are lost.
    Damage(recovery::Damage),
    /// Number of entries and keys that refer to lost messages.
    Unresolved(u64),
    /// Commits of a process that another one had taken the directory over from.
    Foreign(recovery::Foreign),
    /// Something is missing in a backup.
    Incomplete(String),
    /// A message that is needed and cannot be read.
    Unreadable {
        /// Which one.
        message: MessageId,
        /// The file that it is in.
        file: String,
    },
}

impl std::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Damage(damage) => damage.fmt(formatter),
            Self::Foreign(foreign) => foreign.fmt(formatter),
            Self::Incomplete(what) => write!(formatter, "the backup is not complete: {what}"),
            Self::Unresolved(count) => {
                write!(formatter, "{count} entries or keys refer to messages that are lost")
            }
            Self::Unreadable { message, file } => {
                write!(formatter, "{file}: message {} cannot be read", message.get())
            }
        }
    }
}

impl Inspection {
    /// Reads the data directory of a broker that does not run.
    ///
    /// # Errors
    ///
    /// If a broker uses it, it cannot be read, holds no journal, or has a format that is not known.
    pub fn open(directory: &Path) -> Result<Self, OpenError> {
        let lock = Lock::share(directory)?;
        let name = directory.display();
        let files = Files::within(lock.directory(), true);
        let files = files.map_err(OpenError::io(format!("cannot open {name}")))?;
        let recovery = recovery::read(&files)?;
        let is_empty = recovery.segments.is_empty() && recovery.unused.is_empty();
        if is_empty && files.open(LIST_NAME).is_err() {
            return Err(OpenError::NoJournal { directory: name.to_string() });
        }
        let list = BackupList::read(&files);
        let list = list.map_err(OpenError::io(format!("cannot read {name}/{LIST_NAME}")))?;
        let missing = list.map_or_else(Vec::new, |list| match list {
            Ok(list) => {
                let ends = list.ends_otherwise(recovery.last_frame);
                list.missing(&files).into_iter().chain(ends).collect()
            }
            Err(why) => vec![why.to_owned()],
        });
        Ok(Self { recovery, missing, _lock: Some(lock) })
    }

    /// Reads the journal on any storage, which must not be in use meanwhile.
    ///
    /// # Errors
    ///
    /// If it cannot be read or has a format that is not known.
    pub fn open_on(storage: &impl Storage) -> Result<Self, OpenError> {
        Ok(Self { recovery: recovery::read(storage)?, missing: Vec::new(), _lock: None })
    }

    /// How reading the log went.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.recovery.report
    }

    /// The content of the directory.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let Recovery { index, segments, unused, .. } = &self.recovery;
        let live = index.live();
        Summary {
            format: FORMAT,
            segments: segments.iter().map(|(id, segment)| self.segment(*id, segment)).collect(),
            unused: unused.clone(),
            log_bytes: segments.iter().map(|(_, segment)| segment.bytes).sum(),
            live_bytes: live.bytes,
            messages: live.messages,
            entries: live.entries,
            keys: live.keys,
            queues: live.queues,
            open_messages: live.open,
            last_commit: self.recovery.last_frame,
            last_message: self.recovery.message_ids,
            last_queue: self.recovery.queue_ids,
        }
    }

    /// Finds all problems; reads all messages that are referred to.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let Recovery { index, report, .. } = &self.recovery;
        let mut problems: Vec<_> = self.missing.iter().cloned().map(Problem::Incomplete).collect();
        problems.extend(report.damage.iter().cloned().map(Problem::Damage));
        problems.extend(report.foreign.iter().cloned().map(Problem::Foreign));
        if report.unresolved > 0 {
            problems.push(Problem::Unresolved(report.unresolved));
        }
        let file = |id| self.file(id);
        let mut places = Places::new(&file);
        for (message, place) in index.messages() {
            if places.body(place, message).is_none() {
                let file = file_name(SegmentId::new(place.segment.into()));
                problems.push(Problem::Unreadable { message, file });
            }
        }
        problems
    }

    /// Visits all live content: keys, then entries, then open messages.
    ///
    /// # Errors
    ///
    /// If the log cannot be read.
    pub fn visit(&self, visitor: &mut dyn Visitor) -> Result<(), ReadError> {
        let Recovery { index, salt, .. } = &self.recovery;
        recovery::visit(index, &|id| self.file(id), *salt, visitor)
    }

    /// Reads the body of a message.
    ///
    /// # Errors
    ///
    /// If there is no such message or it cannot be read.
    pub fn message(&self, id: MessageId) -> Body {
        let place = self.recovery.index.message(id.get()).ok_or(ReadError::Gone)?;
        let file = self.file(SegmentId::new(place.segment.into())).ok_or(ReadError::Damaged)?;
        read::body(&*file, id, place, &mut Vec::new())
    }

    fn segment(&self, id: SegmentId, segment: &Segment) -> SegmentSummary {
        let usage =
            self.recovery.index.segments().find(|usage| u64::from(usage.number) == id.get());
        SegmentSummary {
            file: file_name(id),
            bytes: segment.bytes,
            last_commit: usage.map_or(0, |usage| usage.last_frame),
            live_records: usage.map_or(0, |usage| usage.live.into()),
            live_bytes: usage.map_or(0, |usage| usage.live_bytes),
            is_damaged: segment.suspect,
        }
    }

    fn file(&self, id: SegmentId) -> Option<Arc<dyn StorageFile>> {
        let segments = &self.recovery.segments;
        // Sorted by number.
        let at = segments.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        segments.get(at).map(|(_, segment)| Arc::clone(&segment.file))
    }
}
