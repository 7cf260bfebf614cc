//! Runs made again: as they were, or as a request that can be changed.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tacho_http::Problem;

use super::answers::ApiError;
use super::start::{INPUT, Taken, submit, taken, upload_answer, without_folder};
use super::state::Api;
use crate::files::is_plain;
use crate::launch::Launched;
use crate::regular;
use crate::request::RunRequest;
use crate::source_file::SourceFile;
use crate::toolbox::{RepeatFrom, ToolProblem, ToolRepeat, Toolbox};
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

/// The scenario file of such a run.
enum RecordedFile {
    /// It needs none, or its command line names one that is still there.
    AsNamed,
    /// The scenario as it ran takes the place of all.
    Ran(PathBuf),
    /// The file is still where it was; a changed run takes a copy.
    Original(PathBuf),
    /// A copy of the file, by its name.
    Copy(String, String),
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
    let (repeat, file) = Earlier::read(api, id, &directory)?.recorded(&directory)?;
    let request: RunRequest = serde_json::from_value(repeat.request)
        .map_err(|error| ApiError::internal(error.to_string()))?;
    let mut draft = RunDraft { request, uploads: Vec::new(), left_out: repeat.left_out };
    let upload = match file {
        RecordedFile::AsNamed => return Ok(draft),
        RecordedFile::Ran(file) => draft.take(api, &file, &toml_name(&api.row(id)?.scenario))?,
        RecordedFile::Original(file) => draft.take_original(api, &file)?,
        RecordedFile::Copy(name, text) => draft.take_bytes(api, text.as_bytes(), &name)?,
    };
    draft.request.upload = Some(upload.id);
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

    /// Uploads a file that is where it was, and of a plan the data beside it.
    fn take_original(&mut self, api: &Api, file: &Path) -> Result<Upload, ApiError> {
        let upload = self.take(api, file, &upload_name(file))?;
        let data = api.toolbox().inspect(file).files;
        let names = data.as_array().into_iter().flatten();
        for name in names.filter_map(|data| data.get("name")?.as_str()) {
            let beside = file.with_file_name(name);
            if is_plain(name) && beside.is_file() {
                let data = self.take(api, &beside, name)?.id;
                self.request.data.push(data);
            }
        }
        Ok(upload)
    }

    fn take(&mut self, api: &Api, file: &Path, name: &str) -> Result<Upload, ApiError> {
        self.take_bytes(api, &regular::read(file, SCENARIO_BYTES_MAX)?, name)
    }

    fn take_bytes(&mut self, api: &Api, bytes: &[u8], name: &str) -> Result<Upload, ApiError> {
        let upload = api.uploads().keep(name, bytes)?;
        self.uploads.push(upload_answer(api, &upload));
        Ok(upload)
    }
}

/// A run of a recorded command line.
fn submit_recorded(api: &Api, id: &str, directory: &Path) -> Result<Taken, ApiError> {
    let earlier = Earlier::read(api, id, directory)?;
    let (repeat, file) = earlier.recorded(directory)?;
    let request: RunRequest = serde_json::from_value(repeat.request.clone())
        .map_err(|error| ApiError::internal(error.to_string()))?;
    let row = api.row(id)?;
    let name = request.name.as_deref().unwrap_or(&row.scenario);
    // Removed again should the run be refused.
    let reserved = api.queue()?.reserve(name)?;
    let place = |name: String| -> Result<PathBuf, ApiError> {
        let place = std::path::absolute(reserved.directory.join(INPUT))?;
        fs::create_dir_all(&place)?;
        Ok(place.join(name))
    };
    let repeat = match file {
        RecordedFile::AsNamed | RecordedFile::Original(_) => repeat,
        RecordedFile::Ran(file) => {
            let place = place(toml_name(&row.scenario))?;
            fs::copy(&file, &place)?;
            earlier.again(Some(&place), RepeatFrom::Ran)?
        }
        RecordedFile::Copy(name, text) => {
            let place = place(name)?;
            fs::write(&place, text)?;
            earlier.again(earlier.ran.as_deref(), RepeatFrom::File(&place.to_string_lossy()))?
        }
    };
    let mut problems = repeat.problems;
    problems.extend(api.toolbox().preview(&repeat.words).problems);
    if !problems.is_empty() {
        return Err(conflict(&problems, &reserved.directory.join(INPUT)));
    }
    let arguments = repeat.words;
    let launched = Launched { request, arguments, is_recorded: true, ..Launched::default() };
    taken(api, api.queue()?.add(reserved, launched)?)
}

/// Several problems of a run that is there: the request itself is right. Files in the `folder` of
/// the refused run, which goes with it, are called by their names.
fn conflict(problems: &[ToolProblem], folder: &Path) -> ApiError {
    let of = |problem: &ToolProblem| Problem {
        field: None,
        message: without_folder(&problem.message, Some(folder)),
    };
    ApiError::conflicts(problems.iter().map(of).collect())
}

/// A run whose command line is made again.
struct Earlier<'a> {
    tool: &'a dyn Toolbox,
    id: &'a str,
    words: Vec<String>,
    /// The scenario as it ran: its file, and what is in it.
    ran: Option<PathBuf>,
    scenario: Option<Vec<u8>>,
}

impl<'a> Earlier<'a> {
    fn read(api: &'a Api, id: &'a str, directory: &Path) -> Result<Self, ApiError> {
        let launched = Launched::read(directory).filter(|launched| launched.is_recorded);
        let words = launched.map(|launched| launched.arguments);
        let words = words.or_else(|| recorded_words(directory)).ok_or_else(|| {
            ApiError::conflict("the run has no record of its command line (environment.json)")
        })?;
        let ran = directory.join(SCENARIO);
        let scenario = regular::read(&ran, SCENARIO_BYTES_MAX).ok();
        let ran = scenario.is_some().then_some(ran);
        Ok(Self { tool: api.toolbox(), id, words, ran, scenario })
    }

    fn cannot(&self, why: &str) -> ApiError {
        ApiError::conflict(format!("the run '{}' cannot be repeated: {why}", self.id))
    }

    /// The same run with a scenario from elsewhere; `ran` is the file of the one that ran.
    fn again(&self, ran: Option<&Path>, from: RepeatFrom<'_>) -> Result<ToolRepeat, ApiError> {
        let ran = ran.map(Path::to_string_lossy);
        let repeat = self.tool.repeat(&self.words, ran.as_deref(), from);
        repeat.map_err(|why| self.cannot(&why))
    }

    /// Whether it would run what ran.
    fn is_same(&self, repeat: &ToolRepeat) -> bool {
        let preview = self.tool.preview(&repeat.words);
        let toml = preview.scenario_toml.map(String::into_bytes);
        preview.problems.is_empty() && toml == self.scenario
    }

    /// How it is made again: by its command line where that gives the scenario that ran, else by
    /// the scenario itself, or by the file that its steps were made of.
    fn recorded(&self, directory: &Path) -> Result<(ToolRepeat, RecordedFile), ApiError> {
        let ran = self.ran.as_deref();
        let repeat = self.again(ran, RepeatFrom::Line)?;
        if repeat.takes_file && !repeat.is_single {
            return self.of_source(directory);
        }
        let is_as_named =
            !repeat.is_single || (!repeat.takes_file && (ran.is_none() || self.is_same(&repeat)));
        if is_as_named {
            return Ok((repeat, RecordedFile::AsNamed));
        }
        // One that has not begun yet has its scenario only where it was copied to.
        let file = ran.map_or_else(|| self.named(), Path::to_owned);
        let repeat = self.again(Some(&file), RepeatFrom::Ran)?;
        Ok((repeat, RecordedFile::Ran(file)))
    }

    /// The same of steps that were made of a scenario file: by the file while it gives what ran,
    /// else by its copy in the record.
    fn of_source(&self, directory: &Path) -> Result<(ToolRepeat, RecordedFile), ApiError> {
        let source = SourceFile::read(directory);
        let original = source.as_ref().map_or_else(|| self.named(), |one| one.path().to_owned());
        let repeat =
            self.again(self.ran.as_deref(), RepeatFrom::File(&original.to_string_lossy()))?;
        // A relative path would be another one here.
        if original.is_absolute() && original.is_file() && self.is_same(&repeat) {
            return Ok((repeat, RecordedFile::Original(original)));
        }
        let text = source.as_ref().and_then(SourceFile::text);
        let text = text.ok_or_else(|| self.cannot(&no_copy(&original)))?.to_owned();
        Ok((repeat, RecordedFile::Copy(upload_name(&original), text)))
    }

    /// The scenario of its command line.
    fn named(&self) -> PathBuf {
        PathBuf::from(self.words.get(1).map(String::as_str).unwrap_or_default())
    }
}

fn no_copy(file: &Path) -> String {
    format!(
        "its scenario file '{}' is gone or has changed, and its record has no copy: files with \
         passwords are not kept; upload the file and start it anew",
        file.display()
    )
}

/// A name for the file of a scenario, as uploads have it.
fn toml_name(scenario: &str) -> String {
    format!("{}.toml", usable_name(scenario))
}

/// The name of a file as uploads have it; its kind stays.
fn upload_name(file: &Path) -> String {
    let stem = usable_name(&file.file_stem().unwrap_or_default().to_string_lossy());
    let is_plan = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("jmx"));
    format!("{stem}.{}", if is_plan { "jmx" } else { "toml" })
}

fn usable_name(name: &str) -> String {
    let usable = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = name.chars().take(60).map(usable).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "scenario".to_owned() } else { name.to_owned() }
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
