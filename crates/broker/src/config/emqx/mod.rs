//! MQTT bridges of an `emqx.conf`, translated key by key.

mod hocon;
mod keys;

use std::collections::BTreeMap;
use std::fmt;

use super::RawConfig;
use hocon::{HoconEntry, HoconValue};
use keys::Translation;

/// What has become of a configuration of EMQX.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedBridges {
    /// `[[bridges]]`, as in a `broker.toml`.
    pub toml: String,
    /// How many there are.
    pub count: usize,
    /// What differs, or could not be translated, by line.
    pub notes: Vec<ImportNote>,
}

/// Something about a line of the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImportNote {
    /// Its number.
    pub line: usize,
    /// How much it matters.
    pub kind: ImportKind,
    /// In words.
    pub text: String,
}

/// How much it matters what becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImportKind {
    /// It is translated, and works a little otherwise here.
    Differs,
    /// There is nothing like it here.
    NoCounterpart,
    /// It is wrong in the file.
    Malformed,
}

impl fmt::Display for ImportNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ImportKind::Differs => "differs",
            ImportKind::NoCounterpart => "no counterpart",
            ImportKind::Malformed => "malformed",
        };
        write!(f, "line {}: {kind}: {}", self.line, self.text)
    }
}

/// Translates the MQTT bridges of an `emqx.conf` (`bridges.mqtt`).
///
/// # Errors
/// The text cannot be read, with the line; it has no such bridge; or one cannot be here.
pub fn import_emqx_bridges(text: &str) -> Result<ImportedBridges, String> {
    let (entries, faults) =
        hocon::parse(text).map_err(|fault| format!("line {}: {}", fault.line, fault.what))?;
    let mut notes: Vec<ImportNote> = faults
        .into_iter()
        .map(|fault| ImportNote { line: fault.line, kind: ImportKind::Malformed, text: fault.what })
        .collect();
    let mut bridges: BTreeMap<String, Translation> = BTreeMap::new();
    for entry in entries {
        let HoconEntry { path, value, line } = entry;
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match path[..] {
            ["bridges", "mqtt", name, ..] => {
                let new = || Translation::new(name, line);
                let bridge = bridges.entry(name.to_owned()).or_insert_with(new);
                bridge.take(&path[3..].join("."), &value, line);
            }
            ["bridges", kind, ..] => {
                let text = format!("`bridges.{kind}`: bridges here speak MQTT");
                note_once(&mut notes, line, text);
            }
            [part @ ("connectors" | "actions" | "sources"), "mqtt", ..] => {
                let text = format!(
                    "`{part}.mqtt`: which topics it forwards is in a rule; write the [[bridges]] \
                     by hand"
                );
                note_once(&mut notes, line, text);
            }
            // Other parts of the file are about other things.
            _ => {}
        }
    }
    if bridges.is_empty() {
        return Err("there is no `bridges.mqtt` in it".to_owned());
    }
    let (mut toml, mut count) = (String::new(), 0);
    for bridge in bridges.into_values() {
        let (text, own) = bridge.finish();
        count += usize::from(!text.is_empty());
        toml.push_str(&text);
        notes.extend(own);
    }
    notes.sort();
    // What is written can be used as it is, but for passwords.
    let checked = toml::from_str::<RawConfig>(&toml).map_err(|error| error.to_string());
    let checked = checked.and_then(|raw| raw.resolve().map_err(|error| error.to_string()));
    checked.map_err(|why| format!("what it means cannot be used here: {why}"))?;
    Ok(ImportedBridges { toml, count, notes })
}

fn note_once(notes: &mut Vec<ImportNote>, line: usize, text: String) {
    if notes.iter().all(|note| note.text != text) {
        notes.push(ImportNote { line, kind: ImportKind::NoCounterpart, text });
    }
}

/// A value as text; a list with commas between its parts.
fn text_of(value: &HoconValue) -> String {
    match value {
        HoconValue::Text(text) => text.clone(),
        HoconValue::List(items) => items.join(", "),
    }
}

#[cfg(test)]
mod tests;
