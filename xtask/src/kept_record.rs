//! Records of measurements, under `bench/runs`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell;

/// The date of a time.
pub(crate) fn date(time: &str) -> &str {
    time.get(..10).unwrap_or(time)
}

/// Writes a record into the folder of this name and day: `README.md`, `results.json`, and more
/// files by their names. Returns the folder.
pub(crate) fn keep(
    (name, started): (&str, &str),
    readme: String,
    record: &Value,
    more: Vec<(&str, String)>,
) -> Result<PathBuf> {
    let folder = shell::root().join("bench/runs").join(format!("{}-{name}", date(started)));
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {folder:?}"))?;
    let json = serde_json::to_string_pretty(record).context("cannot write JSON")? + "\n";
    let files = [("README.md", readme), ("results.json", json)];
    for (name, text) in files.into_iter().chain(more) {
        fs::write(folder.join(name), text).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(folder)
}
