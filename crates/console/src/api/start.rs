//! Requests for runs: what they would do, and their way into the queue.

use std::fs;
use std::path::{Path as FilePath, PathBuf};

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tacho_http::Problem;

use super::answers::{ApiError, body, json as parsed};
use super::state::{Api, blocking};
use crate::launch::Launched;
use crate::request::{RequestLine, RunRequest};
use crate::runs::RunNotes;
use crate::table::look;
use crate::told::told;
use crate::toolbox::{ToolPreview, ToolProblem};
use crate::uploads::{Upload, UploadKind};

/// Where a run keeps the files that it was uploaded with.
pub(super) const INPUT: &str = "input";

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
        let (line, file) = match line(&api, &request) {
            Ok(both) => both,
            // A request that makes no command line is previewed as such.
            Err(problem) => {
                let problems = told([problem]);
                return Ok(json!({
                    "command_line": null, "scenario_toml": null, "offered": null, "variables": null,
                    "warnings": [], "warnings_zh": [], "problems": problems,
                }));
            }
        };
        let preview = api.toolbox().preview(&line.words());
        let problems = told(problems(&api, file.as_deref(), &line, &preview));
        let ToolPreview { scenario_toml, offered, variables, warnings, .. } = preview;
        let (warnings, warnings_zh): (Vec<String>, Vec<String>) =
            warnings.into_iter().map(|warning| (warning.en, warning.zh)).unzip();
        Ok(json!({
            "command_line": line.shown(), "scenario_toml": scenario_toml, "offered": offered,
            "variables": variables, "warnings": warnings, "warnings_zh": warnings_zh,
            "problems": problems,
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

/// Puts a run into the queue; `input` is its uploaded file, beside which its data is.
pub(super) fn submit(
    api: &Api,
    request: RunRequest,
    input: Option<&FilePath>,
) -> Result<Taken, ApiError> {
    let line = request.line(input.map(|path| path.to_string_lossy()).as_deref())?;
    let preview = api.toolbox().preview(&line.words());
    let problems = problems(api, input, &line, &preview);
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
    let launched = Launched { request, arguments, ..Launched::default() };
    taken(api, queue.add(reserved, launched)?)
}

/// A run that was put into the queue.
pub(super) fn taken(api: &Api, id: String) -> Result<Taken, ApiError> {
    api.refreshed()?;
    let waiting = api.queue()?.waiting();
    let position = waiting.iter().position(|waiting| *waiting == id).map(|at| at + 1);
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

/// The command line of a request, for its preview, and the uploaded file that it runs.
fn line(api: &Api, request: &RunRequest) -> Result<(RequestLine, Option<PathBuf>), Problem> {
    let file = match &request.upload {
        None => None,
        Some(id) => {
            let beside = api.uploads().beside(id, &request.data);
            Some(beside.map_err(|error| Problem::new("upload", error.to_string()))?)
        }
    };
    let shown = file.as_ref().map(|path| path.to_string_lossy());
    Ok((request.line(shown.as_deref())?, file))
}

/// Problems of a command line as those of the request that it comes from, which runs an uploaded
/// `file`. Of a plan without its data files those alone are named: all others come of that.
fn problems(
    api: &Api,
    file: Option<&FilePath>,
    line: &RequestLine,
    preview: &ToolPreview,
) -> Vec<Problem> {
    let missing = match file {
        Some(file) if !preview.problems.is_empty() => api.toolbox().inspect(file).missing,
        _ => Vec::new(),
    };
    match missing.is_empty() {
        true => in_fields(line, &preview.problems, file.and_then(FilePath::parent)),
        false => missing.into_iter().map(|one| Problem::new("data", one)).collect(),
    }
}

/// The same, each with its field; files are called by their names, without the `folder` of uploads.
fn in_fields(
    line: &RequestLine,
    problems: &[ToolProblem],
    folder: Option<&FilePath>,
) -> Vec<Problem> {
    let of = |problem: &ToolProblem| Problem {
        field: line.field(problem.flag.as_deref(), &problem.message),
        message: without_folder(&problem.message, folder),
    };
    problems.iter().map(of).collect()
}

/// A message in which files of a folder are called by their names.
pub(super) fn without_folder(message: &str, folder: Option<&FilePath>) -> String {
    let Some(folder) = folder else { return message.to_owned() };
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    [whole.as_path(), folder].iter().fold(message.to_owned(), |message, folder| {
        message.replace(&format!("{}/", folder.display()), "")
    })
}

pub(crate) async fn upload(
    State(api): State<Api>,
    Query(query): Query<UploadQuery>,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let bytes = body(bytes)?;
    let answer = blocking(move || {
        let upload = api.uploads().keep(&query.name, &bytes)?;
        Ok(upload_answer(&api, &upload))
    });
    Ok((StatusCode::CREATED, Json(answer.await?)).into_response())
}

/// Data files that are to be beside a plan.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct InspectRequest {
    data: Vec<String>,
}

/// Looks at an uploaded plan once more, with its data files.
pub(crate) async fn inspect(
    State(api): State<Api>,
    Path(id): Path<String>,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let request: InspectRequest = parsed(&body(bytes)?)?;
    let answer = blocking(move || {
        api.uploads().beside(&id, &request.data)?;
        Ok(inspected(&api, &api.uploads().find(&id)?))
    });
    Ok(Json(answer.await?).into_response())
}

/// What a plan or scenario file has.
fn inspected(api: &Api, upload: &Upload) -> Value {
    let inspection = api.toolbox().inspect(&upload.path);
    let folder = upload.path.parent();
    let said = inspection.problems.iter().map(|problem| without_folder(&problem.message, folder));
    // Of a plan without its data files those alone are named.
    let problems: Vec<Problem> = match inspection.missing.is_empty() {
        true => said.map(about_file).collect(),
        false => inspection.missing.iter().cloned().map(about_file).collect(),
    };
    let bytes = fs::metadata(&upload.path).map(|about| about.len()).ok();
    json!({
        "upload": upload.id, "name": upload.name, "kind": upload.kind, "bytes": bytes,
        "variables": inspection.variables, "groups": inspection.groups, "files": inspection.files,
        "problems": told(problems),
    })
}

fn about_file(message: String) -> Problem {
    Problem { field: None, message }
}

/// What an uploaded file is and has.
pub(super) fn upload_answer(api: &Api, upload: &Upload) -> Value {
    if upload.kind != UploadKind::Data {
        return inspected(api, upload);
    }
    let bytes = fs::read(&upload.path).unwrap_or_default();
    let (table, problems) = look(&upload.name, &bytes);
    json!({
        "upload": upload.id, "name": upload.name, "kind": upload.kind, "bytes": bytes.len(),
        "table": table, "problems": told(problems.into_iter().map(about_file)),
    })
}
