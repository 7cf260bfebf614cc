//! Bridges of a running broker: made, removed, and what is wanted of them.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};

use super::Said;
use super::client::{CtlClient, encoded};
use super::shown::text;
use crate::exit::{self, Failure};
use crate::table::printable;

#[derive(Subcommand, Debug)]
pub(super) enum BridgeWish {
    /// Make the bridges of a file, which are stored beside the configuration. Needs the role
    /// administrator
    Add {
        /// A file with [[bridges]], as in a broker's configuration
        file: PathBuf,

        /// Only this one of them
        #[arg(long, value_name = "NAME")]
        name: Option<String>,

        /// In the place of a bridge of the same name that was made so
        #[arg(long)]
        replace: bool,

        /// Drop what waits for that one
        #[arg(long, requires = "replace")]
        discard: bool,
    },
    /// Remove a bridge that was made so. Needs the role administrator
    Remove {
        /// Its name
        name: String,

        /// Drop what waits for it
        #[arg(long)]
        discard: bool,
    },
    /// Connect once as a bridge would, from the broker's host; nothing is forwarded
    Test {
        /// Its name
        #[arg(required_unless_present = "file")]
        name: Option<String>,

        /// Test the [[bridges]] of a file, which are not made, or the one with the name. Needs the
        /// role administrator
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Close its connections; messages wait for it
    Pause {
        /// Its name
        name: String,
    },
    /// Take no new messages, deliver those that wait, then close its connections
    Drain {
        /// Its name
        name: String,
    },
    /// Take no new messages and close its connections; what waits stays
    Stop {
        /// Its name
        name: String,
    },
    /// Forward messages again
    Resume {
        /// Its name
        name: String,
    },
}

pub(super) fn bridge(client: &CtlClient, command: &BridgeWish) -> Result<Said, Failure> {
    let (name, mode, words) = match command {
        BridgeWish::Add { file, name, replace, discard } => {
            return add(client, file, name.as_deref(), (*replace, *discard));
        }
        BridgeWish::Test { name, file } => return test(client, name.as_deref(), file.as_deref()),
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

/// The bridges of a file, or the one with the name.
fn of_file(file: &Path, name: Option<&str>) -> Result<Vec<Value>, Failure> {
    let invalid =
        |why: String| Failure::new(exit::INVALID_CONFIG, format!("{}: {why}", file.display()));
    let content = std::fs::read_to_string(file).map_err(|error| invalid(error.to_string()))?;
    // The whole error would show a line, which may have a password.
    let table: toml::Table =
        content.parse().map_err(|error: toml::de::Error| invalid(error.message().to_owned()))?;
    let all = table.get("bridges").and_then(toml::Value::as_array);
    let wanted = all.into_iter().flatten().filter(|bridge| {
        name.is_none_or(|name| bridge.get("name").and_then(|n| n.as_str()) == Some(name))
    });
    // Dates have no counterpart in JSON, and no key of a bridge is one.
    let keys = wanted.map(serde_json::to_value).collect::<Result<Vec<Value>, _>>();
    let keys = keys.map_err(|error| invalid(error.to_string()))?;
    match (keys.is_empty(), name) {
        (false, _) => Ok(keys),
        (true, None) => Err(invalid("it has no [[bridges]]".to_owned())),
        (true, Some(name)) => Err(invalid(format!("it has no bridge '{name}'"))),
    }
}

fn test(client: &CtlClient, name: Option<&str>, file: Option<&Path>) -> Result<Said, Failure> {
    let answers = match (file, name) {
        (None, None) => Vec::new(),
        (None, Some(name)) => vec![client.post_nothing(&format!("{}/test", path_of(name)))?],
        (Some(file), name) => {
            let wanted = of_file(file, name)?;
            let answers = wanted.iter().map(|keys| client.post("/bridge-test", keys));
            answers.collect::<Result<_, _>>()?
        }
    };
    let mut shown = String::new();
    for answer in &answers {
        let (name, remote) = (text(answer, "name"), text(answer, "remote"));
        let said = match answer["problem"].as_str() {
            None => format!("is accepted by {remote} in {} ms", text(answer, "took_ms")),
            Some(problem) => format!("is not accepted by {remote}: {problem}"),
        };
        shown.push_str(&format!("{} {}\n", printable(&name), printable(&said)));
        if answer["certificate_verified"] == false {
            shown.push_str("note: the certificate of the remote broker is not verified\n");
        }
    }
    let all_accepted = answers.iter().all(|answer| answer["accepted"] == true);
    let code = if all_accepted { exit::OK } else { exit::THRESHOLD };
    Ok(Said::new(Value::Array(answers), shown).with_code(code))
}

fn add(
    client: &CtlClient,
    file: &Path,
    name: Option<&str>,
    (replace, discard): (bool, bool),
) -> Result<Said, Failure> {
    let (mut answers, mut shown) = (Vec::new(), String::new());
    for keys in of_file(file, name)? {
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
