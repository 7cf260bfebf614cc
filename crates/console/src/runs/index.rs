//! The rows of all runs of a folder. A directory is read only where it has changed since it was
//! read last, by this process or by an earlier one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::index_file::{IndexFile, IndexLine};
use super::row::RunRow;
use crate::error::ConsoleError;
use crate::files::is_plain;

/// Runs that are looked at, the last by name: names begin with their time.
const RUNS_MAX: usize = 100_000;
/// A directory that changed this recently may change again without another time of change.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// All runs of a folder.
#[derive(Debug)]
pub(crate) struct RunIndex {
    folder: PathBuf,
    known: BTreeMap<String, IndexedRun>,
    file: IndexFile,
    reads: u64,
}

#[derive(Debug)]
struct IndexedRun {
    /// When its directory changed last; absent where it must be read again whatever that says.
    modified_ns: Option<u64>,
    row: RunRow,
}

/// A run that is not what it was.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunChange {
    pub(crate) id: String,
    /// What it is now; absent where it is gone.
    pub(crate) row: Option<RunRow>,
}

impl RunIndex {
    /// Of `folder`, as the file there describes it, and then its directories.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(crate) fn open(folder: &Path) -> Result<Self, ConsoleError> {
        names(folder)?;
        let (file, known) = IndexFile::open(folder);
        let known = known.into_iter().map(|(id, (modified_ns, row))| {
            (id, IndexedRun { modified_ns: Some(modified_ns), row })
        });
        let mut index = Self { folder: folder.to_owned(), known: known.collect(), file, reads: 0 };
        index.refresh()?;
        Ok(index)
    }

    /// Reads what has changed; says what is not what it was.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(crate) fn refresh(&mut self) -> Result<Vec<RunChange>, ConsoleError> {
        let there = names(&self.folder)?;
        let (mut changes, mut lines) = (Vec::new(), Vec::new());
        self.known.retain(|id, _| {
            let stays = there.contains_key(id);
            if !stays {
                lines.push(IndexLine { id: id.clone(), modified_ns: None, row: None });
                changes.push(RunChange { id: id.clone(), row: None });
            }
            stays
        });
        for (id, modified_ns) in there {
            let known = self.known.get(&id);
            let is_known = |known: &&IndexedRun| {
                known.modified_ns == Some(modified_ns) && !known.row.is_unfinished()
            };
            if known.is_some_and(|known| is_known(&known)) {
                continue;
            }
            let is_settled = is_settled(modified_ns);
            self.reads += 1;
            let row = RunRow::read(&self.folder.join(&id), &id);
            if known.is_none_or(|known| known.row != row) {
                changes.push(RunChange { id: id.clone(), row: Some(row.clone()) });
            }
            if is_settled && !row.is_unfinished() {
                let (id, row) = (id.clone(), Some(row.clone()));
                lines.push(IndexLine { id, modified_ns: Some(modified_ns), row });
            }
            let modified_ns = is_settled.then_some(modified_ns);
            self.known.insert(id, IndexedRun { modified_ns, row });
        }
        let all = || {
            let line = |(id, run): (&String, &IndexedRun)| IndexLine {
                id: id.clone(),
                modified_ns: run.modified_ns,
                row: Some(run.row.clone()),
            };
            let settled = |(_, run): &(&String, &IndexedRun)| run.modified_ns.is_some();
            self.known.iter().filter(settled).map(line).collect()
        };
        self.file.add(&lines, all);
        Ok(changes)
    }

    /// All rows, by name.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &RunRow> {
        self.known.values().map(|run| &run.row)
    }

    /// The row of a run.
    #[cfg(test)]
    fn row(&self, id: &str) -> Option<&RunRow> {
        self.known.get(id).map(|run| &run.row)
    }

    /// How many directories were read so far.
    #[cfg(test)]
    fn reads(&self) -> u64 {
        self.reads
    }
}

/// The directories of the folder with the times of their last changes.
fn names(folder: &Path) -> Result<BTreeMap<String, u64>, ConsoleError> {
    let entries = fs::read_dir(folder)
        .map_err(|error| ConsoleError::Folder { folder: folder.to_owned(), error })?;
    let mut names = BTreeMap::new();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Ok(about) = entry.metadata() else { continue };
        if !about.is_dir() || !is_plain(&name) {
            continue;
        }
        let modified = about.modified().unwrap_or(UNIX_EPOCH);
        let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        names.insert(name, u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        if names.len() > RUNS_MAX {
            names.pop_first();
        }
    }
    Ok(names)
}

fn is_settled(modified_ns: u64) -> bool {
    let modified = UNIX_EPOCH + Duration::from_nanos(modified_ns);
    match SystemTime::now().duration_since(modified) {
        Ok(age) => age >= SETTLED_AFTER,
        // A change in the future, by another clock: times of change say nothing.
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::run_state::RunState;

    fn write(folder: &Path, id: &str, verdict: &str) {
        let directory = folder.join(id);
        fs::create_dir_all(&directory).expect("creates");
        let record = format!(r#"{{"verdict": "{verdict}", "scenario": "{id}"}}"#);
        fs::write(directory.join("summary.json"), record).expect("writes");
        age(&directory, 60);
    }

    /// As if the directory had changed last so many seconds ago.
    fn age(directory: &Path, seconds: u64) {
        let at = SystemTime::now() - Duration::from_secs(seconds);
        File::open(directory).expect("opens").set_modified(at).expect("sets");
    }

    #[test]
    fn of_ten_thousand_runs_only_those_that_changed_are_read() {
        let place = tempfile::tempdir().expect("a folder");
        for number in 0..10_000 {
            let directory = place.path().join(format!("{number:05}"));
            fs::create_dir(&directory).expect("creates");
            fs::write(directory.join("summary.json"), r#"{"verdict": "ok"}"#).expect("writes");
            age(&directory, 60);
        }
        let mut index = RunIndex::open(place.path()).expect("opens");
        assert_eq!((index.rows().count(), index.reads()), (10_000, 10_000));
        assert_eq!(index.refresh().expect("reads"), []);
        assert_eq!(index.reads(), 10_000, "nothing has changed");
        drop(index);
        // The next process reads the file instead of the directories.
        let mut index = RunIndex::open(place.path()).expect("opens");
        assert_eq!((index.rows().count(), index.reads()), (10_000, 0));
        write(place.path(), "new", "not_steady");
        let changes = index.refresh().expect("reads");
        assert_eq!((changes.len(), changes[0].id.as_str(), index.reads()), (1, "new", 1));
        assert_eq!(index.row("new").expect("is there").scenario, "new");
    }

    #[test]
    fn directories_are_the_truth_whatever_the_file_says() {
        let place = tempfile::tempdir().expect("a folder");
        write(place.path(), "a", "ok");
        write(place.path(), "b", "ok");
        drop(RunIndex::open(place.path()).expect("opens"));
        fs::remove_dir_all(place.path().join("b")).expect("removes");
        write(place.path(), "a", "disturbed");
        age(&place.path().join("a"), 30);
        fs::create_dir(place.path().join(".hidden")).expect("creates");
        std::os::unix::fs::symlink("/", place.path().join("link")).expect("links");
        let index = RunIndex::open(place.path()).expect("opens");
        let rows: Vec<_> = index.rows().map(|row| (row.id.as_str(), row.verdict)).collect();
        assert_eq!(rows, [("a", Some(tacho_record::Verdict::Disturbed))]);
        assert!(RunIndex::open(&place.path().join("missing")).is_err());
        let file = place.path().join(".index.jsonl");
        fs::remove_file(&file).expect("removes");
        let index = RunIndex::open(place.path()).expect("opens");
        assert_eq!((index.rows().count(), index.reads()), (1, 1));
    }

    #[test]
    fn what_changed_just_now_is_read_again() {
        let place = tempfile::tempdir().expect("a folder");
        write(place.path(), "a", "ok");
        let directory = place.path().join("a");
        age(&directory, 0);
        let mut index = RunIndex::open(place.path()).expect("opens");
        let before = fs::metadata(&directory).and_then(|about| about.modified()).expect("has one");
        fs::remove_file(directory.join("summary.json")).expect("removes");
        // On a file system with coarse times.
        File::open(&directory).expect("opens").set_modified(before).expect("sets");
        let changes = index.refresh().expect("reads");
        assert_eq!(changes.len(), 1);
        assert_eq!(index.row("a").expect("is there").state, RunState::Broken);
    }
}
