//! A small load whose files other programs read.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use libtest_mimic::Failed;
use serde_json::Value;

use crate::process::Running;

/// Length of its measured phase.
pub(crate) const HOLD_S: f64 = 4.0;
/// Messages of its measured phase.
pub(crate) const MESSAGES: u64 = 1_600;

/// Runs pairs of clients for some seconds; the record that `directory` has then. Whether the
/// machine was calm does not matter: files and record are of the same samples.
pub(crate) fn run(directory: &Path) -> Result<Value, Failed> {
    let mut command = Command::new(crate::TACHO);
    command.args(["run", "symmetric", "--quiet", "--warmup", "1s", "--hold", "4s"]);
    command.args(["--tolerate", "steal=100%,others=100%,waiting=100%"]);
    let variables = ["publishers=10", "subscribers=10", "target_throughput=400", "ramp_up=200ms"];
    command.args(variables.iter().flat_map(|variable| ["--var", variable]));
    command.arg("--dir").arg(directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (status, said) = Running::start(command)?.finish()?;
    let text = fs::read_to_string(directory.join("summary.json"))
        .map_err(|error| format!("{error}; {status}: {said:#?}"))?;
    serde_json::from_str(&text).map_err(|error| error.to_string().into())
}

/// The number at `path` in `value`.
pub(crate) fn number(value: &Value, path: &str) -> Result<f64, Failed> {
    let found = value.pointer(path).and_then(Value::as_f64);
    found.ok_or_else(|| format!("no {path} in {value:#}").into())
}

/// Two figures that must agree within `tolerance`.
pub(crate) fn agree(what: &str, found: f64, expected: f64, tolerance: f64) -> Result<(), Failed> {
    match (found - expected).abs() <= tolerance {
        true => Ok(()),
        false => Err(format!("{what} is {found}, not {expected} within {tolerance}").into()),
    }
}
