//! How far a run is: a small file in its directory, for lists that show it.
//!
//! Only facts that hold for a while are in it (which phase, since when, how long it is planned to
//! take), so that it is written a few times per run; readers work out the seconds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tacho_record::Timestamp;

use crate::regular;
use crate::whole_file::write_whole_unsynced;

/// Name of the file.
const FILE: &str = "progress.json";
/// A larger file was written by another program.
const BYTES_MAX: u64 = 64 << 10;
/// Time between two writes that no phase asks for.
const WRITE_EVERY: Duration = Duration::from_secs(2);

/// How far a run is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunProgress {
    /// The phase that goes on.
    pub phase: String,
    /// Which one it is, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
    /// When it began, RFC 3339 in UTC.
    pub since: String,
    /// Its planned length in seconds; absent where that depends on the broker.
    pub planned_s: Option<f64>,
    /// When this run, or step, began.
    pub step_since: String,
    /// The planned length of its phases, in seconds.
    pub step_planned_s: f64,
    /// Of several runs, which one goes on.
    pub step: Option<StepProgress>,
    /// Verdicts of the steps so far, each with its number.
    pub verdicts: BTreeMap<String, u64>,
    /// Failures of clients so far.
    pub failures: u64,
    /// Conditions that the latest second misses.
    pub missed: usize,
}

/// Which of several runs goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepProgress {
    /// From 1.
    pub number: usize,
    /// How many there are; absent where results decide, as in a search.
    pub of: Option<usize>,
    /// For people.
    pub title: String,
}

/// The file of a run; dropping it removes the file.
#[derive(Debug)]
pub struct ProgressFile {
    path: PathBuf,
    known: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    progress: RunProgress,
    written: RunProgress,
    written_at: Option<Instant>,
}

impl ProgressFile {
    /// That of the run in `directory`; nothing is written yet.
    pub fn new(directory: &Path) -> Self {
        Self { path: directory.join(FILE), known: Mutex::default() }
    }

    /// A run begins, which is planned to take so long; one of several where `step` is there.
    pub fn begin(&self, step: Option<StepProgress>, planned: Duration) {
        self.change(true, |progress| {
            progress.step = step;
            progress.step_since = Timestamp::now().rfc3339();
            progress.step_planned_s = planned.as_secs_f64();
            progress.missed = 0;
        });
    }

    /// A phase begins: one of `of`, planned to take so long unless that depends on the broker.
    pub fn phase(&self, name: &str, planned: Option<Duration>, (number, of): (usize, usize)) {
        self.change(true, |progress| {
            name.clone_into(&mut progress.phase);
            (progress.number, progress.of) = (number, of);
            progress.since = Timestamp::now().rfc3339();
            progress.planned_s = planned.map(|planned| planned.as_secs_f64());
        });
    }

    /// A client failed.
    pub fn failed(&self) {
        self.change(false, |progress| progress.failures += 1);
    }

    /// A second passed, which misses so many conditions.
    pub fn second(&self, missed: usize) {
        self.change(false, |progress| progress.missed = missed);
    }

    /// A run has ended.
    pub fn end(&self, verdict: &str) {
        self.change(true, |progress| {
            *progress.verdicts.entry(verdict.to_owned()).or_default() += 1;
        });
    }

    /// Writes what has changed: at once, or when the last time is a while ago.
    fn change(&self, is_urgent: bool, change: impl FnOnce(&mut RunProgress)) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut known.progress);
        let is_due = known.written_at.is_none_or(|at| at.elapsed() >= WRITE_EVERY);
        if known.progress == known.written || !(is_urgent || is_due) {
            return;
        }
        known.written = known.progress.clone();
        known.written_at = Some(Instant::now());
        // For people who watch; the run itself is as good without.
        if let Ok(text) = serde_json::to_vec(&known.written) {
            let _ = write_whole_unsynced(&self.path, &text);
        }
    }
}

impl Drop for ProgressFile {
    fn drop(&mut self) {
        // One that stays is not read: the run has ended.
        let _ = fs::remove_file(&self.path);
    }
}

impl RunProgress {
    /// That of a run that goes on, from its directory.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let text = regular::read(&directory.join(FILE), BYTES_MAX).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_and_steps_are_written_at_once_and_the_rest_now_and_then() {
        let place = tempfile::tempdir().expect("a folder");
        let file = ProgressFile::new(place.path());
        assert_eq!(RunProgress::read(place.path()), None);
        let step = StepProgress { number: 2, of: Some(5), title: "step 2 of 5".to_owned() };
        file.begin(Some(step.clone()), Duration::from_secs(30));
        file.phase("measure", Some(Duration::from_secs(20)), (5, 7));
        let progress = RunProgress::read(place.path()).expect("is there");
        assert_eq!((progress.phase.as_str(), progress.number, progress.of), ("measure", 5, 7));
        assert_eq!((progress.step, progress.step_planned_s), (Some(step), 30.0));
        assert!(Timestamp::parse(&progress.since).is_some(), "{}", progress.since);
        for _ in 0..1000 {
            file.failed();
        }
        file.second(1);
        file.end("ok");
        let progress = RunProgress::read(place.path()).expect("is there");
        assert_eq!((progress.failures, progress.missed, progress.verdicts["ok"]), (1000, 1, 1));
        drop(file);
        assert_eq!(fs::read_dir(place.path()).expect("lists").count(), 0);
    }

    #[test]
    fn files_of_other_programs_are_no_progress() {
        let place = tempfile::tempdir().expect("a folder");
        for text in ["", "7", "{\"number\": -1}", "{\"verdicts\": 7}"] {
            fs::write(place.path().join(FILE), text).expect("writes");
            assert_eq!(RunProgress::read(place.path()), None, "{text}");
        }
        fs::write(place.path().join(FILE), "{}").expect("writes");
        assert_eq!(RunProgress::read(place.path()), Some(RunProgress::default()));
    }
}
