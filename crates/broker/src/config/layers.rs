//! What a configuration is put together of: a file, the files of the folder that it includes, and
//! the environment.
//!
//! Later values replace earlier ones; tables are merged key by key, and lists of tables (listeners,
//! bridges, backends) are joined.

use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::sources::{Places, keys_of};
use super::{ConfigError, RawConfig, SourceText, ValueSource, unparsed};

/// What the names of variables begin with; the rest is the key, with `__` for each dot.
const PREFIX: &str = "TACHO_BROKER__";
/// Elements of a list that variables may add.
const LIST_LEN_MAX: usize = 1_024;

/// Reads a file, what it includes, and variables, in this order.
pub(super) fn read(
    path: Option<&Path>,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<RawConfig, ConfigError> {
    let mut variables: Vec<(String, String)> =
        environment.filter(|(name, _)| name.starts_with(PREFIX)).collect();
    variables.sort();
    let files = match path {
        Some(path) => files(path)?,
        None if variables.is_empty() => return Ok(RawConfig::default()),
        None => Vec::new(),
    };
    let mut places = Places::new();
    for file in &files {
        note(&file.table, &file.source.path, &mut places);
    }
    if let ([file], []) = (&files[..], &variables[..]) {
        // Errors of its values have their lines.
        let raw = parse(&file.source.path, &file.source.text)?;
        return Ok(RawConfig { source: Some(file.source.clone()), places, ..raw });
    }
    let mut merged = Table::new();
    for file in &files {
        merge(&mut merged, file.table.clone());
    }
    let of_files = merged.clone();
    for (name, text) in &variables {
        let key = set(&mut merged, name, text)?;
        places.insert(key, (ValueSource::Environment, name.clone()));
    }
    let path = path.map_or_else(|| "the environment".to_owned(), |path| path.display().to_string());
    let source = SourceText { path, text: merged.to_string() };
    match toml::from_str::<RawConfig>(&source.text) {
        Ok(raw) => Ok(RawConfig { source: Some(source), places, ..raw }),
        Err(error) => Err(blamed(&of_files, &variables, error.message())),
    }
}

/// A file, parsed.
struct LayerFile {
    source: SourceText,
    table: Table,
}

/// A file and those that it includes, in their order. Each is checked by itself, so that errors
/// have their lines.
fn files(path: &Path) -> Result<Vec<LayerFile>, ConfigError> {
    let main = read_file(path)?;
    let raw = parse(&main.source.path, &main.source.text)?;
    let mut files = vec![main];
    if let Some(folder) = raw.include {
        let folder = path.parent().unwrap_or_else(|| Path::new("")).join(folder);
        for path in included(&folder)? {
            let file = read_file(&path)?;
            let raw = parse(&file.source.path, &file.source.text)?;
            if raw.include.is_some() {
                let path = file.source.path;
                return Err(ConfigError::Include { path, why: "it includes others".to_owned() });
            }
            super::bridge::resolve(raw.bridges, Some(&file.source))?;
            files.push(file);
        }
    }
    Ok(files)
}

/// The files of a folder, by name. Others than `*.toml` are left alone.
fn included(folder: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let failed = |error: std::io::Error| ConfigError::Include {
        path: folder.display().to_string(),
        why: error.to_string(),
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let is_hidden = name.first() == Some(&b'.');
        if path.extension().is_some_and(|extension| extension == "toml") && !is_hidden {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn read_file(path: &Path) -> Result<LayerFile, ConfigError> {
    let shown = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: shown.clone(), source })?;
    let table = toml::from_str(&text).map_err(|error| unparsed(shown.clone(), &text, error))?;
    Ok(LayerFile { source: SourceText { path: shown, text }, table })
}

fn parse(path: &str, text: &str) -> Result<RawConfig, ConfigError> {
    toml::from_str(text).map_err(|error| unparsed(path.to_owned(), text, error))
}

/// Notes which file has a key.
fn note(table: &Table, path: &str, places: &mut Places) {
    for key in keys_of(table) {
        match places.get_mut(&key) {
            // A list has parts of several.
            Some((_, place)) if is_list(table, &key) => place.push_str(&format!(", {path}")),
            _ => drop(places.insert(key, (ValueSource::File, path.to_owned()))),
        }
    }
}

fn is_list(table: &Table, key: &str) -> bool {
    let mut value = None;
    let mut table = Some(table);
    for part in key.split('.') {
        value = table.and_then(|table| table.get(part));
        table = value.and_then(Value::as_table);
    }
    value.and_then(Value::as_array).is_some_and(|list| has_tables(list))
}

fn merge(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (value, into.get_mut(&key)) {
            (Value::Table(from), Some(Value::Table(into))) => merge(into, from),
            (Value::Array(from), Some(Value::Array(into))) if has_tables(&from) => {
                into.extend(from);
            }
            (value, _) => drop(into.insert(key, value)),
        }
    }
}

fn has_tables(list: &[Value]) -> bool {
    list.first().is_some_and(Value::is_table)
}

/// Sets the value that a variable stands for; its key up to the first list.
fn set(table: &mut Table, name: &str, text: &str) -> Result<String, ConfigError> {
    let wrong = |why: &str| ConfigError::Variable { name: name.to_owned(), why: why.to_owned() };
    let path = name.strip_prefix(PREFIX).unwrap_or_default().to_ascii_lowercase();
    let parts: Vec<&str> = path.split("__").collect();
    if parts.contains(&"") {
        return Err(wrong("write keys with `__` between their parts, as in LIMITS__SESSIONS_MAX"));
    }
    let mut all = Value::Table(std::mem::take(table));
    let place = place_of(&mut all, &parts);
    let found = place.map(|place| *place = value_of(text));
    if let Value::Table(filled) = all {
        *table = filled;
    }
    found.ok_or_else(|| wrong("there is no such key"))?;
    let end = parts.iter().position(|part| is_number(part)).unwrap_or(parts.len());
    Ok(parts.iter().take(end).copied().collect::<Vec<_>>().join("."))
}

fn is_number(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
}

/// The place of a key, with the tables and lists on the way to it; `None` if something else is
/// there.
fn place_of<'v>(at: &'v mut Value, parts: &[&str]) -> Option<&'v mut Value> {
    let Some((part, rest)) = parts.split_first() else { return Some(at) };
    let empty = match rest.first() {
        None => Value::Boolean(false),
        Some(next) if is_number(next) => Value::Array(Vec::new()),
        Some(_) => Value::Table(Table::new()),
    };
    let child = match at {
        Value::Table(table) => table.entry((*part).to_owned()).or_insert(empty),
        Value::Array(list) => {
            let index: usize = part.parse().ok()?;
            // A list grows by one at a time.
            if index == list.len() && index < LIST_LEN_MAX {
                list.push(empty);
            }
            list.get_mut(index)?
        }
        _ => return None,
    };
    place_of(child, rest)
}

/// A value as in a file; what is none is a text.
fn value_of(text: &str) -> Value {
    let parsed: Option<Table> = toml::from_str(&format!("value = {text}")).ok();
    let value = parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// The variable without which the rest can be read. Values are not shown: some are secret.
fn blamed(of_files: &Table, variables: &[(String, String)], message: &str) -> ConfigError {
    let is_fine_without = |left_out: usize| {
        let mut table = of_files.clone();
        let mut rest = variables.iter().enumerate().filter(|(at, _)| *at != left_out);
        let is_set =
            |(_, (name, text)): (usize, &(String, String))| set(&mut table, name, text).is_ok();
        rest.all(is_set) && toml::from_str::<RawConfig>(&table.to_string()).is_ok()
    };
    let one = (0..variables.len()).find(|at| is_fine_without(*at));
    match one.and_then(|at| variables.get(at)) {
        Some((name, text)) => {
            let why = match message.contains(text.as_str()) {
                true => "its value does not fit".to_owned(),
                false => message.to_owned(),
            };
            ConfigError::Variable { name: name.clone(), why }
        }
        None => {
            let name = format!("{PREFIX}...");
            let why = "they do not fit together, or with the file".to_owned();
            ConfigError::Variable { name, why }
        }
    }
}

#[cfg(test)]
mod tests;
