//! `cargo xtask results`: both published reports again, with Tacho and other brokers side by side.
//!
//! The rows of a suite, one after the other; each row with every broker in turn, so that a slow
//! minute of the machine hits all of them. Every run has a fresh broker on one core and the
//! generator on another. What was measured is kept row by row; `cargo xtask documents`, which
//! needs the feature `results`, writes the document.

mod plan;
mod row;
mod runner;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::bench::machine::{self, Machine};
use crate::brokers::{self, Broker};
use crate::shell;
use plan::{Ladders, Point, Series, Suite};
use row::Rows;
use runner::{RowRunner, is_persistent};

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// The report to measure again
    suite: SuiteName,
    /// Only rows whose series or label contains this; may be given several times
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
    /// Only these brokers (tacho, mosquitto, mochi, rumqttd); all that are installed by default
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    brokers: Vec<String>,
    /// The release program to measure with, instead of building it; by default that in the
    /// variable TACHO
    #[arg(long, value_name = "PATH")]
    tacho: Option<PathBuf>,
    /// Measured seconds of every row; 4 for the guide, 3 for the BifroMQ report
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    hold: u64,
    /// Seconds of load before them
    #[arg(long, default_value_t = 1)]
    warmup: u64,
    /// Seconds in which the clients connect, at least; 2,500 a second at most
    #[arg(long, default_value_t = 1)]
    ramp_up: u64,
    /// How the generator waits for the next message: auto, sleep or batch
    #[arg(long, default_value = "auto", value_parser = ["auto", "sleep", "batch"])]
    timing: String,
    /// How often a row is run when the machine disturbs it: again when all have been run
    #[arg(long, default_value_t = 3)]
    attempts: u32,
    /// Minutes after which no row is repeated
    #[arg(long, default_value_t = 16)]
    minutes: u64,
    /// Seconds to wait before each run until the machine is idle
    #[arg(long, default_value_t = 10)]
    idle_wait: u64,
    /// Two steps of each ladder and a few other rows, a second each, into the target folder: to
    /// see that everything works
    #[arg(long, conflicts_with_all = ["render", "resume"])]
    quick: bool,
    /// Keep the rows that an interrupted measurement has left, and go on
    #[arg(long)]
    resume: bool,
    /// Write the documents again from the newest record, without measuring
    #[arg(long)]
    render: bool,
    /// Core of the broker
    #[arg(long, default_value_t = 0)]
    broker_cpu: usize,
    /// Core of the generator
    #[arg(long, default_value_t = 1)]
    generator_cpu: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SuiteName {
    /// The guide that measured EMQX: ladders over throughput
    Guide,
    /// The report of BifroMQ, row by row
    Bifromq,
}

impl SuiteName {
    fn name(self) -> &'static str {
        match self {
            Self::Guide => "guide",
            Self::Bifromq => "bifromq",
        }
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut options = options.clone();
    let suite = options.suite.name();
    if options.hold == 0 {
        options.hold = if options.suite == SuiteName::Guide { 4 } else { 3 };
    }
    if options.quick {
        (options.hold, options.attempts, options.idle_wait) = (1, 1, 0);
    }
    if options.broker_cpu == options.generator_cpu {
        bail!("broker and generator need a core each");
    }
    if options.render {
        return render(&runner::newest_record(suite)?, &documents(suite), true);
    }
    let tacho = program(&options)?;
    let work = shell::target_dir().join("results").join(suite);
    if !options.resume && work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("cannot clear {work:?}"))?;
    }
    fs::create_dir_all(&work).with_context(|| format!("cannot create {work:?}"))?;
    // Names such as 1k_1k_qos1_p32_1mps are scenarios of MQTT 3.1.1.
    let mqtt5 = options.suite == SuiteName::Guide;
    let brokers = brokers::chosen(&options.brokers, &tacho, mqtt5)?;
    let started = Instant::now();
    let started_at = machine::utc_now()?;
    let mut measurement = Measurement {
        suite: Suite::ask(&tacho, suite)?,
        rows: Rows::open(&work)?,
        runner: RowRunner { options: &options, tacho: tacho.clone(), folder: work.clone() },
        brokers,
        ladders: Ladders::default(),
        left_out: Vec::new(),
        turn: 0,
    };
    measurement.all()?;
    measurement.again(started + Duration::from_secs(60 * options.minutes))?;
    let header = measurement.header(&started_at)?;
    fs::write(work.join("record.json"), header).context("cannot write record.json")?;
    println!("{} rows in {:.0} s", measurement.rows.all.len(), started.elapsed().as_secs_f64());
    if options.quick || !options.only.is_empty() {
        let out = work.join("document");
        render(&work, &out, false)?;
        println!("document: {}", out.display());
        return Ok(());
    }
    let date = started_at.get(..10).unwrap_or(&started_at);
    let record = shell::root().join("bench/runs").join(format!("{date}-{suite}"));
    keep(&work, &record, suite)?;
    render(&record, &documents(suite), true)
}

/// The release program, built where none is given.
fn program(options: &Options) -> Result<PathBuf> {
    let given = options.tacho.clone().or_else(|| env::var_os("TACHO").map(PathBuf::from));
    shell::tacho(given.as_deref())
}

fn documents(suite: &str) -> PathBuf {
    shell::root().join("docs/results").join(suite)
}

/// Writes the documents of a record; of the real ones the README has the best of it.
fn render(record: &Path, out: &Path, readme: bool) -> Result<()> {
    let relative = |path: &Path| {
        path.strip_prefix(shell::root()).map_or_else(|_| path.to_path_buf(), Path::to_path_buf)
    };
    let mut command = shell::cargo();
    command.args(["run", "--quiet", "--package", "xtask", "--features", "results", "--"]);
    command.arg("documents").arg(relative(record)).arg("--out").arg(relative(out));
    if readme {
        command.args(["--readme", "README.md"]);
    }
    shell::run(&mut command)
}

/// Copies what the documents are written from to where it stays.
fn keep(work: &Path, record: &Path, suite: &str) -> Result<()> {
    fs::create_dir_all(record).with_context(|| format!("cannot create {record:?}"))?;
    for file in ["record.json", "rows.jsonl"] {
        fs::copy(work.join(file), record.join(file))
            .with_context(|| format!("cannot copy {file} to {record:?}"))?;
    }
    let text = format!(
        "# Record of `docs/results/{suite}`\n\n`record.json`: when, where and with what; \
         `rows.jsonl`: a line per run, with the fields of `summary.json` that the document \
         needs. `cargo xtask results {suite} --render` writes the document from them again.\n"
    );
    fs::write(record.join("README.md"), text).context("cannot write README.md")
}

/// A measurement on its way.
struct Measurement<'a> {
    suite: Suite,
    brokers: Vec<Broker>,
    runner: RowRunner<'a>,
    rows: Rows,
    ladders: Ladders,
    left_out: Vec<serde_json::Value>,
    /// The broker that begins, another one in every row.
    turn: usize,
}

impl Measurement<'_> {
    fn all(&mut self) -> Result<()> {
        let options = self.runner.options;
        for (number, series) in self.suite.series.clone().iter().enumerate() {
            for index in 0..series.steps_max() {
                let Some(point) = series.step(index) else { continue };
                let wanted = options.only.is_empty()
                    || options.only.iter().any(|part| {
                        series.name.contains(part.as_str()) || point.label.contains(part.as_str())
                    });
                let sampled = match series.points.len() {
                    1 => number % 6 == 0,
                    _ => index < 2,
                };
                if wanted && (!options.quick || sampled) {
                    self.step(series, index, &point)?;
                }
            }
        }
        Ok(())
    }

    /// One step with every broker.
    fn step(&mut self, series: &Series, index: usize, point: &Point) -> Result<()> {
        if let Some(lacks) = &point.lacks {
            self.leave_out("", series, point, lacks);
            return Ok(());
        }
        self.turn += 1;
        for at in 0..self.brokers.len() {
            let broker = self.brokers[(at + self.turn) % self.brokers.len()].clone();
            if let Some(row) = self.rows.find(&broker.key, &series.name, &point.label) {
                self.ladders.note(series, &row.clone());
                continue;
            }
            if let Some(why) = broker.refuses(point.needs.bridged, is_persistent(series)) {
                self.leave_out(&broker.key, series, point, why);
                continue;
            }
            if let Some(why) = self.ladders.over(&broker.key, series, index) {
                // Beyond the published steps no row is missing.
                if index < series.points.len() {
                    self.leave_out(&broker.key, series, point, why);
                }
                continue;
            }
            let row = self.runner.row(&broker, series, point)?;
            println!("{}", line(&row));
            self.ladders.note(series, &row);
            self.rows.push(row)?;
        }
        Ok(())
    }

    /// Runs rows that the machine disturbed once more, as long as there is time.
    fn again(&mut self, until: Instant) -> Result<()> {
        for attempt in 2..=self.runner.options.attempts {
            let disturbed = self.rows.all.iter().filter(|row| row.is_disturbed());
            for known in disturbed.cloned().collect::<Vec<_>>() {
                if Instant::now() > until {
                    return Ok(());
                }
                let Some((broker, series, point)) = self.place(&known) else { continue };
                let mut row = self.runner.row(&broker, &series, &point)?;
                println!("{}", line(&row));
                if row.is_disturbed() || row.step.is_none() {
                    row = known;
                }
                row.attempts = attempt;
                self.rows.replace(row)?;
            }
        }
        Ok(())
    }

    /// What a row was a run of.
    fn place(&self, row: &row::Row) -> Option<(Broker, Series, Point)> {
        let broker = self.brokers.iter().find(|broker| broker.key == row.broker)?;
        let series = self.suite.series.iter().find(|series| series.name == row.series)?;
        let mut points = (0..series.steps_max()).filter_map(|index| series.step(index));
        let point = points.find(|point| point.label == row.label)?;
        Some((broker.clone(), series.clone(), point))
    }

    fn leave_out(&mut self, broker: &str, series: &Series, point: &Point, reason: &str) {
        self.left_out.push(json!({
            "broker": broker,
            "series": series.name,
            "label": point.label,
            "reason": reason,
        }));
    }

    /// What the rows have in common.
    fn header(&self, started_at: &str) -> Result<String> {
        let options = self.runner.options;
        let suite = options.suite.name();
        let mut seen = Machine::look();
        seen.mosquitto.clear();
        let first = self.rows.all.iter().map(|row| row.started_at.as_str()).min();
        let header = json!({
            "schema_version": 1,
            "suite": suite,
            "command": format!(
                "cargo xtask results {suite} --hold {} --warmup {} --ramp-up {} --timing {}",
                options.hold, options.warmup, options.ramp_up, options.timing
            ),
            "started_at": first.unwrap_or(started_at),
            "ended_at": machine::utc_now()?,
            "hold_s": options.hold,
            "warmup_s": options.warmup,
            "timing": options.timing,
            "attempts": options.attempts,
            "broker_core": options.broker_cpu,
            "generator_core": options.generator_cpu,
            "machine": seen,
            "descriptors_max": descriptors_max(),
            "brokers": self.brokers,
            "left_out": self.left_out,
        });
        Ok(serde_json::to_string_pretty(&header).context("cannot write JSON")? + "\n")
    }
}

/// The hard limit of open files.
fn descriptors_max() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// A row on the terminal.
fn line(row: &row::Row) -> String {
    let step = row.step.as_ref();
    let figure = |path: &str| {
        let value = step.and_then(|step| step.pointer(path)).and_then(serde_json::Value::as_f64);
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"))
    };
    let cpu = row.cpu_percent().map_or_else(|| "-".to_owned(), |cpu| format!("{cpu:.1}"));
    format!(
        "{:<10} {:<34} {:>8} TPS  {cpu:>5} %  mean {:>7} us  p99 {:>8} us  generator {:>3} %  {}{}",
        row.broker,
        format!("{}/{}", row.series, row.label),
        figure("/tps"),
        figure("/latency_us/mean"),
        figure("/latency_us/p99"),
        figure("/generator_thread_busy_max_percent"),
        row.verdict,
        row.reasons.first().map(|why| format!(": {why}")).unwrap_or_default(),
    )
}
