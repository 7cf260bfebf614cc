//! The scenario `persistent`, small: what came of it.

use std::process::{Command, Stdio};

use serde_json::Value;

/// A run's exit code and its record.
pub struct Course {
    pub code: Option<i32>,
    pub record: Value,
    pub table: String,
    pub page: String,
}

/// Runs it with ten sessions of twenty messages and further `arguments`.
pub fn persistent(program: &str, arguments: &[&str]) -> Result<Course, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["run", "persistent"]);
    for variable in ["sessions=10", "messages=20", "rate=20", "ramp_up=500ms", "drain=5s"] {
        command.args(["--var", variable]);
    }
    command.args(arguments).arg("--dir").arg(folder.path()).stdin(Stdio::null());
    let output = command.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let read = |name: &str| {
        std::fs::read_to_string(folder.path().join(name))
            .map_err(|error| format!("no {name} ({error}); {}: {said}", output.status))
    };
    let record = serde_json::from_str(&read("summary.json")?).map_err(|error| error.to_string())?;
    if folder.path().join("data").exists() {
        return Err("the broker's directory is still there".to_owned());
    }
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(Course { code: output.status.code(), record, table, page: read("report.html")? })
}

impl Course {
    /// A count of the measured step.
    pub fn count(&self, key: &str) -> u64 {
        self.record["steps"][0][key].as_u64().unwrap_or(u64::MAX)
    }

    /// Is it wrong where `right` is false? Then everything is told.
    pub fn insist(&self, what: &str, right: bool) -> Result<(), String> {
        match right {
            true => Ok(()),
            false => Err(format!("{what}; exit code {:?}: {:#}", self.code, self.record)),
        }
    }
}
