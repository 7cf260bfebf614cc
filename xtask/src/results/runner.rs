//! One row: a fresh broker on its core, the generator on the other, for a few seconds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Options;
use super::plan::{Point, Series};
use super::row::Row;
use crate::bench::machine::{self, free_port};
use crate::brokers::Broker;
use crate::shell;

/// What a run takes at most beside its hold: connecting ten thousand clients is part of it.
const EXTRA: Duration = Duration::from_secs(90);

/// What every broker here can take without refusing some.
const CONNECTS_PER_S_MAX: u64 = 2500;

/// Makes the runs.
pub(super) struct RowRunner<'a> {
    pub(super) options: &'a Options,
    pub(super) tacho: PathBuf,
    /// Where runs and configurations lie.
    pub(super) folder: PathBuf,
}

impl RowRunner<'_> {
    /// Runs a row, once the machine is idle.
    pub(super) fn row(&self, broker: &Broker, series: &Series, point: &Point) -> Result<Row> {
        machine::wait_until_idle(self.options.idle_wait);
        let mut row = Row {
            broker: broker.key.clone(),
            series: series.name.clone(),
            label: point.label.clone(),
            scenario: series.scenario.clone(),
            vars: point.vars.iter().cloned().collect(),
            started_at: machine::utc_now()?,
            attempts: 1,
            ..Row::default()
        };
        let dir = self.folder.join("run");
        if dir.exists() {
            fs::remove_dir_all(&dir).with_context(|| format!("cannot clear {dir:?}"))?;
        }
        let mut command = shell::command(&self.tacho);
        command.args(["run", &series.scenario, "--quiet", "--beyond-calibration"]);
        command.arg("--dir").arg(&dir);
        for (name, value) in &point.vars {
            command.arg(format!("--var={name}={value}"));
        }
        let options = self.options;
        command.arg(format!("--hold={}s", options.hold));
        command.arg(format!("--warmup={}s", options.warmup));
        let ramp_up = options.ramp_up.max(point.needs.clients / CONNECTS_PER_S_MAX);
        command.arg(format!("--ramp-up={ramp_up}s"));
        command.arg(format!("--timing={}", options.timing));
        command.args(self.brokers(broker, series, point)?);
        command.arg(format!("--broker-cores={}", options.broker_cpu));
        command.arg(format!("--generator-cores={}", options.generator_cpu));
        command.args(["--threads", "1"]);
        let said = self.wait(&mut command)?;
        match fs::read_to_string(dir.join("summary.json")) {
            Ok(text) => row.take(&serde_json::from_str::<Value>(&text).context("odd summary")?),
            Err(_) => {
                row.verdict = "aborted".to_owned();
                row.reasons = vec![said.lines().next().unwrap_or("no record").trim().to_owned()];
            }
        }
        // A record is read on other machines.
        for reason in &mut row.reasons {
            for folder in [&self.folder, &shell::target_dir(), &shell::root()] {
                *reason = reason.replace(&format!("{}/", folder.display()), "");
            }
        }
        Ok(row)
    }

    /// How the row's broker, or its pair of brokers, is started.
    fn brokers(&self, broker: &Broker, series: &Series, point: &Point) -> Result<Vec<String>> {
        let persistent = is_persistent(series);
        if !point.needs.bridged {
            let command = broker.start(&self.folder, persistent)?;
            return Ok(vec![format!("--broker-cmd={command}")]);
        }
        let ports = [free_port()?, free_port()?];
        let pair = broker.bridged(&self.folder, ports)?;
        let pair = pair.into_iter().flatten().enumerate();
        Ok(pair
            .map(|(index, command)| format!("--broker-cmd=node{}={command}", index + 1))
            .collect())
    }

    /// Waits for the run's end; returns what it had to complain about.
    fn wait(&self, command: &mut std::process::Command) -> Result<String> {
        let errors = self.folder.join("stderr.txt");
        command.stdout(Stdio::null());
        command.stderr(fs::File::create(&errors).context("cannot create a file")?);
        let shown = shell::display(command);
        let mut child = command.spawn().with_context(|| format!("cannot run {shown}"))?;
        let deadline = Instant::now() + EXTRA + Duration::from_secs(self.options.hold);
        loop {
            if child.try_wait().context("cannot wait for the run")?.is_some() {
                return Ok(fs::read_to_string(&errors).unwrap_or_default());
            }
            if Instant::now() > deadline {
                // Its broker ends with it.
                let _ = child.kill();
                let _ = child.wait();
                bail!("`{shown}` does not end");
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Sessions of the row outlive their connections.
pub(super) fn is_persistent(series: &Series) -> bool {
    series.scenario.starts_with("false_")
}

/// A folder below `bench/runs` that has the records of `suite`, the newest one.
pub(super) fn newest_record(suite: &str) -> Result<PathBuf> {
    let runs = shell::root().join("bench/runs");
    let mut folders: Vec<PathBuf> = fs::read_dir(&runs)
        .with_context(|| format!("cannot list {runs:?}"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_record(path, suite))
        .collect();
    folders.sort();
    folders.pop().with_context(|| format!("there is no record of {suite} in bench/runs yet"))
}

fn is_record(path: &Path, suite: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(&format!("-{suite}")) && path.join("rows.jsonl").is_file()
}
