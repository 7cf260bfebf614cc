//! Runs in which something happens while they are measured.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::is_fair;

/// What came of a run.
pub struct Happened {
    pub record: Value,
    pub table: String,
    pub page: String,
    /// The scenario as it was resolved.
    pub scenario: String,
    /// What the first command said.
    pub command_log: String,
}

/// Runs a scenario with small variables.
pub fn run(program: &str, scenario: &str, vars: &[&str], arguments: &[&str]) -> Happened {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(program)
        .args(["run", scenario])
        .args(vars.iter().flat_map(|var| ["--var", var]))
        .args(arguments)
        .arg("--dir")
        .arg(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("tacho runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let read = |name: &str| read(&folder.path().join(name));
    let text = read("summary.json");
    let record = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {said}"));
    Happened {
        record,
        table: String::from_utf8_lossy(&output.stdout).into_owned(),
        page: read("report.html"),
        scenario: read("scenario.toml"),
        command_log: read("command-1.log"),
    }
}

/// A file's text; empty where there is none.
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

impl Happened {
    pub fn actions(&self) -> &[Value] {
        self.record["actions"].as_array().expect("actions")
    }

    /// A figure on top.
    pub fn headline(&self, name: &str) -> f64 {
        let headlines = self.record["headlines"].as_array().expect("headlines");
        let found = headlines.iter().find(|headline| headline["name"] == name);
        let found = found.unwrap_or_else(|| panic!("no {name} in {headlines:#?}"));
        found["value"].as_f64().unwrap_or_else(|| panic!("{name}: {:#}", self.record))
    }

    pub fn group<'v>(step: &'v Value, name: &str) -> &'v Value {
        let groups = step["groups"].as_array().expect("groups");
        groups.iter().find(|group| group["name"] == name).expect(name)
    }

    /// The broker kept its promises. A shared machine may slow both sides.
    pub fn nothing_broken(&self) {
        assert!(is_fair(&self.record), "{:#}", self.record);
        let step = &self.record["steps"][0];
        assert_eq!(step["acknowledged_lost"], 0, "{step:#}");
        assert_eq!(step["violations"]["lost"], 0, "{step:#}");
    }

    /// Fails with all that is known of the run.
    pub fn insist(&self, right: bool, complaint: &str) -> Result<(), String> {
        match right {
            true => Ok(()),
            false => Err(format!("{complaint}\n{}\n{:#}", self.table, self.record)),
        }
    }
}
