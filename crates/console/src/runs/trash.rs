//! Deleted runs: moved to a folder beside them, and back, or removed permanently.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use tacho_record::Timestamp;
use thiserror::Error;

use super::notes::RunNotes;
use super::row::RunRow;
use crate::files::is_plain;

/// The folder of deleted runs.
const TRASH: &str = ".trash";
/// Runs of a list.
const ROWS_MAX: usize = 500;
/// Files that are counted for the size of the whole trash.
const SIZED_FILES_MAX: usize = 1_000_000;

/// Why a run could not be moved or removed.
#[derive(Debug, Error)]
pub(crate) enum TrashError {
    /// There is none of that name.
    #[error("there is no run '{0}' in the trash")]
    Missing(String),
    /// A run of that name is there again.
    #[error("there is a run '{0}' again: delete or move that one first")]
    Taken(String),
    /// The system refuses.
    #[error("cannot move the run: {0}")]
    Io(#[from] io::Error),
    /// The system refuses to remove one; those before it are gone.
    #[error("cannot remove '{id}' from the trash, after {removed} others: {error}")]
    Stays {
        /// The run.
        id: String,
        /// Those that were removed before.
        removed: usize,
        /// Why.
        error: io::Error,
    },
}

/// A run in the trash.
#[derive(Debug, Serialize)]
pub(crate) struct TrashRow {
    #[serde(flatten)]
    pub(crate) row: RunRow,
    /// When it was deleted, RFC 3339 in UTC; absent where it was moved there by hand.
    deleted: Option<String>,
    /// Of its files; absent behind a million files.
    bytes: Option<u64>,
}

/// What the trash has.
#[derive(Debug, Default, Serialize)]
pub(crate) struct TrashList {
    /// The last deleted first.
    pub(crate) rows: Vec<TrashRow>,
    /// Runs, also those beyond the list.
    total: usize,
    /// Of all files.
    bytes: Option<u64>,
}

/// What was removed permanently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Removed {
    removed: usize,
    /// What its files had; absent where they were too many to be counted.
    bytes: Option<u64>,
}

/// Moves a run to the trash. One of the same name that is there already keeps its files under
/// another name.
pub(crate) fn to_trash(folder: &Path, id: &str) -> Result<(), TrashError> {
    let trash = folder.join(TRASH);
    fs::create_dir_all(&trash)?;
    let place = trash.join(id);
    if place.exists() {
        let free = (2..10_000).map(|number| trash.join(format!("{id}~{number}")));
        let free = free.into_iter().find(|path| !path.exists());
        let free = free.ok_or_else(|| io::Error::from(io::ErrorKind::StorageFull))?;
        fs::rename(&place, free)?;
    }
    fs::rename(folder.join(id), &place)?;
    note(&place, Some(Timestamp::now().rfc3339()));
    Ok(())
}

/// Moves a run back.
pub(crate) fn restore(folder: &Path, id: &str) -> Result<(), TrashError> {
    let place = in_trash(folder, id)?;
    let back = folder.join(id);
    if back.exists() {
        return Err(TrashError::Taken(id.to_owned()));
    }
    fs::rename(place, &back)?;
    note(&back, None);
    Ok(())
}

/// Removes one run of the trash, or all of them, permanently.
pub(crate) fn purge(folder: &Path, id: Option<&str>) -> Result<Removed, TrashError> {
    let doomed = match id {
        Some(id) => vec![(in_trash(folder, id)?, id.to_owned())],
        None => runs(folder)?.into_iter().map(|(_, place, id)| (place, id)).collect(),
    };
    let mut left = SIZED_FILES_MAX;
    let mut gone = Removed { removed: 0, bytes: Some(0) };
    for (place, id) in doomed {
        let size = size(&place, &mut left);
        fs::remove_dir_all(&place).map_err(|error| TrashError::Stays {
            id,
            removed: gone.removed,
            error,
        })?;
        gone.removed += 1;
        gone.bytes = gone.bytes.zip(size).map(|(sum, size)| sum + size);
    }
    Ok(gone)
}

/// The runs of the trash.
pub(crate) fn list(folder: &Path) -> io::Result<TrashList> {
    let all = runs(folder)?;
    let mut left = SIZED_FILES_MAX;
    let mut list = TrashList { rows: Vec::new(), total: all.len(), bytes: Some(0) };
    for (at, (_, place, id)) in all.into_iter().enumerate() {
        let bytes = size(&place, &mut left);
        list.bytes = list.bytes.zip(bytes).map(|(sum, bytes)| sum + bytes);
        if at < ROWS_MAX {
            let deleted = RunNotes::read(&place).deleted;
            list.rows.push(TrashRow { row: RunRow::read(&place, &id), deleted, bytes });
        }
    }
    Ok(list)
}

/// Directories of the trash with their last change, which is that of the deletion; the last one
/// first. Anything else there was put there by others, and stays.
fn runs(folder: &Path) -> io::Result<Vec<(SystemTime, PathBuf, String)>> {
    let entries = match fs::read_dir(folder.join(TRASH)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let run = |entry: fs::DirEntry| {
        let id = entry.file_name().into_string().ok().filter(|id| is_plain(id))?;
        let about = entry.metadata().ok().filter(fs::Metadata::is_dir)?;
        Some((about.modified().ok()?, entry.path(), id))
    };
    let mut runs: Vec<_> = entries.flatten().filter_map(run).collect();
    runs.sort_by(|left, right| right.cmp(left));
    Ok(runs)
}

fn in_trash(folder: &Path, id: &str) -> Result<PathBuf, TrashError> {
    let place = folder.join(TRASH).join(id);
    let is_run = is_plain(id) && fs::symlink_metadata(&place).is_ok_and(|about| about.is_dir());
    if is_run { Ok(place) } else { Err(TrashError::Missing(id.to_owned())) }
}

/// Says in the run's notes since when it is in the trash. A run whose notes cannot be written is
/// deleted all the same.
fn note(directory: &Path, deleted: Option<String>) {
    let notes = RunNotes { deleted, ..RunNotes::read(directory) };
    let _ = notes.write(directory);
}

/// Bytes of the files below a directory, not of what links lead to; `left` is how many more files
/// are counted.
fn size(directory: &Path, left: &mut usize) -> Option<u64> {
    let mut bytes = 0;
    let mut places = vec![directory.to_owned()];
    while let Some(place) = places.pop() {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            *left = left.checked_sub(1)?;
            let Ok(about) = entry.metadata() else { continue };
            match about.is_dir() {
                true => places.push(entry.path()),
                false => bytes += about.len(),
            }
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(folder: &Path, id: &str, text: &str) {
        fs::create_dir(folder.join(id)).expect("makes");
        fs::write(folder.join(id).join("summary.json"), text).expect("writes");
    }

    #[test]
    fn deleted_runs_come_back_and_earlier_ones_are_kept() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path();
        assert!(matches!(restore(folder, "a"), Err(TrashError::Missing(_))));
        make(folder, "a", "first");
        to_trash(folder, "a").expect("moves");
        assert!(!folder.join("a").exists());
        make(folder, "a", "second");
        assert!(matches!(restore(folder, "a"), Err(TrashError::Taken(_))));
        to_trash(folder, "a").expect("moves");
        restore(folder, "a").expect("moves back");
        assert_eq!(fs::read_to_string(folder.join("a/summary.json")).expect("reads"), "second");
        assert_eq!(RunNotes::read(&folder.join("a")).deleted, None);
        let kept = fs::read_to_string(folder.join(".trash/a~2/summary.json")).expect("is kept");
        assert_eq!(kept, "first");
        restore(folder, "a~2").expect("moves back beside the other");
        assert!(matches!(to_trash(folder, "missing"), Err(TrashError::Io(_))));
    }

    #[test]
    fn the_trash_is_listed_by_deletion_and_emptied_with_its_size() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path();
        assert_eq!(list(folder).expect("is none").total, 0);
        for id in ["a", "b", "c"] {
            make(folder, id, r#"{"verdict": "ok", "given": {"name": "Monday"}}"#);
            to_trash(folder, id).expect("moves");
        }
        let at = |id: &str, second| {
            let file = fs::File::open(folder.join(TRASH).join(id)).expect("opens");
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(second);
            file.set_modified(time).expect("sets");
        };
        at("a", 30);
        at("b", 20);
        at("c", 10);
        let listed = list(folder).expect("lists");
        let ids: Vec<&str> = listed.rows.iter().map(|row| row.row.id.as_str()).collect();
        assert_eq!((ids, listed.total), (vec!["a", "b", "c"], 3));
        let first = &listed.rows[0];
        assert_eq!(first.row.name, "Monday");
        let deleted = first.deleted.as_deref().and_then(Timestamp::parse);
        assert!(deleted.is_some() && first.bytes > Some(40), "{first:?}");
        let one = purge(folder, Some("b")).expect("removes");
        assert_eq!(one, Removed { removed: 1, bytes: listed.rows[1].bytes });
        let rest = purge(folder, None).expect("removes");
        assert_eq!(rest.removed, 2);
        assert_eq!(rest.bytes.zip(one.bytes).map(|(rest, one)| rest + one), listed.bytes);
        assert_eq!(list(folder).expect("lists").total, 0);
        assert!(matches!(restore(folder, "a"), Err(TrashError::Missing(_))));
        assert!(matches!(purge(folder, Some("a")), Err(TrashError::Missing(_))));
    }

    #[test]
    fn nothing_outside_the_trash_is_removed() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("runs");
        fs::create_dir_all(folder.join(TRASH)).expect("makes");
        fs::write(folder.join(TRASH).join("file"), "stays").expect("writes");
        make(&folder, "run", "stays");
        let precious = place.path().join("precious");
        fs::create_dir(&precious).expect("makes");
        fs::write(precious.join("file"), "stays").expect("writes");
        std::os::unix::fs::symlink(&precious, folder.join(TRASH).join("link")).expect("links");
        make(&folder.join(TRASH), "a", "goes");
        std::os::unix::fs::symlink(&precious, folder.join(TRASH).join("a/link")).expect("links");
        for id in ["link", "file", "..", "../run", "../../precious", "", "."] {
            let purged = purge(&folder, Some(id));
            assert!(matches!(purged, Err(TrashError::Missing(_))), "{id}");
            assert!(matches!(restore(&folder, id), Err(TrashError::Missing(_))), "{id}");
        }
        assert_eq!(purge(&folder, None).expect("removes").removed, 1);
        assert!(fs::symlink_metadata(folder.join(TRASH).join("link")).is_ok());
        for left in [precious.join("file"), folder.join("run/summary.json")] {
            assert_eq!(fs::read_to_string(left).expect("stays"), "stays");
        }
        assert!(folder.join(TRASH).join("file").is_file());
    }
}
