//! Requests for runs: what they would do, and their way into the queue.

use std::fs;
use std::path::{Path as FilePath, PathBuf};

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tacho_http::Problem;

use super::answers::{ApiError, body, json as parsed};
use super::state::{Api, blocking};
use crate::launch::Launched;
use crate::request::{RequestLine, RunRequest};
use crate::runs::RunNotes;
use crate::toolbox::{ToolPreview, ToolProblem};
use crate::uploads::UploadKind;

/// Where a run keeps the files that it was uploaded with.
const INPUT: &str = "input";

/// A run that was taken.
#[derive(Debug, Serialize)]
pub(crate) struct Taken {
    id: String,
    state: &'static str,
    position: Option<usize>,
}

#[derive(Deserialize)]
pub(crate) struct UploadQuery {
    #[serde(default)]
    name: String,
}

pub(crate) async fn preview(
    State(api): State<Api>,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let request: RunRequest = parsed(&body(bytes)?)?;
    let answer = blocking(move || {
        let line = match line(&api, &request) {
            Ok(line) => line,
            // A request that makes no command line is previewed as such.
            Err(problem) => {
                let problems = [problem];
                return Ok(json!({
                    "command_line": null, "scenario_toml": null, "offered": null, "warnings": [],
                    "problems": problems,
                }));
            }
        };
        let preview = api.toolbox().preview(&line.words());
        let problems = in_fields(&line, &preview.problems);
        let ToolPreview { scenario_toml, offered, warnings, .. } = preview;
        Ok(json!({
            "command_line": line.shown(), "scenario_toml": scenario_toml, "offered": offered,
            "warnings": warnings, "problems": problems,
        }))
    });
    Ok(Json(answer.await?).into_response())
}

pub(crate) async fn start(
    State(api): State<Api>,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let request: RunRequest = parsed(&body(bytes)?)?;
    let taken = blocking(move || {
        let input = match &request.upload {
            Some(id) => Some(api.uploads().beside(id, &request.data)?),
            None => None,
        };
        submit(&api, request, input.as_deref())
    });
    Ok((StatusCode::CREATED, Json(taken.await?)).into_response())
}

/// The same run once more.
pub(super) fn submit_again(api: &Api, id: &str) -> Result<Taken, ApiError> {
    let directory = api.directory(id)?;
    let launched = Launched::read(&directory).ok_or_else(|| {
        ApiError::conflict(
            "the run was not started from the console: its command line starts it again",
        )
    })?;
    let input =
        launched.request.upload.as_ref().map(|_| directory.join(INPUT).join(launched.scenario()));
    submit(api, launched.request, input.as_deref())
}

/// Puts a run into the queue; `input` is its uploaded file, beside which its data is.
fn submit(api: &Api, request: RunRequest, input: Option<&FilePath>) -> Result<Taken, ApiError> {
    let line = request.line(input.map(|path| path.to_string_lossy()).as_deref())?;
    let problems = in_fields(&line, &api.toolbox().preview(&line.words()).problems);
    if !problems.is_empty() {
        return Err(ApiError::of(problems));
    }
    let queue = api.queue()?;
    let name =
        [&request.name, &request.scenario].into_iter().flatten().find(|name| !name.is_empty());
    let own = input.and_then(FilePath::file_stem).map(|stem| stem.to_string_lossy().into_owned());
    let reserved = queue.reserve(name.or(own.as_ref()).map_or("run", String::as_str))?;
    let file = match input {
        None => None,
        Some(input) => Some(copy(input, &reserved.directory.join(INPUT))?),
    };
    let file = file.map(|file| file.to_string_lossy().into_owned());
    let arguments = request.line(file.as_deref())?.words();
    if !request.tags.is_empty() {
        let tags = request.tags.clone();
        RunNotes { tags, ..RunNotes::default() }.write(&reserved.directory)?;
    }
    let id = queue.add(reserved, Launched { request, arguments, ..Launched::default() })?;
    api.refreshed()?;
    let position = queue.waiting().iter().position(|waiting| *waiting == id).map(|at| at + 1);
    Ok(Taken { state: if position.is_some() { "queued" } else { "running" }, id, position })
}

/// Copies an uploaded file, and what is beside it, into the directory of its run.
fn copy(input: &FilePath, directory: &FilePath) -> Result<PathBuf, ApiError> {
    let (Some(from), Some(name)) = (input.parent(), input.file_name()) else {
        return Err(ApiError::internal("the uploaded file has no name"));
    };
    let whole = std::path::absolute(directory)?;
    fs::create_dir_all(&whole)?;
    for entry in fs::read_dir(from)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            fs::copy(entry.path(), whole.join(entry.file_name()))?;
        }
    }
    Ok(whole.join(name))
}

/// The command line of a request, for its preview.
fn line(api: &Api, request: &RunRequest) -> Result<RequestLine, Problem> {
    let file = match &request.upload {
        None => None,
        Some(id) => {
            let beside = api.uploads().beside(id, &request.data);
            Some(beside.map_err(|error| Problem::new("upload", error.to_string()))?)
        }
    };
    request.line(file.map(|path| path.to_string_lossy().into_owned()).as_deref())
}

/// Problems of a command line as those of the request that it comes from.
fn in_fields(line: &RequestLine, problems: &[ToolProblem]) -> Vec<Problem> {
    let of = |problem: &ToolProblem| Problem {
        field: line.field(problem.flag.as_deref(), &problem.message),
        message: problem.message.clone(),
    };
    problems.iter().map(of).collect()
}

pub(crate) async fn upload(
    State(api): State<Api>,
    Query(query): Query<UploadQuery>,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let bytes = body(bytes)?;
    let answer = blocking(move || {
        let upload = api.uploads().keep(&query.name, &bytes)?;
        let inspection = match upload.kind {
            UploadKind::Data => Default::default(),
            _ => api.toolbox().inspect(&upload.path),
        };
        let problem =
            |problem: &ToolProblem| Problem { field: None, message: problem.message.clone() };
        let problems: Vec<Problem> = inspection.problems.iter().map(problem).collect();
        Ok(json!({
            "upload": upload.id, "name": upload.name, "kind": upload.kind,
            "variables": inspection.variables, "groups": inspection.groups, "problems": problems,
        }))
    });
    Ok((StatusCode::CREATED, Json(answer.await?)).into_response())
}
