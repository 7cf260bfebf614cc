//! The effective configuration, value by value, with where each comes from.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Config, SourceText};

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueSource {
    /// The configuration file.
    File,
    /// The environment.
    Environment,
    /// A flag of the command line.
    Flag,
    /// It is the default.
    Default,
}

/// One value of the effective configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EffectiveValue {
    /// Its key, such as `limits.connections_max` or `listeners.0.address`.
    pub key: String,
    /// As in the configuration file.
    pub value: String,
    /// Where it comes from.
    pub source: ValueSource,
}

/// What the file, the environment and the command line have set.
#[derive(Clone, Debug, Default)]
pub(super) struct ConfigSources {
    /// Keys of the file, without their values: some are secret.
    file: BTreeSet<String>,
    given: BTreeMap<&'static str, ValueSource>,
}

impl ConfigSources {
    pub(super) fn new(file: Option<&SourceText>, given: Vec<(&'static str, ValueSource)>) -> Self {
        // Invariant: it was parsed before.
        let table: toml::Table =
            file.and_then(|source| source.text.parse().ok()).unwrap_or_default();
        let mut keys = BTreeSet::new();
        keys_of(&table, "", &mut keys);
        Self { file: keys, given: given.into_iter().collect() }
    }

    fn of(&self, path: &[String]) -> ValueSource {
        let mut keys = prefixes(path);
        // Plain listeners are shown together, however the file writes them.
        if let Some("listen" | "listeners") = path.first().map(String::as_str) {
            keys = vec!["listen".to_owned(), "listeners".to_owned()];
        }
        if let Some(source) = keys.iter().find_map(|key| self.given.get(&**key)) {
            return *source;
        }
        match keys.iter().any(|key| self.file.contains(key)) {
            true => ValueSource::File,
            false => ValueSource::Default,
        }
    }
}

/// `a`, `a.b` and `a.b.c` of `a.b.c`.
fn prefixes(path: &[String]) -> Vec<String> {
    (1..=path.len()).map(|len| path[..len].join(".")).collect()
}

/// The keys of a table that have values of their own: what is in a list is there with the list.
fn keys_of(table: &toml::Table, before: &str, keys: &mut BTreeSet<String>) {
    for (key, value) in table {
        let key = format!("{before}{key}");
        match value {
            toml::Value::Table(table) => keys_of(table, &format!("{key}."), keys),
            _ => drop(keys.insert(key)),
        }
    }
}

impl Config {
    /// Every value in force, secrets left out, in the order of their keys.
    pub fn effective(&self) -> Vec<EffectiveValue> {
        // Invariant: a test parses it.
        let table: toml::Table = self.describe().parse().unwrap_or_default();
        let mut values = Vec::new();
        let mut path = Vec::new();
        flatten(&toml::Value::Table(table), &mut path, &mut |path, value| {
            let source = self.sources.of(path);
            values.push(EffectiveValue { key: path.join("."), value: value.to_string(), source });
        });
        values
    }
}

fn flatten(
    value: &toml::Value,
    path: &mut Vec<String>,
    found: &mut impl FnMut(&[String], &toml::Value),
) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                path.push(key.clone());
                flatten(value, path, found);
                path.pop();
            }
        }
        toml::Value::Array(list) if list.iter().any(toml::Value::is_table) => {
            for (at, value) in list.iter().enumerate() {
                path.push(at.to_string());
                flatten(value, path, found);
                path.pop();
            }
        }
        value => found(path, value),
    }
}
