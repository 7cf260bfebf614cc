//! Bridges of a running broker: made, removed, and what is wanted of them.

use std::path::Path;

use serde_json::{Value, json};

use super::Said;
use super::arguments::BridgeWish;
use super::client::{CtlClient, encoded};
use super::shown::text;
use crate::exit::{self, Failure};
use crate::table::printable;

pub(super) fn bridge(client: &CtlClient, command: &BridgeWish) -> Result<Said, Failure> {
    let (name, mode, words) = match command {
        BridgeWish::Add { file, name, replace, discard } => {
            return add(client, file, name.as_deref(), (*replace, *discard));
        }
        BridgeWish::Remove { name, discard } => return remove(client, name, *discard),
        BridgeWish::Pause { name } => (name, "paused", "is paused: messages wait for it"),
        BridgeWish::Drain { name } => {
            (name, "draining", "takes no new messages, and rests once those that wait are gone")
        }
        BridgeWish::Stop { name } => (name, "stopped", "is stopped"),
        BridgeWish::Resume { name } => (name, "running", "forwards messages"),
    };
    let answer = client.post(&path_of(name), &json!({"mode": mode}))?;
    Ok(Said::new(answer, format!("{} {words}\n", printable(name))))
}

fn path_of(name: &str) -> String {
    format!("/bridges/{}", encoded(name))
}

fn add(
    client: &CtlClient,
    file: &Path,
    name: Option<&str>,
    (replace, discard): (bool, bool),
) -> Result<Said, Failure> {
    let invalid =
        |why: String| Failure::new(exit::INVALID_CONFIG, format!("{}: {why}", file.display()));
    let content = std::fs::read_to_string(file).map_err(|error| invalid(error.to_string()))?;
    // The whole error would show a line, which may have a password.
    let table: toml::Table =
        content.parse().map_err(|error: toml::de::Error| invalid(error.message().to_owned()))?;
    let all = table.get("bridges").and_then(toml::Value::as_array);
    let wanted: Vec<&toml::Value> = all
        .into_iter()
        .flatten()
        .filter(|bridge| {
            name.is_none_or(|name| bridge.get("name").and_then(|n| n.as_str()) == Some(name))
        })
        .collect();
    if wanted.is_empty() {
        return Err(invalid(match name {
            None => "it has no [[bridges]]".to_owned(),
            Some(name) => format!("it has no bridge '{name}'"),
        }));
    }
    let (mut answers, mut shown) = (Vec::new(), String::new());
    for bridge in wanted {
        // Dates have no counterpart in JSON, and no key of a bridge is one.
        let keys = serde_json::to_value(bridge).map_err(|error| invalid(error.to_string()))?;
        let path = format!("/bridges?replace={replace}&discard={discard}");
        let answer = client.post(&path, &keys)?;
        shown.push_str(&printable(&text(&answer, "name")));
        shown.push_str(match answer["lasting"] == true {
            true => " is made\n",
            false => " is made; it ends with the broker, which has no --management-store\n",
        });
        for warning in answer["warnings"].as_array().into_iter().flatten() {
            shown.push_str(&format!("note: {}\n", printable(warning.as_str().unwrap_or_default())));
        }
        answers.push(answer);
    }
    Ok(Said::new(Value::Array(answers), shown))
}

fn remove(client: &CtlClient, name: &str, discard: bool) -> Result<Said, Failure> {
    let discard = discard.then_some("true");
    let answer = client.delete(&path_of(name), &[("discard", discard)])?;
    Ok(Said::new(answer, format!("{} is removed\n", printable(name))))
}
