//! Runs made again: as they were, or as a request that can be changed.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tacho_http::Problem;

use super::answers::ApiError;
use super::start::{INPUT, Taken, submit, taken, upload_answer};
use super::state::Api;
use crate::launch::Launched;
use crate::regular;
use crate::request::RunRequest;
use crate::toolbox::{ToolProblem, ToolRepeat};
use crate::uploads::Upload;

/// A larger record is none of ours.
const RECORD_BYTES_MAX: u64 = 256 << 20;
/// A larger scenario file is none of ours.
const SCENARIO_BYTES_MAX: u64 = 20 << 20;
/// The scenario as it ran.
const SCENARIO: &str = "scenario.toml";

/// A request to begin with, of an earlier run.
#[derive(Serialize)]
pub(super) struct RunDraft {
    request: RunRequest,
    /// Files that it names, uploaded anew.
    uploads: Vec<Value>,
    /// Flags of the earlier run for which requests have no field.
    left_out: Vec<String>,
}

/// How a run that was not made of a request is made again.
struct Recorded {
    words: Vec<String>,
    /// The scenario file that takes the place of its scenario.
    file: Option<PathBuf>,
    repeat: ToolRepeat,
}

/// The same run once more.
pub(super) fn submit_again(api: &Api, id: &str) -> Result<Taken, ApiError> {
    let directory = api.directory(id)?;
    let launched = Launched::read(&directory);
    match launched.filter(|launched| !launched.is_recorded) {
        None => submit_recorded(api, id, &directory),
        Some(launched) => {
            let upload = launched.request.upload.as_ref();
            let input = upload.map(|_| directory.join(INPUT).join(launched.scenario()));
            submit(api, launched.request, input.as_deref())
        }
    }
}

/// The request of a run, with its files uploaded anew, to be changed and sent again.
pub(super) fn draft(api: &Api, id: &str) -> Result<RunDraft, ApiError> {
    let directory = api.directory(id)?;
    let launched = Launched::read(&directory);
    if let Some(launched) = launched.filter(|launched| !launched.is_recorded) {
        let mut draft = RunDraft {
            request: launched.request.clone(),
            uploads: Vec::new(),
            left_out: Vec::new(),
        };
        if draft.request.upload.is_some() {
            draft.take_inputs(api, &directory.join(INPUT), &launched.scenario())?;
        }
        return Ok(draft);
    }
    let Recorded { file, repeat, .. } = recorded(api, id, &directory)?;
    let request: RunRequest = serde_json::from_value(repeat.request)
        .map_err(|error| ApiError::internal(error.to_string()))?;
    let mut draft = RunDraft { request, uploads: Vec::new(), left_out: repeat.left_out };
    if let Some(file) = file {
        let name = file_name(&api.row(id)?.scenario);
        draft.request.upload = Some(draft.take(api, &file, &name)?.id);
    }
    Ok(draft)
}

impl RunDraft {
    /// Uploads a plan or scenario file, and the data beside it.
    fn take_inputs(&mut self, api: &Api, from: &Path, main: &str) -> Result<(), ApiError> {
        let names = fs::read_dir(from).map_err(|error| {
            ApiError::conflict(format!(
                "the files that were uploaded for the run are gone: {error}"
            ))
        })?;
        self.request.upload = Some(self.take(api, &from.join(main), main)?.id);
        self.request.data.clear();
        for name in names.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
            if name != main {
                let data = self.take(api, &from.join(&name), &name)?.id;
                self.request.data.push(data);
            }
        }
        Ok(())
    }

    fn take(&mut self, api: &Api, file: &Path, name: &str) -> Result<Upload, ApiError> {
        let upload = api.uploads().keep(name, &regular::read(file, SCENARIO_BYTES_MAX)?)?;
        self.uploads.push(upload_answer(api, &upload));
        Ok(upload)
    }
}

/// A run of a recorded command line.
fn submit_recorded(api: &Api, id: &str, directory: &Path) -> Result<Taken, ApiError> {
    let Recorded { words, file, repeat } = recorded(api, id, directory)?;
    let mut problems = repeat.problems;
    let preview = api.toolbox().preview(&repeat.words);
    problems.extend(preview.problems);
    if !problems.is_empty() {
        return Err(conflict(&problems));
    }
    let request: RunRequest = serde_json::from_value(repeat.request)
        .map_err(|error| ApiError::internal(error.to_string()))?;
    let row = api.row(id)?;
    let name = request.name.as_deref().unwrap_or(&row.scenario);
    let reserved = api.queue()?.reserve(name)?;
    let arguments = match file {
        None => repeat.words,
        Some(file) => {
            let place = std::path::absolute(reserved.directory.join(INPUT))?;
            fs::create_dir_all(&place)?;
            let place = place.join(file_name(&row.scenario));
            fs::copy(&file, &place)?;
            let again = api.toolbox().repeat(&words, Some(&place.to_string_lossy()), true);
            again.map_err(ApiError::conflict)?.words
        }
    };
    let offered = preview.offered.filter(|_| repeat.is_single && request.kind() == "run");
    let planned_s = offered.map(|offered| offered.duration_s);
    let launched =
        Launched { request, arguments, is_recorded: true, planned_s, ..Launched::default() };
    taken(api, api.queue()?.add(reserved, launched)?)
}

/// Several problems of a run that is there: the request itself is right.
fn conflict(problems: &[ToolProblem]) -> ApiError {
    let of = |problem: &ToolProblem| Problem { field: None, message: problem.message.clone() };
    ApiError::conflicts(problems.iter().map(of).collect())
}

/// How the run is made again: by its command line where that gives the scenario that ran, else by
/// the scenario itself.
fn recorded(api: &Api, id: &str, directory: &Path) -> Result<Recorded, ApiError> {
    let launched = Launched::read(directory).filter(|launched| launched.is_recorded);
    let words = launched.map(|launched| launched.arguments);
    let words = words.or_else(|| recorded_words(directory)).ok_or_else(|| {
        ApiError::conflict("the run has no record of its command line (environment.json)")
    })?;
    let tool = api.toolbox();
    let cannot =
        |why: String| ApiError::conflict(format!("the run '{id}' cannot be repeated: {why}"));
    let ran = directory.join(SCENARIO);
    let scenario = regular::read(&ran, SCENARIO_BYTES_MAX).ok();
    let ran = scenario.is_some().then_some(ran);
    let shown = ran.as_ref().map(|path| path.to_string_lossy());
    let repeat = tool.repeat(&words, shown.as_deref(), false).map_err(cannot)?;
    let is_same = || {
        let preview = tool.preview(&repeat.words);
        preview.problems.is_empty() && preview.scenario_toml.map(String::into_bytes) == scenario
    };
    if !repeat.is_single || (!repeat.takes_file && (ran.is_none() || is_same())) {
        return Ok(Recorded { words, file: None, repeat });
    }
    // One that has not begun yet has its scenario only where it was copied to.
    let copied = || PathBuf::from(words.get(1).map(String::as_str).unwrap_or_default());
    let file = ran.unwrap_or_else(copied);
    let repeat = tool.repeat(&words, Some(&file.to_string_lossy()), true).map_err(cannot)?;
    Ok(Recorded { words, file: Some(file), repeat })
}

/// A name for the file of a scenario, as uploads have it.
fn file_name(scenario: &str) -> String {
    let usable = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = scenario.chars().take(60).map(usable).collect();
    let name = name.trim_matches('-');
    format!("{}.toml", if name.is_empty() { "scenario" } else { name })
}

/// The command line that the record of a run has, without the program.
pub(super) fn recorded_words(directory: &Path) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Record {
        #[serde(default)]
        command_line: Vec<String>,
    }
    ["environment.json", "comparison.json"].into_iter().find_map(|name| {
        let text = regular::read(&directory.join(name), RECORD_BYTES_MAX).ok()?;
        let record: Record = serde_json::from_slice(&text).ok()?;
        record.command_line.get(1..).filter(|words| !words.is_empty()).map(<[String]>::to_vec)
    })
}
