//! Run directories as sides of a comparison.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::CompareError;
use tacho_record::{
    BeforeRun, Environment, Repeat, RunKind, RunRecord, SideLabel, read_comparison, read_json,
    read_record,
};

/// Repeats of one condition.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Short name.
    pub name: String,
    /// What it is.
    pub label: String,
    /// The same as data; absent where directories were given.
    pub what: Option<SideLabel>,
    /// Command that is run before each repeat.
    pub before: Option<String>,
    /// The repeats.
    pub runs: Vec<Run>,
    /// Further repeats of the same condition, for the noise floor where this side is the first.
    pub again: Vec<Run>,
}

/// A run directory that was read.
#[derive(Clone, Debug)]
pub struct Run {
    /// Where it is.
    pub path: PathBuf,
    /// As the record of the comparison names it.
    pub shown: String,
    /// What it measured.
    pub record: RunRecord,
    /// The machine; absent where nothing was measured.
    pub environment: Option<Environment>,
    /// The scenario as it ran.
    pub scenario: Option<toml::Table>,
    /// The commands run before it.
    pub before: Option<BeforeRun>,
    /// Whether it replaced a repeat that does not count.
    pub made_up: bool,
}

impl Run {
    /// Reads the directory `path`.
    ///
    /// # Errors
    /// When it is not the directory of a run that has ended, or of a newer version.
    pub fn read(path: &Path, shown: &str) -> Result<Self, CompareError> {
        let record = read_record(path)?.ok_or_else(|| CompareError::NoRun {
            path: path.to_owned(),
            why: "it has no summary.json",
        })?;
        let scenario = fs::read_to_string(path.join("scenario.toml")).ok();
        Ok(Self {
            path: path.to_owned(),
            shown: shown.to_owned(),
            environment: read_json(&path.join("environment.json"))?,
            scenario: scenario.and_then(|text| text.parse().ok()),
            before: None,
            made_up: false,
            record,
        })
    }
}

/// Reads a side: a run directory, several with commas between them as repeats, or `DIR@SIDE` of a
/// comparison.
///
/// # Errors
/// When one of them cannot be read or has nothing to compare.
pub fn read_side(name: &str, argument: &str) -> Result<Side, CompareError> {
    let mut side = Side { name: name.to_owned(), label: argument.to_owned(), ..Side::default() };
    // A directory may have a comma or an @ in its name.
    if Path::new(argument).is_dir() {
        side.runs = repeats_of(argument, &mut side)?;
        return Ok(side);
    }
    for part in argument.split(',').filter(|part| !part.is_empty()) {
        let more = repeats_of(part, &mut side)?;
        side.runs.extend(more);
    }
    Ok(side)
}

/// The repeats that an argument names; what else a comparison knows about them goes to `into`.
fn repeats_of(argument: &str, into: &mut Side) -> Result<Vec<Run>, CompareError> {
    let (folder, wanted) = match argument.rsplit_once('@') {
        Some((folder, side)) if !Path::new(argument).is_dir() => (folder, Some(side)),
        _ => (argument, None),
    };
    let path = Path::new(folder);
    if !path.is_dir() {
        let why = "the directory does not exist";
        return Err(CompareError::NoRun { path: path.to_owned(), why });
    }
    let Some(comparison) = read_comparison(path)? else {
        if wanted.is_some() {
            return Err(CompareError::NoSide {
                argument: argument.to_owned(),
                known: "it is no comparison and has no sides".to_owned(),
            });
        }
        let run = Run::read(path, folder)?;
        if run.record.kind == RunKind::Capacity {
            let why = "a search has trials of different loads; compare its profile's steps";
            return Err(CompareError::NoRun { path: path.to_owned(), why });
        }
        return Ok(vec![run]);
    };
    let names: Vec<&str> = comparison.sides.iter().map(|side| side.name.as_str()).collect();
    let side = comparison.sides.iter().find(|side| wanted == Some(side.name.as_str()));
    let Some(side) = side else {
        let choices: Vec<String> = names.iter().map(|name| format!("{folder}@{name}")).collect();
        return Err(CompareError::NoSide {
            argument: argument.to_owned(),
            known: format!("it is a comparison; write {}", choices.join(" or ")),
        });
    };
    into.before.clone_from(&side.before);
    let read = |repeat: &Repeat| {
        let shown = match Path::new(&repeat.directory).is_absolute() {
            true => repeat.directory.clone(),
            false => format!("{folder}/{}", repeat.directory),
        };
        // Repeats that were given from elsewhere are named from where that comparison was made.
        let inside = path.join(&repeat.directory);
        let own = if inside.is_dir() { inside } else { PathBuf::from(&repeat.directory) };
        let run = Run::read(&own, &shown)?;
        Ok(Run { before: repeat.before.clone(), made_up: repeat.made_up, ..run })
    };
    // They are of the first condition.
    if wanted == names.first().copied() {
        let again: Result<Vec<Run>, CompareError> =
            comparison.aa_repeats.iter().map(read).collect();
        into.again.extend(again?);
    }
    side.repeats.iter().map(read).collect()
}
