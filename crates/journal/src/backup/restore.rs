//! A data directory from a backup.

use std::fs::{self, File};
use std::path::Path;

use super::{Backup, BackupError, Staging, files_of};
use crate::backup_list::BackupList;
use crate::id::CommitSeq;
use crate::inspect::{Inspection, Problem};
use crate::storage::Storage as _;

/// Makes a data directory from a backup, all of whose files must be there. They are copied, and all
/// of it is read and checked before it gets its name, which must not be there or be an empty
/// directory. What is damaged in it is returned: a broker that starts there uses the rest.
///
/// # Errors
///
/// If the backup is none or is incomplete, or something cannot be read or written. Then there is
/// no such data directory.
pub fn restore(backup: &Path, directory: &Path) -> Result<(Backup, Vec<Problem>), BackupError> {
    let name = backup.display().to_string();
    let source = files_of(backup)?;
    let what = || format!("cannot read {name}");
    let list = BackupList::read(&source).map_err(BackupError::io(what()))?;
    let list = list.ok_or_else(|| BackupError::NoBackup(name.clone()))?;
    let list = list.map_err(|why| BackupError::Incomplete(why.to_owned()))?;
    if let Some(problem) = list.missing(&source).into_iter().next() {
        return Err(BackupError::Incomplete(problem));
    }
    let staging = Staging::begin(directory)?;
    let mut copied_bytes = 0;
    for (name, bytes) in list.files() {
        let to = staging.path().join(name);
        let copied = fs::copy(backup.join(name), &to).and_then(|_| File::open(&to)?.sync_all());
        copied.map_err(BackupError::io(format!("cannot copy {name}")))?;
        copied_bytes += bytes;
    }
    let files = staging.files()?;
    files.sync_names().map_err(BackupError::io("cannot write the names of the files"))?;
    let inspection = Inspection::open_on(&files)?;
    let mut problems = inspection.check();
    let last = inspection.summary().last_commit;
    problems.extend(list.ends_otherwise(last).map(Problem::Incomplete));
    staging.finish()?;
    let commit = CommitSeq::new(list.commit());
    let backup = Backup { commit, segments: list.segments(), linked_bytes: 0, copied_bytes };
    Ok((backup, problems))
}
