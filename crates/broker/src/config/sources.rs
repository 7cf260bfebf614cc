//! The effective configuration, value by value, with where each comes from.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Applies, Config, changes};

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueSource {
    /// A configuration file.
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
    /// The file or the variable, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// When a change of it takes effect.
    pub applies: Applies,
}

/// Where values come from, by key; those of a list are there with the list.
pub(super) type Places = BTreeMap<String, (ValueSource, String)>;

/// What files, the environment and the command line have set.
#[derive(Clone, Debug, Default)]
pub(super) struct ConfigSources {
    /// Without the values: some are secret.
    places: Places,
    given: BTreeMap<&'static str, ValueSource>,
}

impl ConfigSources {
    pub(super) fn new(places: Places, given: Vec<(&'static str, ValueSource)>) -> Self {
        Self { places, given: given.into_iter().collect() }
    }

    /// Where a value comes from: also the file or the variable.
    fn of(&self, path: &[String]) -> (ValueSource, Option<&str>) {
        let mut keys = prefixes(path);
        // Plain listeners are shown together, however the file writes them.
        if let Some("listen" | "listeners") = path.first().map(String::as_str) {
            keys = vec!["listen".to_owned(), "listeners".to_owned()];
        }
        if let Some(source) = keys.iter().find_map(|key| self.given.get(&**key)) {
            return (*source, None);
        }
        match keys.iter().find_map(|key| self.places.get(key)) {
            Some((source, place)) => (*source, Some(place)),
            None => (ValueSource::Default, None),
        }
    }
}

/// `a`, `a.b` and `a.b.c` of `a.b.c`.
fn prefixes(path: &[String]) -> Vec<String> {
    (1..=path.len()).map(|len| path[..len].join(".")).collect()
}

/// The keys of a table that have values of their own: what is in a list is there with the list.
pub(super) fn keys_of(table: &toml::Table) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    add_keys(table, "", &mut keys);
    keys
}

fn add_keys(table: &toml::Table, before: &str, keys: &mut BTreeSet<String>) {
    for (key, value) in table {
        let key = format!("{before}{key}");
        match value {
            toml::Value::Table(table) => add_keys(table, &format!("{key}."), keys),
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
            let (source, place) = self.sources.of(path);
            let (key, value, place) = (path.join("."), value.to_string(), place.map(str::to_owned));
            let applies = changes::applies(&key);
            values.push(EffectiveValue { key, value, source, place, applies });
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
