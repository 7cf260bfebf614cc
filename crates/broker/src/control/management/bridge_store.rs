//! Bridges that operators have made: checked as those of the configuration are, and stored.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::{Map, Value};
use tacho_access::read_text;

use super::store::{StoreError, write};
use crate::config::{BridgeConfig, ConfigError, ManagementSettings, RawConfig};

/// Where they are, in the folder of the store.
const FILE: &str = "bridges.json";
/// Bridges in it.
const BRIDGES_MAX: usize = 256;

/// The bridges of operators, as they were given.
#[derive(Debug)]
pub(crate) struct BridgeStore {
    /// Without it they end with the broker.
    folder: Option<PathBuf>,
    all: Mutex<Vec<StoredBridge>>,
}

/// One of them.
#[derive(Clone, Debug)]
struct StoredBridge {
    name: String,
    keys: Map<String, Value>,
}

/// For the name of the table in it.
#[derive(Serialize)]
struct BridgeTables<'a> {
    bridges: &'a [&'a Map<String, Value>],
}

/// The bridge that these keys describe, or why they describe none.
pub(super) fn parse(keys: &Map<String, Value>) -> Result<BridgeConfig, String> {
    let text = toml::to_string(&BridgeTables { bridges: &[keys] });
    let text = text.map_err(|error| format!("a value has no counterpart in a file: {error}"))?;
    // Errors of TOML show lines, which may have passwords.
    let raw: RawConfig = toml::from_str(&text).map_err(|error| error.message().to_owned())?;
    let config = raw.resolve().map_err(|error| match error {
        ConfigError::Bridge { what, .. } => what,
        other => other.to_string(),
    })?;
    let bridge = config.bridges.into_iter().next().ok_or("it has no keys")?;
    Ok(BridgeConfig { is_stored: true, ..bridge })
}

impl BridgeStore {
    /// Reads what is stored, beside the bridges of the configuration, and adds it to them.
    ///
    /// # Errors
    /// The file cannot be read, or a bridge in it cannot be used.
    pub(crate) fn open(
        settings: &ManagementSettings,
        bridges: &mut Vec<BridgeConfig>,
    ) -> Result<Self, ConfigError> {
        let Some(folder) = settings.store.clone() else {
            return Ok(Self { folder: None, all: Mutex::default() });
        };
        let path = folder.join(FILE);
        let shown = path.display().to_string();
        let failed = |why: String| ConfigError::ManagementStore { path: shown.clone(), why };
        if !path.try_exists().map_err(|error| failed(error.to_string()))? {
            return Ok(Self { folder: Some(folder), all: Mutex::default() });
        }
        let text = read_text(&path).map_err(|error| failed(error.to_string()))?;
        let stored: Vec<Map<String, Value>> =
            serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        let mut all = Vec::new();
        for keys in stored {
            let bridge = parse(&keys).map_err(&failed)?;
            if let Some(why) = bridges.iter().find_map(|other| bridge.conflict_with(other)) {
                return Err(failed(format!("bridge `{}`: {why}", bridge.name)));
            }
            all.push(StoredBridge { name: bridge.name.clone(), keys });
            bridges.push(bridge);
        }
        Ok(Self { folder: Some(folder), all: Mutex::new(all) })
    }

    /// Whether bridges outlive the broker.
    pub(super) const fn is_lasting(&self) -> bool {
        self.folder.is_some()
    }

    /// Stores a bridge, in the place of one of the same name.
    pub(super) fn put(&self, name: &str, keys: Map<String, Value>) -> Result<(), StoreError> {
        let mut all = self.lock();
        let mut others = all.clone();
        others.retain(|one| one.name != name);
        if others.len() >= BRIDGES_MAX {
            return Err(StoreError::Full(BRIDGES_MAX));
        }
        others.push(StoredBridge { name: name.to_owned(), keys });
        self.replace(&mut all, others)
    }

    /// Removes a bridge.
    pub(super) fn remove(&self, name: &str) -> Result<(), StoreError> {
        let mut all = self.lock();
        let mut others = all.clone();
        others.retain(|one| one.name != name);
        self.replace(&mut all, others)
    }

    fn replace(
        &self,
        all: &mut Vec<StoredBridge>,
        others: Vec<StoredBridge>,
    ) -> Result<(), StoreError> {
        if let Some(folder) = &self.folder {
            let keys: Vec<&Map<String, Value>> = others.iter().map(|one| &one.keys).collect();
            // Invariant: it was JSON before.
            let text = serde_json::to_string_pretty(&keys).unwrap_or_default();
            write(&folder.join(FILE), &text)?;
        }
        *all = others;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<StoredBridge>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keys(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn bridges_are_checked_as_those_of_the_configuration() {
        let good = json!({"name": "b", "address": "mqtt://a", "enabled": false,
                          "egress": [{"filter": "x/#", "qos": 1}], "tls": null});
        let mut good = keys(good);
        good.remove("tls");
        let bridge = parse(&good).expect("is right");
        assert!(bridge.is_stored && !bridge.enabled && bridge.egress.len() == 1);
        for (wrong, words) in [
            (json!({"name": "b"}), "missing field `address`"),
            (json!({"name": "b", "address": "ws://a", "egress": [{"filter": "x"}]}), "`ws`"),
            (json!({"name": "b", "address": "mqtt://a", "password": 7}), "invalid type"),
            (json!({"name": "b", "address": "mqtt://a", "colour": 7}), "unknown field `colour`"),
            (json!({"name": "b", "address": "mqtt://a"}), "it has no rules"),
        ] {
            let error = parse(&keys(wrong)).expect_err(words);
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn stored_bridges_come_back_and_conflicts_are_told() {
        let place = tempfile::tempdir().expect("a folder");
        let settings = ManagementSettings {
            store: Some(place.path().to_owned()),
            ..ManagementSettings::default()
        };
        let mut none = Vec::new();
        let store = BridgeStore::open(&settings, &mut none).expect("is empty");
        assert!(none.is_empty() && store.is_lasting());
        let of = |name: &str| {
            keys(json!({"name": name, "address": "mqtt://a", "password": "hunter2",
                        "username": "u", "egress": [{"filter": "x"}]}))
        };
        for name in ["a", "b", "c", "b"] {
            store.put(name, of(name)).expect("is written");
        }
        store.remove("a").expect("is written");
        let mut bridges = Vec::new();
        BridgeStore::open(&settings, &mut bridges).expect("is read");
        let names: Vec<&str> = bridges.iter().map(|bridge| &*bridge.name).collect();
        assert_eq!(names, ["c", "b"]);
        let error = BridgeStore::open(&settings, &mut bridges).expect_err("they are there twice");
        assert!(error.to_string().contains("there is a bridge `c` already"), "{error}");
        std::fs::write(place.path().join(FILE), "[{}]").expect("writes");
        let error = BridgeStore::open(&settings, &mut Vec::new()).expect_err("is damaged");
        assert!(error.to_string().contains(FILE), "{error}");
    }
}
