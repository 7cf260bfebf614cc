//! One run as lists show it, read from its directory.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tacho_record::{Given, RunKind, Timestamp, Verdict};
use tacho_report::Lang;

use super::notes::RunNotes;
use crate::launch::Launched;
use crate::progress_file::RunProgress;
use crate::regular;
use crate::run_state::RunState;
use crate::running::Running;

/// A larger summary is none of ours.
const SUMMARY_BYTES_MAX: u64 = 256 << 20;
/// The file that makes a directory that of an ended run.
const SUMMARY: &str = "summary.json";
/// The CPU at which a load is recommended.
const RECOMMENDED_AT: &str = "cpu<=75%";

/// A text in both languages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BothLanguages {
    en: String,
    zh: String,
}

/// A run as lists show it. Figures are those of the step with most messages per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RunRow {
    /// Name of its directory.
    pub(crate) id: String,
    /// What the user calls it, else the name of its directory.
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) state: RunState,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) verdict_text: Option<BothLanguages>,
    pub(crate) scenario: String,
    pub(crate) target: String,
    /// Of the program that made it.
    pub(crate) version: String,
    pub(crate) started: Option<String>,
    pub(crate) ended: Option<String>,
    pub(crate) duration_s: Option<f64>,
    pub(crate) attempted_tps: Option<f64>,
    pub(crate) achieved_tps: Option<f64>,
    pub(crate) loss_percent: Option<f64>,
    pub(crate) e2e_latency_us_p99: Option<u64>,
    pub(crate) cpu_percent: Option<f64>,
    pub(crate) cpu_75_tps: Option<f64>,
    pub(crate) tags: Vec<String>,
    pub(crate) starred: bool,
    /// Others of its scenario are seen against it.
    pub(crate) baseline: bool,
    pub(crate) note: String,
    pub(crate) has_report: bool,
    /// How far it is, while it goes on.
    pub(crate) progress: Option<RunProgress>,
    /// Place in the queue, from 1.
    pub(crate) position: Option<usize>,
}

/// The part of `summary.json` that is read; files of other versions may lack most of it.
#[derive(Deserialize)]
struct RowRecord {
    #[serde(default)]
    tool_version: String,
    #[serde(default)]
    given: Given,
    #[serde(default)]
    started_at: String,
    #[serde(default)]
    elapsed_s: f64,
    #[serde(default)]
    scenario: String,
    #[serde(default)]
    kind: RunKind,
    verdict: Verdict,
    #[serde(default)]
    target: RowTarget,
    #[serde(default)]
    targets: Vec<RowTarget>,
    #[serde(default)]
    steps: Vec<RowStep>,
    #[serde(default)]
    recommendations: Vec<RowRecommendation>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RowTarget {
    kind: String,
    broker: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RowStep {
    tps: f64,
    offered_in_per_s: f64,
    offered_out_per_s: f64,
    attempted_in_per_s: f64,
    expected: u64,
    lost: u64,
    latency_us: RowLatency,
    cpu_percent: Option<f64>,
    broker_cpu_percent: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RowLatency {
    p99: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RowRecommendation {
    objective: String,
    tps: Option<f64>,
}

impl RunRow {
    /// The row of the run in `directory`, whose name is `id`; what it lacks is said by its state.
    pub(crate) fn read(directory: &Path, id: &str) -> Self {
        let notes = RunNotes::read(directory);
        let mut row = Self { id: id.to_owned(), name: id.to_owned(), ..Self::default() };
        match record(directory) {
            Ok(record) => row.tell_record(record),
            Err(_) => row.tell_course(directory),
        }
        row.has_report = directory.join("report.html").is_file();
        row.tags = notes.tags;
        row.starred = notes.starred;
        row.baseline = notes.baseline;
        if let Some(note) = notes.note {
            row.note = note;
        }
        row
    }

    /// Whether it may change without a change in its directory: by a process that ends.
    pub(crate) const fn is_unfinished(&self) -> bool {
        matches!(self.state, RunState::Running | RunState::Queued)
    }

    fn tell_record(&mut self, record: RowRecord) {
        self.state = RunState::Finished;
        self.kind = record.kind.name().to_owned();
        self.verdict = Some(record.verdict);
        let is_single = record.kind == RunKind::Run;
        let meaning = |lang: Lang| lang.meaning(record.verdict, is_single).to_owned();
        self.verdict_text = Some(BothLanguages { en: meaning(Lang::En), zh: meaning(Lang::Zh) });
        self.target = target(&record);
        self.version = record.tool_version;
        self.scenario = record.scenario;
        if !record.given.name.is_empty() {
            self.name = record.given.name;
        }
        self.note = record.given.note;
        let started = Timestamp::parse(&record.started_at);
        self.ended = started.map(|started| started.after(record.elapsed_s).rfc3339());
        self.started = (!record.started_at.is_empty()).then_some(record.started_at);
        self.duration_s = (record.elapsed_s > 0.0).then_some(record.elapsed_s);
        let best = record.steps.iter().max_by(|left, right| left.tps.total_cmp(&right.tps));
        if let Some(step) = best {
            self.achieved_tps = Some(step.tps);
            self.attempted_tps = step.attempted_tps();
            self.loss_percent =
                (step.expected > 0).then(|| 100.0 * step.lost as f64 / step.expected as f64);
            self.e2e_latency_us_p99 = step.latency_us.p99;
            self.cpu_percent = step.cpu_percent.or(step.broker_cpu_percent);
        }
        let at_75 = record.recommendations.iter().find(|one| one.objective == RECOMMENDED_AT);
        self.cpu_75_tps = at_75.and_then(|one| one.tps);
    }

    /// Of a run without a record: whether it goes on, was canceled, or broke off.
    fn tell_course(&mut self, directory: &Path) {
        if let Some(launched) = Launched::read(directory) {
            self.tell_request(&launched);
        }
        if let Some(running) = Running::read(directory) {
            self.state = RunState::Running;
            self.kind = running.kind;
            self.scenario = running.scenario;
            self.started = Some(running.started_at);
            self.progress = RunProgress::read(directory);
        }
    }
}

impl RunRow {
    /// What the console was asked for.
    fn tell_request(&mut self, launched: &Launched) {
        let request = &launched.request;
        self.state = launched.state();
        self.kind = request.kind().to_owned();
        self.target = request.target();
        self.scenario = launched.scenario();
        if let Some(name) = request.name.as_ref().filter(|name| !name.is_empty()) {
            self.name.clone_from(name);
        }
        self.note = request.note.clone().unwrap_or_default();
    }
}

impl RowStep {
    /// Messages in and out per second that the clients' attempts imply.
    fn attempted_tps(&self) -> Option<f64> {
        let per_message = self.offered_out_per_s / self.offered_in_per_s;
        let attempted = self.attempted_in_per_s * (1.0 + per_message);
        attempted.is_finite().then_some(attempted)
    }
}

/// The brokers under test, in a few words.
fn target(record: &RowRecord) -> String {
    let word = |target: &RowTarget| match target.kind.as_str() {
        "built_in" => "builtin".to_owned(),
        _ => target.broker.clone(),
    };
    let mut words: Vec<String> = record.targets.iter().map(word).collect();
    words.dedup();
    match words.is_empty() {
        true => word(&record.target),
        false => words.join(", "),
    }
}

fn record(directory: &Path) -> Result<RowRecord, String> {
    let path = directory.join(SUMMARY);
    let text = regular::read(&path, SUMMARY_BYTES_MAX).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("there is no {SUMMARY}: the run was killed, or this is no run")
        }
        _ => format!("{SUMMARY} cannot be read: {error}"),
    })?;
    serde_json::from_slice(&text)
        .map_err(|error| format!("{SUMMARY} is damaged or of another version: {error}"))
}

/// Why a run has no record that can be read; `None` where it has one.
pub(crate) fn record_problem(directory: &Path) -> Option<String> {
    record(directory).err()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::process::ProcessId;
    use crate::running::RunningFile;

    #[test]
    fn figures_are_those_of_the_step_with_most_messages() {
        let place = tempfile::tempdir().expect("a folder");
        let record = r#"{"tool_version": "1.2.3", "started_at": "2026-01-02T03:04:05.000Z",
            "elapsed_s": 2.5, "scenario": "symmetric", "kind": "ladder", "verdict": "not_steady",
            "given": {"name": "Monday", "note": "said at the start"},
            "target": {"kind": "url", "broker": "mqtt://a:1883"},
            "recommendations": [{"objective": "p99<10ms", "tps": 1}, {"objective": "cpu<=75%", "tps": 42.5}],
            "steps": [{"tps": 5, "latency_us": {"p99": 7}},
                {"tps": 9, "offered_in_per_s": 4, "offered_out_per_s": 8, "attempted_in_per_s": 4,
                 "expected": 200, "lost": 3, "latency_us": {"p99": 8}, "cpu_percent": 50.5}]}"#;
        fs::write(place.path().join(SUMMARY), record).expect("writes");
        let row = RunRow::read(place.path(), "x");
        assert_eq!(
            (row.state, row.name.as_str(), row.kind.as_str()),
            (RunState::Finished, "Monday", "ladder")
        );
        assert_eq!(
            (row.achieved_tps, row.attempted_tps, row.loss_percent),
            (Some(9.0), Some(12.0), Some(1.5))
        );
        assert_eq!(
            (row.e2e_latency_us_p99, row.cpu_percent, row.cpu_75_tps),
            (Some(8), Some(50.5), Some(42.5))
        );
        assert_eq!(row.ended.as_deref(), Some("2026-01-02T03:04:07.500Z"));
        assert_eq!((row.target.as_str(), row.version.as_str()), ("mqtt://a:1883", "1.2.3"));
        assert_eq!((row.note.as_str(), row.has_report), ("said at the start", false));
        let text = row.verdict_text.expect("has words");
        assert!(text.en.contains("transient") && !text.zh.is_empty());
        let notes = RunNotes { note: Some("said later".to_owned()), ..RunNotes::default() };
        notes.write(place.path()).expect("writes");
        assert_eq!(RunRow::read(place.path(), "x").note, "said later");
    }

    #[test]
    fn a_run_without_a_record_goes_on_or_is_broken() {
        let place = tempfile::tempdir().expect("a folder");
        assert_eq!(RunRow::read(place.path(), "x").state, RunState::Broken);
        assert!(record_problem(place.path()).is_some_and(|why| why.contains("was killed")));
        let running = Running {
            process: ProcessId::own(),
            kind: "suite".to_owned(),
            started_at: "now".to_owned(),
            ..Running::default()
        };
        let file = RunningFile::create(place.path(), &running).expect("writes");
        let row = RunRow::read(place.path(), "x");
        assert_eq!((row.state, row.kind.as_str()), (RunState::Running, "suite"));
        drop(file);
        fs::write(place.path().join(SUMMARY), "{\"verdict\": ").expect("writes");
        assert_eq!(RunRow::read(place.path(), "x").state, RunState::Broken);
        assert!(record_problem(place.path()).is_some_and(|why| why.contains("damaged")));
    }
}
