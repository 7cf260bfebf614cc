//! Requests that only look: lists, runs, queue, comparisons, trends.

use std::path::PathBuf;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tacho_http::Problem;
use tacho_record::{Finding, RunRecord, Severity};
use tacho_report::Lang;

use super::again::recorded_words;
use super::answers::ApiError;
use super::state::{Api, blocking};
use crate::files::{FileList, RunFile, list as list_files};
use crate::launch::Launched;
use crate::queue::LOG;
use crate::regular;
use crate::request::{RunRequest, shown};
use crate::run_state::RunState;
use crate::runs::{RunQuery, RunRow, SortKey, record_problem};
use crate::told::{ToldProblem, in_chinese};
use crate::trends::trend;

/// A larger summary is none of ours.
const SUMMARY_BYTES_MAX: u64 = 256 << 20;
/// Of what a run has said, the end.
const LOG_BYTES_MAX: u64 = 1 << 20;
/// Lines of that in an answer.
const LOG_LINES: usize = 20;
/// Runs that are compared at most.
const COMPARED_MAX: usize = 5;

/// A run with all there is to say about it.
#[derive(Serialize)]
struct RunDetail {
    #[serde(flatten)]
    row: RunRow,
    summary: Option<Value>,
    request: Option<RunRequest>,
    command_line: Option<String>,
    problems: Vec<ToldProblem>,
    /// What the record says, in each language.
    words: Option<RunWords>,
    scenario_toml: Option<String>,
    files: Vec<RunFile>,
    /// There are more files than are listed.
    files_cut: bool,
    /// The baseline of its scenario, where that is another run.
    baseline_run: Option<String>,
}

#[derive(Serialize)]
struct RunWords {
    en: WordsOf,
    zh: WordsOf,
}

#[derive(Serialize)]
struct WordsOf {
    reasons: Vec<String>,
    findings: Vec<FindingText>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct FindingText {
    severity: Severity,
    text: String,
}

/// What has the machine, and what waits for it.
#[derive(Serialize)]
struct QueueView {
    running: Option<RunRow>,
    queued: Vec<RunRow>,
    held_by: Option<String>,
    /// The same in Chinese.
    held_by_zh: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct CompareQuery {
    #[serde(default)]
    ids: String,
}

#[derive(Deserialize)]
pub(crate) struct TrendQuery {
    #[serde(default)]
    scenario: String,
    #[serde(default)]
    figure: String,
    #[serde(default)]
    target: String,
}

pub(crate) async fn list(
    State(api): State<Api>,
    query: Result<Query<RunQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(query) = query.map_err(|error| ApiError::about("query", error.body_text()))?;
    let page = move || {
        let page = api.with_rows(|rows| Ok(query.page(rows)?))?;
        page.mapped(|row| api.placed(row))
    };
    Ok(Json(blocking(page).await?).into_response())
}

pub(crate) async fn run(
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    Ok(Json(blocking(move || detail(&api, &id)).await?).into_response())
}

fn detail(api: &Api, id: &str) -> Result<RunDetail, ApiError> {
    let directory = api.directory(id)?;
    let row = api.row(id)?;
    let launched = Launched::read(&directory);
    let summary = match row.state {
        RunState::Finished => {
            let text = regular::read(&directory.join("summary.json"), SUMMARY_BYTES_MAX)?;
            serde_json::from_slice(&text).ok()
        }
        _ => None,
    };
    let mut problems = Vec::new();
    if row.state == RunState::Broken {
        let said = last_lines(&directory.join(LOG));
        let message = said.or_else(|| record_problem(&directory)).unwrap_or_default();
        problems.push(Problem { field: None, message }.into());
    }
    let command_line = match &launched {
        Some(launched) => Some(shown(&launched.arguments)),
        None => recorded_words(&directory).map(|words| shown(&words)),
    };
    let request = launched.map(|launched| launched.request);
    let record = summary.as_ref().and_then(|summary| RunRecord::deserialize(summary).ok());
    let words = record
        .map(|record| RunWords { en: words(Lang::En, &record), zh: words(Lang::Zh, &record) });
    let scenario = regular::read(&directory.join("scenario.toml"), LOG_BYTES_MAX).ok();
    let scenario_toml = scenario.and_then(|text| String::from_utf8(text).ok());
    let is_baseline =
        |other: &&RunRow| other.baseline && other.scenario == row.scenario && other.id != id;
    let baseline_run = api.with_rows(|mut rows| {
        Ok(Iterator::find(&mut rows, is_baseline).map(|baseline| baseline.id.clone()))
    })?;
    let FileList { files, is_cut: files_cut } = list_files(&directory);
    Ok(RunDetail {
        row,
        summary,
        request,
        command_line,
        problems,
        words,
        scenario_toml,
        files,
        files_cut,
        baseline_run,
    })
}

/// Reasons, findings and notes of a record.
fn words(lang: Lang, record: &RunRecord) -> WordsOf {
    let finding =
        |finding: &Finding| FindingText { severity: finding.severity, text: lang.finding(finding) };
    WordsOf {
        reasons: lang.reasons(&record.reasons, &record.causes),
        findings: record.findings.iter().map(finding).collect(),
        notes: match &record.remarks[..] {
            [] => record.notes.clone(),
            remarks => remarks.iter().map(|remark| lang.remark(remark)).collect(),
        },
    }
}

/// The end of what a run has said, from its error on where it names one.
fn last_lines(log: &std::path::Path) -> Option<String> {
    let text = regular::read(log, LOG_BYTES_MAX).ok()?;
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.iter().rposition(|line| line.starts_with("error:"));
    let from = from.unwrap_or(0).max(lines.len().saturating_sub(LOG_LINES));
    let said = lines.get(from..)?.join("\n");
    (!said.trim().is_empty()).then_some(said)
}

pub(crate) async fn queue(State(api): State<Api>) -> Result<Response, ApiError> {
    let view = blocking(move || {
        api.refreshed()?;
        let (current, waiting) = (api.queue()?.current(), api.queue()?.waiting());
        let held_by = api.queue()?.held_by().map(|holder| holder.to_string());
        // Of those in this folder that were started elsewhere any one.
        let going = || {
            let is_running = |row: &&RunRow| row.state == RunState::Running;
            api.with_rows(|mut rows| Ok(Iterator::find(&mut rows, is_running).cloned()))
        };
        let running = match current {
            Some(id) => Some(api.row(&id)?),
            None => going()?,
        };
        // One that has just begun is in the queue no more.
        let queued = waiting.iter().filter_map(|id| api.row(id).ok()).collect();
        let held_by_zh = held_by.as_deref().and_then(in_chinese);
        Ok(QueueView { running, queued, held_by, held_by_zh })
    });
    Ok(Json(view.await?).into_response())
}

pub(crate) async fn compare(
    State(api): State<Api>,
    Query(query): Query<CompareQuery>,
) -> Result<Response, ApiError> {
    let comparison = blocking(move || {
        let ids: Vec<&str> = query.ids.split(',').filter(|id| !id.is_empty()).collect();
        if !(2..=COMPARED_MAX).contains(&ids.len()) {
            return Err(ApiError::about("ids", format!("name 2 to {COMPARED_MAX} runs")));
        }
        let directories: Vec<PathBuf> =
            ids.into_iter().map(|id| api.directory(id)).collect::<Result<_, _>>()?;
        api.toolbox().compare(&directories).map_err(|why| ApiError::about("ids", why))
    });
    Ok(Json(comparison.await?).into_response())
}

pub(crate) async fn trends(
    State(api): State<Api>,
    Query(query): Query<TrendQuery>,
) -> Result<Response, ApiError> {
    let name = if query.figure.is_empty() { "p99" } else { &query.figure };
    let figures =
        "there are p99, achieved_tps, cpu_percent, cpu_75_tps, loss_percent and duration_s";
    let key = SortKey::named(name).ok_or_else(|| {
        ApiError::about("figure", format!("there is no figure '{name}'; {figures}"))
    })?;
    if query.scenario.is_empty() {
        return Err(ApiError::about("scenario", "name a scenario"));
    }
    let found = blocking(move || {
        api.with_rows(|rows| Ok(trend(rows, (&query.scenario, &query.target), key)))
    });
    Ok(Json(found.await?).into_response())
}
