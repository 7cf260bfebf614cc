//! A small load that sends its figures to services.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use libtest_mimic::Failed;
use serde_json::Value;

use crate::process::Running;
use crate::{TACHO, Verdict};

/// A run that has sent its points to services and to a file.
pub(crate) struct Sent {
    pub(crate) record: Value,
    /// The objects of the file.
    pub(crate) objects: Vec<Value>,
}

/// Runs it with files in `folder`, and sends to `outs`.
pub(crate) fn run(folder: &Path, outs: &[&str]) -> Result<Sent, Failed> {
    let (directory, points) = (folder.join("run"), folder.join("points.jsonl"));
    let mut command = Command::new(TACHO);
    command.args(["run", "symmetric", "--quiet", "--warmup", "1s", "--hold", "3s"]);
    command.args(["--tolerate", "steal=100%,others=100%,waiting=100%"]);
    let variables = ["publishers=10", "subscribers=10", "target_throughput=1000", "ramp_up=200ms"];
    command.args(variables.iter().flat_map(|variable| ["--var", variable]));
    command.args(outs.iter().flat_map(|out| ["--out", out]));
    command.args(["--out", &format!("json={}", points.display())]);
    command.arg("--dir").arg(&directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (status, said) = Running::start(command)?.finish()?;
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|error| format!("{error}; {status}: {said:#?}"))
    };
    let record = serde_json::from_str(&read(&directory.join("summary.json"))?)
        .map_err(|error| error.to_string())?;
    let points = read(&points)?;
    let objects: Result<Vec<Value>, _> = points.lines().map(serde_json::from_str).collect();
    Ok(Sent { record, objects: objects.map_err(|error| error.to_string())? })
}

impl Sent {
    /// Insists that services took everything.
    pub(crate) fn all_arrived(&self) -> Verdict {
        let findings = &self.record["findings"];
        match findings.to_string().contains("output_lost") {
            true => Err(format!("not everything was taken: {findings}").into()),
            false => Ok(()),
        }
    }

    /// What the points of the load have of a count, over all seconds.
    pub(crate) fn counted(&self, count: &str) -> f64 {
        let loads = self.objects.iter().filter(|object| object["series"] == "mqtt_load");
        loads.filter_map(|object| object["values"][count].as_f64()).sum()
    }
}
