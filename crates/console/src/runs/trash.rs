//! Deleted runs: moved to a folder beside them, and back.

use std::fs;
use std::io;
use std::path::Path;

use thiserror::Error;

/// The folder of deleted runs.
const TRASH: &str = ".trash";

/// Why a run could not be moved.
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
}

/// Moves a run to the trash. One of the same name that is there already is replaced only by name:
/// it keeps its files under another one.
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
    Ok(fs::rename(folder.join(id), place)?)
}

/// Moves a run back.
pub(crate) fn restore(folder: &Path, id: &str) -> Result<(), TrashError> {
    let place = folder.join(TRASH).join(id);
    if !place.is_dir() {
        return Err(TrashError::Missing(id.to_owned()));
    }
    let back = folder.join(id);
    if back.exists() {
        return Err(TrashError::Taken(id.to_owned()));
    }
    Ok(fs::rename(place, back)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_runs_come_back_and_earlier_ones_are_kept() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path();
        let make = |text: &str| {
            fs::create_dir(folder.join("a")).expect("makes");
            fs::write(folder.join("a/summary.json"), text).expect("writes");
        };
        assert!(matches!(restore(folder, "a"), Err(TrashError::Missing(_))));
        make("first");
        to_trash(folder, "a").expect("moves");
        assert!(!folder.join("a").exists());
        make("second");
        assert!(matches!(restore(folder, "a"), Err(TrashError::Taken(_))));
        to_trash(folder, "a").expect("moves");
        restore(folder, "a").expect("moves back");
        assert_eq!(fs::read_to_string(folder.join("a/summary.json")).expect("reads"), "second");
        let kept = fs::read_to_string(folder.join(".trash/a~2/summary.json")).expect("is kept");
        assert_eq!(kept, "first");
        assert!(matches!(to_trash(folder, "missing"), Err(TrashError::Io(_))));
    }
}
