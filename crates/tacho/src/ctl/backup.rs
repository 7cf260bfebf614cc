//! A backup of a running broker.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::Said;
use super::client::CtlClient;
use super::shown::{number, text};
use crate::exit::{self, Failure};
use crate::table::bytes;

/// How often the broker is asked how far it is.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Has the broker make a backup, and waits for it.
pub(super) fn backup(client: &CtlClient, directory: &Path) -> Result<Said, Failure> {
    // The broker has another working directory.
    let directory = std::path::absolute(directory)
        .map_err(|error| Failure::new(exit::INVALID_CONFIG, format!("directory: {error}")))?;
    let mut status = client.post("/backup", &json!({"directory": directory}))?;
    while status["phase"] == "running" {
        std::thread::sleep(LOOK_EVERY);
        status = client.get("/backup", &[])?;
    }
    if let Some(problem) = status["problem"].as_str() {
        return Err(Failure::new(exit::INVALID_CONFIG, problem));
    }
    let said = format!(
        "backup in {}: {} segments up to commit {}, {} linked, {} copied\n",
        text(&status, "directory"),
        number(&status, "segments"),
        number(&status, "commit"),
        bytes(number(&status, "linked_bytes")),
        bytes(number(&status, "copied_bytes")),
    );
    Ok(Said::new(status, said))
}
