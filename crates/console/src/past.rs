//! Past runs, as the directories of a folder describe them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize, Serializer};
use tacho_record::{Given, RunKind, Verdict};
use thiserror::Error;

use crate::error::ConsoleError;
use crate::files::{is_plain, to_open};
use crate::regular;
use crate::running::Running;

/// Directories that are looked at, the last by name: names begin with their time.
const DIRECTORIES_MAX: usize = 5000;
/// A larger summary is none of ours.
const SUMMARY_BYTES_MAX: u64 = 256 << 20;
/// The file that makes a directory that of an ended run.
const SUMMARY: &str = "summary.json";

/// A run directory with its summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct PastRun {
    /// Its name.
    pub(crate) directory: String,
    /// Its summary; absent where none can be read.
    #[serde(flatten)]
    pub(crate) summary: Option<Summary>,
    /// Why there is no summary.
    pub(crate) error: Option<Unreadable>,
    /// It goes on: where it has no summary yet.
    pub(crate) running: Option<Running>,
    /// Files to open, the report first.
    pub(crate) files: Vec<&'static str>,
}

/// Why a directory has no summary that can be shown.
///
/// Its words are those of the list and of the API.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Unreadable {
    /// There is no file.
    #[error("no {SUMMARY}: it was killed, or is no run")]
    Missing,
    /// The system refuses to read it.
    #[error("{SUMMARY} cannot be read: {error}")]
    Io { error: String },
    /// It is too large to be a summary.
    #[error("{SUMMARY} has {bytes} bytes, which is no summary of ours")]
    TooLarge { bytes: u64 },
    /// It cannot be parsed.
    #[error("{SUMMARY} is damaged or of another version: {error}")]
    Damaged { error: String },
}

impl Serialize for Unreadable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The part of a run record that the list shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Summary {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Given::is_empty")]
    pub(crate) given: Given,
    pub(crate) started_at: String,
    pub(crate) scenario: String,
    pub(crate) kind: RunKind,
    pub(crate) verdict: Verdict,
    pub(crate) steps: usize,
    /// Of the step with most messages per second.
    pub(crate) tps: Option<f64>,
    pub(crate) e2e_p99_us: Option<u64>,
    pub(crate) cpu_percent: Option<f64>,
}

/// The part of `summary.json` that is read; files of other versions may lack most of it.
#[derive(Deserialize)]
struct RecordPart {
    name: String,
    #[serde(default)]
    given: Given,
    #[serde(default)]
    started_at: String,
    #[serde(default)]
    scenario: String,
    #[serde(default)]
    kind: RunKind,
    verdict: Verdict,
    #[serde(default)]
    steps: Vec<StepPart>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StepPart {
    tps: f64,
    latency_us: LatencyPart,
    cpu_percent: Option<f64>,
    broker_cpu_percent: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LatencyPart {
    p99: Option<u64>,
}

/// A folder of run directories; remembers summaries that have not changed.
#[derive(Clone, Debug)]
pub(crate) struct PastRuns {
    folder: Arc<Path>,
    known: Arc<Mutex<HashMap<String, Remembered>>>,
}

#[derive(Debug)]
struct Remembered {
    stamp: (SystemTime, u64),
    summary: Result<Summary, Unreadable>,
}

impl PastRuns {
    /// Of `folder`.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.into(), known: Arc::default() }
    }

    /// The folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.to_path_buf()
    }

    /// All of them, newest first; those without a readable time last.
    pub(crate) fn list(&self) -> Result<Vec<PastRun>, ConsoleError> {
        let entries = fs::read_dir(&self.folder)
            .map_err(|error| ConsoleError::Folder { folder: self.folder(), error })?;
        let mut names: Vec<String> = entries
            .flatten()
            .filter(|entry| entry.path().is_dir())
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_plain(name))
            .collect();
        names.sort_unstable_by(|left, right| right.cmp(left));
        names.truncate(DIRECTORIES_MAX);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|name, _| names.contains(name));
        let mut runs: Vec<PastRun> =
            names.into_iter().map(|name| self.run(name, &mut known)).collect();
        let time = |run: &PastRun| {
            let ended = run.summary.as_ref().map(|summary| summary.started_at.clone());
            ended.or_else(|| run.running.as_ref().map(|running| running.started_at.clone()))
        };
        // Stable: runs without a time stay in the order of names.
        runs.sort_by_key(|run| std::cmp::Reverse(time(run)));
        Ok(runs)
    }

    fn run(&self, directory: String, known: &mut HashMap<String, Remembered>) -> PastRun {
        let path = self.folder.join(&directory);
        let summary = stamp(&path.join(SUMMARY)).and_then(|stamp| {
            match known.get(&directory).filter(|known| known.stamp == stamp) {
                Some(known) => known.summary.clone(),
                None => {
                    let summary = read(&path.join(SUMMARY));
                    let remembered = Remembered { stamp, summary: summary.clone() };
                    known.insert(directory.clone(), remembered);
                    summary
                }
            }
        });
        let (summary, error) = match summary {
            Ok(summary) => (Some(summary), None),
            Err(error) => (None, Some(error)),
        };
        let running = if error.is_some() { Running::read(&path) } else { None };
        let error = error.filter(|_| running.is_none());
        PastRun { summary, error, running, files: to_open(&path), directory }
    }
}

/// The fingerprint of a file, or the reason why it is unusable.
fn stamp(path: &Path) -> Result<(SystemTime, u64), Unreadable> {
    let about = fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Unreadable::Missing,
        _ => Unreadable::Io { error: error.to_string() },
    })?;
    match about.len() {
        ..=SUMMARY_BYTES_MAX => {
            Ok((about.modified().unwrap_or(SystemTime::UNIX_EPOCH), about.len()))
        }
        bytes => Err(Unreadable::TooLarge { bytes }),
    }
}

fn read(path: &Path) -> Result<Summary, Unreadable> {
    let text = regular::read(path, SUMMARY_BYTES_MAX)
        .map_err(|error| Unreadable::Io { error: error.to_string() })?;
    let record: RecordPart = serde_json::from_slice(&text)
        .map_err(|error| Unreadable::Damaged { error: error.to_string() })?;
    let best = record.steps.iter().max_by(|left, right| left.tps.total_cmp(&right.tps));
    Ok(Summary {
        name: record.name,
        given: record.given,
        started_at: record.started_at,
        scenario: record.scenario,
        kind: record.kind,
        verdict: record.verdict,
        steps: record.steps.len(),
        tps: best.map(|step| step.tps),
        e2e_p99_us: best.and_then(|step| step.latency_us.p99),
        cpu_percent: best.and_then(|step| step.cpu_percent.or(step.broker_cpu_percent)),
    })
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn write(folder: &Path, name: &str, summary: Option<&str>) {
        fs::create_dir_all(folder.join(name)).expect("creates");
        if let Some(summary) = summary {
            fs::write(folder.join(name).join(SUMMARY), summary).expect("writes");
        }
    }

    #[test]
    fn newest_first_and_broken_ones_with_their_error() {
        let place = tempfile::tempdir().expect("temporary directory");
        let record = |time: &str, verdict: &str| {
            format!(
                r#"{{"name": "n{time}", "started_at": "{time}", "scenario": "s", "verdict": "{verdict}",
                "steps": [{{"tps": 5.5, "latency_us": {{"p99": 7}}}},
                          {{"tps": 9.5, "latency_us": {{"p99": 8}}, "cpu_percent": 50.5}}]}}"#
            )
        };
        let folder = place.path();
        write(folder, "a", Some(&record("2026-01-02T00:00:00Z", "ok")));
        write(folder, "b", Some(&record("2026-01-03T00:00:00Z", "not_steady")));
        write(folder, "killed", None);
        write(folder, "damaged", Some("{\"name\": "));
        write(folder, "a-fifo", None);
        for name in [SUMMARY, "running.json"] {
            let path = folder.join("a-fifo").join(name);
            mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("makes");
        }
        write(folder, ".hidden", None);
        fs::write(folder.join("file"), "").expect("writes");
        let runs = PastRuns::new(folder);
        let list = runs.list().expect("lists");
        let names: Vec<&str> = list.iter().map(|run| run.directory.as_str()).collect();
        assert_eq!(names, ["b", "a", "killed", "damaged", "a-fifo"]);
        let summary = list[0].summary.as_ref().expect("readable");
        assert_eq!((summary.verdict, summary.steps), (Verdict::NotSteady, 2));
        assert_eq!((summary.tps, summary.e2e_p99_us), (Some(9.5), Some(8)));
        assert_eq!(summary.cpu_percent, Some(50.5));
        assert_eq!(list[2].error, Some(Unreadable::Missing));
        let damaged = list[3].error.as_ref().expect("an error");
        assert!(matches!(damaged, Unreadable::Damaged { .. }), "{damaged:?}");
        let Some(Unreadable::Io { error }) = &list[4].error else { panic!("{:?}", list[4]) };
        assert!(error.contains("not a regular file"), "{error}");
        let json = serde_json::to_value(&list[2]).expect("serialises");
        assert_eq!(json["error"], "no summary.json: it was killed, or is no run");
        // A summary that appears is seen.
        write(folder, "killed", Some(&record("2026-01-04T00:00:00Z", "ok")));
        assert_eq!(runs.list().expect("lists")[0].directory, "killed");
        assert!(PastRuns::new(&folder.join("missing")).list().is_err());
    }
}
