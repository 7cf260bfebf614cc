//! Backups: a consistent copy of the log, made while it is written.
//!
//! A backup is the log up to one commit, the newest one at that moment:
//!
//! 1. **No segment is freed** for the moment. The newest commit is read, then the table of
//!    segments, which has all of that commit and of those before it. Nothing waits for this but the
//!    reuse of segments.
//! 2. **Segments before the last one** of the commit do not change any more. They are linked into
//!    the backup, which costs neither time nor space; where the file system cannot do that they are
//!    copied, by handles that stay valid when the files are removed.
//! 3. **The last one** is copied up to the commit, frame by frame.
//!
//! A file that a backup shares with the log is never used again: the keeper removes its name, and
//! the backup keeps the content. While the backup is made, the table says so; later, and in other
//! processes, the file's number of names does.
//!
//! A backup is complete or not there: it is made beside its directory, which gets its name last.
//! The file `backup` lists what belongs to it. As files are shared, no journal may be opened in a
//! backup: [`restore`](crate::restore) copies it.

mod restore;
mod staging;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::backup_list::{BackupList, LIST_NAME};
use crate::error::OpenError;
use crate::frame;
use crate::id::{CommitSeq, SegmentId};
use crate::options::Condition;
use crate::salt;
use crate::segment::{Pinned, Segment, file_name};
use crate::shared::Shared;
use crate::storage::{Files, Storage, StorageFile, read_full_at, write_all_at};

pub use restore::restore;
use staging::Staging;

/// Files are copied in pieces of this size,
const PIECE_BYTES: usize = 1 << 20;
/// with a pause behind each, since commits need the disk, too: at most 128 MiB in a second.
const PAUSE: Duration = Duration::from_millis(8);

/// A backup that was made, or restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// Every commit up to this one is in it, and no other.
    pub commit: CommitSeq,
    /// Its segments.
    pub segments: u64,
    /// Bytes of the files that it shares with the log.
    pub linked_bytes: u64,
    /// Bytes of the files that were copied.
    pub copied_bytes: u64,
}

/// A backup cannot be made or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// Another one is being made.
    #[error("another backup is being made: wait for its end")]
    Busy,
    /// The directory has something in it.
    #[error("{0} is there already: name a directory that is not, or an empty one")]
    Exists(String),
    /// An earlier one was interrupted.
    #[error("{0} was left by a backup that was interrupted: remove it")]
    Interrupted(String),
    /// The log is not on the disk.
    #[error("the journal cannot be written at present ({0}): solve that first")]
    Trouble(&'static str),
    /// The end of the log is being written again.
    #[error("the end of the log is being written anew after an error of the disk: try again")]
    Unsettled,
    /// The directory is no backup.
    #[error("{0} is no backup: `tacho ctl backup` makes one of a running broker")]
    NoBackup(String),
    /// A part of the backup is missing.
    #[error("the backup is not complete: {0}")]
    Incomplete(String),
    /// The journal in it cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The system refuses something.
    #[error("{what}: {source}")]
    Io {
        /// The failed operation, with the file.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

impl BackupError {
    /// For `map_err`: adds the failed operation.
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// What a backup consists of.
struct Snapshot {
    commit: u64,
    /// Complete segments.
    whole: Vec<(SegmentId, Segment)>,
    /// The one with the last commit, which is needed up to this place.
    last: Option<(SegmentId, Segment, u64)>,
}

/// Makes a backup in a directory, which must not be there or be empty.
pub(crate) fn make(shared: &Shared, directory: &Path) -> Result<Backup, BackupError> {
    check_condition(shared)?;
    let staging = Staging::begin(directory)?;
    let files = staging.files()?;
    let link = |name: &str| shared.storage.link(name, staging.path());
    let made = fill(shared, &files, &link);
    match &made {
        Ok(_) => shared.stats.backups.add(1),
        Err(_) => shared.stats.backup_errors.add(1),
    }
    let backup = made?;
    staging.finish()?;
    Ok(backup)
}

/// Nothing is promised of a log that cannot be written.
fn check_condition(shared: &Shared) -> Result<(), BackupError> {
    match shared.troubles.condition() {
        Condition::Failing => Err(BackupError::Trouble("the disk fails")),
        Condition::Displaced => Err(BackupError::Trouble("its directory was moved or replaced")),
        Condition::Fine | Condition::Limited | Condition::Full => Ok(()),
    }
}

/// Puts a backup into an empty storage. `link` gives a file of the log a second name there.
pub(crate) fn fill(
    shared: &Shared,
    target: &dyn Storage,
    link: &dyn Fn(&str) -> io::Result<()>,
) -> Result<Backup, BackupError> {
    let pinned = shared.segments.pin().ok_or(BackupError::Busy)?;
    let snapshot = take(shared, &pinned)?;
    let mut backup = Backup {
        commit: CommitSeq::new(snapshot.commit),
        segments: 0,
        linked_bytes: 0,
        copied_bytes: 0,
    };
    let mut list = BackupList::new(snapshot.commit);
    let mut to_copy = Vec::new();
    for (id, segment) in snapshot.whole {
        let name = file_name(id);
        let what = || format!("cannot read {name}");
        let bytes = segment.file.size().map_err(BackupError::io(what()))?;
        match link(&name) {
            Ok(()) => backup.linked_bytes += bytes,
            // Another file system, or one without links.
            Err(_) => to_copy.push((name.clone(), segment.file, bytes)),
        }
        list.add(name, bytes);
    }
    // The handles stay valid when files are removed.
    drop(pinned);
    if let Some((id, segment, end)) = snapshot.last {
        list.add(file_name(id), end);
        to_copy.push((file_name(id), segment.file, end));
    }
    for (name, file, bytes) in to_copy {
        copy(&*file, target, &name, bytes)?;
        backup.copied_bytes += bytes;
    }
    if let Ok(file) = shared.storage.open(salt::NAME) {
        let bytes = file.size().map_err(BackupError::io("cannot read the journal's salt"))?;
        copy(&*file, target, salt::NAME, bytes)?;
        list.add(salt::NAME.to_owned(), bytes);
    }
    backup.segments = list.segments();
    write_new(target, LIST_NAME, list.text().as_bytes())
        .and_then(|()| target.sync_names())
        .map_err(BackupError::io("cannot write the list of the backup"))?;
    Ok(backup)
}

/// The newest commit, and the segments that have it and those before. Their files are not used
/// again from now on.
fn take(shared: &Shared, pinned: &Pinned<'_>) -> Result<Snapshot, BackupError> {
    // Invariant: a segment is in the table before it has a commit, and none leaves it now.
    let commit = shared.committed.load(Ordering::Acquire);
    let segments = pinned.all();
    let begins = |(id, segment): &(SegmentId, Segment)| {
        let first = frame::header_at(&*segment.file, 0).ok().flatten();
        first.is_some_and(|first| first.segment == *id && first.number <= commit)
    };
    let Some(last) = segments.iter().rposition(begins) else {
        return match segments.is_empty() || commit == 0 {
            true => Ok(Snapshot { commit, whole: Vec::new(), last: None }),
            false => Err(BackupError::Unsettled),
        };
    };
    let mut whole = segments;
    whole.truncate(last + 1);
    pinned.lend(whole.iter().map(|(id, _)| *id));
    let last = match whole.pop() {
        None => None,
        Some((id, segment)) => {
            let end = end_of(id, &segment.file, commit)?;
            Some((id, segment, end))
        }
    };
    Ok(Snapshot { commit, whole, last })
}

/// Where a commit ends in its segment.
fn end_of(id: SegmentId, file: &Arc<dyn StorageFile>, commit: u64) -> Result<u64, BackupError> {
    let what = || format!("cannot read {}", file_name(id));
    let (mut offset, mut records) = (0, Vec::new());
    loop {
        let header = frame::read(&**file, offset, &mut records);
        let header = header.map_err(BackupError::io(what()))?;
        // The frames of a failed file are written again elsewhere.
        let header = header.filter(|header| header.segment == id && header.number <= commit);
        let header = header.ok_or(BackupError::Unsettled)?;
        offset += header.frame_bytes();
        if header.number == commit {
            return Ok(offset);
        }
    }
}

/// Copies the beginning of a file.
fn copy(
    from: &dyn StorageFile,
    target: &dyn Storage,
    name: &str,
    bytes: u64,
) -> Result<(), BackupError> {
    let copied = (|| {
        let to = target.create(name)?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut offset = 0;
        while offset < bytes {
            let wanted = piece.len().min(usize::try_from(bytes - offset).unwrap_or(usize::MAX));
            let read = read_full_at(from, offset, &mut piece[..wanted])?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            write_all_at(&*to, offset, &piece[..read])?;
            offset += read as u64;
            if read == PIECE_BYTES {
                std::thread::sleep(PAUSE);
            }
        }
        to.sync()
    })();
    copied.map_err(BackupError::io(format!("cannot copy {name}")))
}

fn write_new(target: &dyn Storage, name: &str, bytes: &[u8]) -> io::Result<()> {
    let file = target.create(name)?;
    write_all_at(&*file, 0, bytes)?;
    file.sync()
}

/// The directory of a backup that is being made, as a storage.
fn files_of(path: &Path) -> Result<Files, BackupError> {
    Files::open(path).map_err(BackupError::io(format!("cannot open {}", path.display())))
}
