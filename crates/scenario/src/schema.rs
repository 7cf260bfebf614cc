//! The JSON schema of scenario files, for editors.

use serde_json::{Map, Value, json};

pub(super) mod keys;

use keys::{Key, KeyKind, SCENARIO};

/// Where the schema says that it is from; nothing is fetched from there.
const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// The JSON schema (draft 7) of scenario files.
///
/// Every value but a table may be a variable in braces instead, and a string may have such
/// variables in it: those are checked by `tacho scenario check`, not by the schema.
pub fn schema() -> Value {
    let mut schema = table(SCENARIO);
    schema["$schema"] = json!(DRAFT);
    schema["title"] = json!("Tacho scenario");
    schema
}

/// Every key as a path, such as `groups.NAME.publish.topic`, with its description.
pub fn documented_keys() -> Vec<(String, &'static str)> {
    fn collect(prefix: &str, keys: &'static [Key], found: &mut Vec<(String, &'static str)>) {
        for key in keys {
            let path = match prefix {
                "" => key.name.to_owned(),
                _ => format!("{prefix}.{}", key.name),
            };
            found.push((path.clone(), key.about));
            match key.kind {
                KeyKind::Table(keys) | KeyKind::Tables(keys) => collect(&path, keys, found),
                KeyKind::Named(keys) => collect(&format!("{path}.NAME"), keys, found),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    collect("", SCENARIO, &mut found);
    found
}

fn table(keys: &[Key]) -> Value {
    let properties: Map<String, Value> =
        keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let required: Vec<&str> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    let mut table = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        table["required"] = json!(required);
    }
    table
}

fn property(key: &Key) -> Value {
    let mut property = match key.kind {
        KeyKind::Text => json!({ "type": "string" }),
        KeyKind::Flag => or_variable(json!({ "type": "boolean" })),
        KeyKind::Whole(min, max) => {
            or_variable(json!({ "type": "integer", "minimum": min, "maximum": max }))
        }
        KeyKind::Number => or_variable(json!({ "type": "number" })),
        // A number of seconds, or text with a unit, or a variable.
        KeyKind::Span => json!({
            "anyOf": [
                { "type": "number", "minimum": 0 },
                { "type": "string", "pattern": "^ *[0-9._]+ *(ns|us|µs|ms|s|m|min|h)? *$|\\{\\{" },
            ]
        }),
        KeyKind::PerSecond => json!({
            "anyOf": [
                { "type": "number", "minimum": 0 },
                { "type": "string", "pattern": "^ *[0-9._]+ *(/ *s|/ *m|/ *min|k|k/s)? *$|\\{\\{" },
            ]
        }),
        KeyKind::Choice(choices) => json!({ "anyOf": [{ "enum": choices }, variable()] }),
        KeyKind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        KeyKind::Spans => json!({ "type": "array", "items": { "type": ["number", "string"] } }),
        KeyKind::Values => json!({
            "type": "object",
            "additionalProperties": { "type": ["string", "number", "boolean"] },
        }),
        KeyKind::Conditions => json!({
            "type": "object",
            "additionalProperties": { "type": "string" },
        }),
        KeyKind::Table(keys) => table(keys),
        KeyKind::Tables(keys) => json!({ "type": "array", "items": table(keys) }),
        KeyKind::Named(keys) => json!({ "type": "object", "additionalProperties": table(keys) }),
    };
    property["description"] = json!(key.about);
    property
}

fn variable() -> Value {
    json!({ "type": "string", "pattern": "\\{\\{" })
}

fn or_variable(kind: Value) -> Value {
    json!({ "anyOf": [kind, variable()] })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Limits, Scenario, SourceText};

    /// The keys that the reader of files names when it meets one that it does not know.
    fn keys_read(text: &str) -> BTreeSet<String> {
        let source = SourceText::new("x.toml", text);
        let error = Scenario::parse(&source, &[], Limits::NONE).expect_err(text).to_string();
        let (_, list) =
            error.split_once("known keys: ").unwrap_or_else(|| panic!("{text}: {error}"));
        list.split(", ").map(str::to_owned).collect()
    }

    fn key_names(keys: &[Key]) -> BTreeSet<String> {
        keys.iter().map(|key| key.name.to_owned()).collect()
    }

    /// The keys of the table at `path` in the schema.
    fn at(path: &str) -> BTreeSet<String> {
        let mut keys = SCENARIO;
        for name in path.split('.').filter(|name| !name.is_empty()) {
            let Some(key) = keys.iter().find(|key| key.name == name) else { continue };
            match key.kind {
                KeyKind::Table(inner) | KeyKind::Tables(inner) | KeyKind::Named(inner) => {
                    keys = inner
                }
                _ => panic!("{path}: {name} is no table"),
            }
        }
        key_names(keys)
    }

    #[test]
    fn the_schema_has_the_keys_that_files_may_have() {
        let mut tables = 0;
        let group = "name = 'x'\n[groups.g]\nclients = 1\n";
        for (path, text) in [
            ("", "no_such_key = 1\n".to_owned()),
            ("target", "name = 'x'\n[groups]\n[target]\nno_such_key = 1\n".to_owned()),
            ("target.tls", "name = 'x'\n[groups]\n[target.tls]\nno_such_key = 1\n".to_owned()),
            (
                "target.tls.test_ca",
                "name = 'x'\n[groups]\n[target.tls]\n\
                 test_ca = { cert = 'c', key = 'k', no_such_key = 1 }\n"
                    .to_owned(),
            ),
            ("targets", "name = 'x'\n[groups]\n[targets.b]\nno_such_key = 1\n".to_owned()),
            ("bridges", "name = 'x'\n[groups]\n[[bridges]]\nno_such_key = 1\n".to_owned()),
            ("actions", "name = 'x'\n[groups]\n[[actions]]\nno_such_key = 1\n".to_owned()),
            (
                "actions.disconnect",
                format!("{group}[[actions]]\ndisconnect = {{ no_such_key = 1 }}\n"),
            ),
            ("actions.pause", format!("{group}[[actions]]\npause = {{ no_such_key = 1 }}\n")),
            ("actions.takeover", format!("{group}[[actions]]\ntakeover = {{ no_such_key = 1 }}\n")),
            ("actions.kill", format!("{group}[[actions]]\nkill = {{ no_such_key = 1 }}\n")),
            ("load", "name = 'x'\n[groups]\n[load]\nno_such_key = 1\n".to_owned()),
            ("phases", "name = 'x'\n[groups]\n[phases]\nno_such_key = 1\n".to_owned()),
            ("groups", format!("{group}no_such_key = 1\n")),
            ("groups.connect", format!("{group}connect = {{ no_such_key = 1 }}\n")),
            (
                "groups.connect.token",
                format!("{group}connect = {{ token = {{ key_file = 'k', no_such_key = 1 }} }}\n"),
            ),
            ("groups.rows", format!("{group}rows = {{ no_such_key = 1 }}\n")),
            ("groups.disconnect", format!("{group}disconnect = {{ no_such_key = 1 }}\n")),
            ("groups.will", format!("{group}will = {{ no_such_key = 1 }}\n")),
            ("groups.offline", format!("{group}offline = {{ no_such_key = 1 }}\n")),
            ("groups.reconnect", format!("{group}reconnect = {{ no_such_key = 1 }}\n")),
            ("groups.login", format!("{group}login = {{ rate = 1, no_such_key = 1 }}\n")),
            ("groups.publish", format!("{group}publish = [{{ no_such_key = 1 }}]\n")),
            ("groups.subscribe", format!("{group}subscribe = [{{ no_such_key = 1 }}]\n")),
            (
                "groups.publish.rate",
                format!("{group}publish = [{{ rate = {{ no_such_key = 1 }} }}]\n"),
            ),
            (
                "groups.publish.trace",
                format!("{group}publish = [{{ trace = {{ no_such_key = 1 }} }}]\n"),
            ),
            (
                "groups.publish.trace.rates",
                format!("{group}publish = [{{ trace = {{ rates = [{{ no_such_key = 1 }}] }} }}]\n"),
            ),
            (
                "groups.publish.payload",
                format!("{group}publish = [{{ payload = {{ no_such_key = 1 }} }}]\n"),
            ),
        ] {
            let mut known = keys_read(&text);
            if path.is_empty() {
                // Taken out before the rest is read.
                known.insert("vars".to_owned());
            }
            assert_eq!(at(path), known, "{path}");
            tables += 1;
        }
        let in_schema = documented_keys().iter().filter(|(path, _)| !path.contains('.')).count();
        assert_eq!(in_schema, SCENARIO.len());
        assert!(tables > 15);
    }

    #[test]
    fn every_key_is_described() {
        for (path, about) in documented_keys() {
            assert!(about.len() > 10, "{path}: {about:?}");
        }
        let schema = schema();
        assert_eq!(schema["required"], json!(["name", "groups"]));
        let group = &schema["properties"]["groups"]["additionalProperties"];
        assert_eq!(group["properties"]["clients"]["anyOf"][0]["type"], "integer");
        assert_eq!(group["additionalProperties"], false);
    }
}
