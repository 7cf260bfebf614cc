//! Programs under observation: responders, the load generator, noisy neighbours. All are children
//! of this program, and end with it or by their own deadline.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::responder::{ResponderOptions, Testimony};
use crate::own_child::OwnChild;
use crate::shell;

/// Where the programs are, and the cores they run on.
pub(super) struct Laboratory {
    pub(super) tacho: PathBuf,
    pub(super) xtask: PathBuf,
    /// Folder of the run directories.
    pub(super) folder: PathBuf,
    pub(super) broker_cpu: usize,
    pub(super) generator_cpu: usize,
}

/// What a run of the program left.
pub(super) struct Ended {
    /// Absent when it was killed at its deadline or by a signal.
    pub(super) exit_code: Option<i32>,
    pub(super) summary: Value,
}

impl Ended {
    /// A figure of the record; an error names it.
    pub(super) fn figure(&self, path: &str) -> Result<f64> {
        let value = self.summary.pointer(path).and_then(Value::as_f64);
        value.with_context(|| format!("the record has no {path}"))
    }

    /// A figure that may be missing.
    pub(super) fn figure_if_any(&self, path: &str) -> Option<f64> {
        self.summary.pointer(path).and_then(Value::as_f64)
    }

    pub(super) fn count(&self, path: &str) -> u64 {
        self.summary.pointer(path).and_then(Value::as_u64).unwrap_or(0)
    }

    pub(super) fn text(&self, path: &str) -> String {
        self.summary.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

impl Laboratory {
    /// Starts a responder on the broker's core.
    pub(super) fn responder(&self, options: &ResponderOptions) -> Result<ResponderProcess> {
        let options = ResponderOptions { cpu: Some(self.broker_cpu), ..options.clone() };
        ResponderProcess::start(shell::command(&self.xtask), &options)
    }

    /// `tacho` with its subcommand, against a responder.
    pub(super) fn command(&self, subcommand: &str, responder: &ResponderProcess) -> Command {
        let mut command = shell::command(&self.tacho);
        command.args([subcommand, "symmetric", "--quiet", "--threads", "1"]);
        command.arg(format!("--broker=mqtt://127.0.0.1:{}", responder.port));
        command.arg(format!("--broker-pid={}", responder.child.0.id()));
        command.arg(format!("--generator-cores={}", self.generator_cpu));
        command
    }

    /// Runs it, at most for this long, and reads its record.
    pub(super) fn run(&self, mut command: Command, seconds_max: u64) -> Result<Ended> {
        let dir = self.folder.join("run");
        if dir.exists() {
            fs::remove_dir_all(&dir).with_context(|| format!("cannot clear {dir:?}"))?;
        }
        command.arg("--dir").arg(&dir).stdout(Stdio::null());
        let errors = self.folder.join("errors.txt");
        command.stderr(File::create(&errors).with_context(|| format!("cannot write {errors:?}"))?);
        let shown = shell::display(&command);
        let child = command.spawn().with_context(|| format!("cannot start `{shown}`"))?;
        let exit_code = wait(OwnChild(child), seconds_max)?;
        let text = match fs::read_to_string(dir.join("summary.json")) {
            Ok(text) => text,
            // Killed at its deadline.
            Err(_) if exit_code.is_none() => "{}".to_owned(),
            Err(_) => {
                let said = fs::read_to_string(&errors).unwrap_or_default();
                bail!("`{shown}` left no record: {}", said.trim());
            }
        };
        let summary = serde_json::from_str(&text).context("summary.json is not JSON")?;
        Ok(Ended { exit_code, summary })
    }

    /// A program that burns cores in bursts until it is dropped.
    pub(super) fn burn(&self, cpus: &[usize], seconds: u64, seed: u64) -> Result<OwnChild> {
        let list: Vec<String> = cpus.iter().map(ToString::to_string).collect();
        let mut command = shell::command(&self.xtask);
        command.args(["trust", "burn", "--cpus", &list.join(",")]);
        command.args(["--seconds", &seconds.to_string(), "--seed", &seed.to_string()]);
        Ok(OwnChild(command.spawn().context("cannot start the noise")?))
    }
}

/// Waits for the end of a child; one that takes too long is killed.
fn wait(mut child: OwnChild, seconds_max: u64) -> Result<Option<i32>> {
    Ok(child.status_within(seconds_max)?.and_then(|status| status.code()))
}

/// A responder.
pub(super) struct ResponderProcess {
    child: OwnChild,
    output: BufReader<ChildStdout>,
    pub(super) port: u16,
}

impl ResponderProcess {
    fn start(mut command: Command, options: &ResponderOptions) -> Result<Self> {
        command.args(["trust", "responder"]).args(options.arguments());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = OwnChild(command.spawn().context("cannot start the responder")?);
        let stdout = child.0.stdout.take().context("the responder's output is not piped")?;
        let mut output = BufReader::new(stdout);
        let mut line = String::new();
        output.read_line(&mut line).context("cannot read the responder's port")?;
        let port = line.trim().parse().with_context(|| format!("not a port: {line:?}"))?;
        Ok(Self { child, output, port })
    }

    /// Ends it and returns its own record.
    pub(super) fn finish(mut self) -> Result<Testimony> {
        drop(self.child.0.stdin.take());
        let mut line = String::new();
        self.output.read_line(&mut line).context("cannot read the responder's record")?;
        serde_json::from_str(&line).with_context(|| format!("not a record: {line:?}"))
    }
}
