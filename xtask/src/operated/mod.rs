//! `cargo xtask operated`: a broker with a million sessions is asked everything by its management
//! API while clients load it. Neither its turns nor the clients may notice.

mod api;
mod asked;
mod broker;
mod conclusion;
mod echo;
mod round;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::bench::machine::{Machine, utc_now};
use crate::floor::{pin_self_to, raise_descriptor_limit};
use crate::kept_record;
use crate::shell;
use api::Api;
use asked::{Asker, Requests};
use broker::OperatedBroker;
use conclusion::OperatedBounds;
use round::{LoadSeen, OperatedRound};

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Sessions whose clients are away
    #[arg(long, default_value_t = 1_000_000)]
    sessions: u64,
    /// Messages per second in, of 100 publishers
    #[arg(long, default_value_t = 15_000)]
    rate: u64,
    /// Rounds, each of a run without requests and one with
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Measured seconds of a run
    #[arg(long, default_value_t = 8)]
    seconds: u64,
    /// The program; without it that of this tree, built in release
    #[arg(long, value_name = "PROGRAM")]
    tacho: Option<PathBuf>,
    /// Keep a record: the last part of its name under bench/runs
    #[arg(long, value_name = "NAME")]
    record: Option<String>,
    /// Core of the broker
    #[arg(long, default_value_t = 0)]
    broker_cpu: usize,
    /// Core of the generator and of what asks
    #[arg(long, default_value_t = 1)]
    generator_cpu: usize,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if options.rounds == 0 || options.seconds == 0 || options.rate < 100 {
        bail!("--rounds and --seconds must be above 0, and --rate at least 100");
    }
    raise_descriptor_limit()?;
    let tacho = shell::tacho(options.tacho.as_deref())?;
    let folder = shell::target_dir().join("operated");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot clear the folder of an earlier time")?;
    }
    fs::create_dir_all(&folder).context("cannot make a folder")?;
    let started = utc_now()?;
    let broker = OperatedBroker::start(&tacho, &folder, (options.broker_cpu, options.sessions))?;
    // On the broker's core: a client on another one holds locks of the broker's sockets while the
    // host stops its processor, and the broker spins in the kernel for 3 ms.
    pin_self_to(&[options.broker_cpu])?;
    broker.populate(options.sessions)?;
    let made_ms_max = broker.turns()?.cpu_max_s * 1e3;
    println!(
        "{} sessions, {:.0} MiB; the longest turn while they were made: {made_ms_max:.2} ms of CPU",
        options.sessions,
        broker.rss_bytes()? as f64 / 1048576.0
    );
    pin_self_to(&[options.generator_cpu])?;
    let api = Api::new(broker.socket());
    let pages = asked::all_pages(&api, options.sessions)?;
    let mut loads = Loads { options, tacho: &tacho, folder: &folder, broker };
    let mut rounds = Vec::new();
    for number in 0..options.rounds {
        rounds.push(loads.round(number, &api)?);
    }
    let conclusion = OperatedBounds::of(&rounds);
    println!("{conclusion}");
    if let Some(name) = &options.record {
        let machine = Machine::look();
        let record = json!({
            "schema_version": 2, "started_at": started, "machine": machine,
            "sessions": options.sessions, "rate_in_per_s": options.rate, "pages": pages,
            "turn_cpu_ms_max_made": made_ms_max, "rounds": rounds, "conclusion": conclusion,
        });
        let text = format!(
            "# A broker that is operated, {}\n\n`cargo xtask operated`, started {started}, \
             revision {}. {}, {} cores. {} sessions whose clients are away, {} messages/s in; \
             requests go through all of the management API.\n\n{conclusion}\n",
            kept_record::date(&started),
            machine.revision,
            machine.cpu,
            machine.cores,
            options.sessions,
            options.rate,
        );
        let folder = kept_record::keep((name, &started), text, &record, Vec::new())?;
        println!("record: {}", folder.display());
    }
    conclusion.result()
}

struct Loads<'a> {
    options: &'a Options,
    tacho: &'a Path,
    folder: &'a Path,
    broker: OperatedBroker,
}

impl Loads<'_> {
    /// A run without requests and one with, in turn which is first, and a bare echo for as long as
    /// both.
    fn round(&mut self, number: usize, api: &Api) -> Result<OperatedRound> {
        let options = self.options;
        let (alone, (asked, requests)) = if number.is_multiple_of(2) {
            let alone = self.load_alone(number)?;
            (alone, self.load_asked(number, api)?)
        } else {
            let asked = self.load_asked(number, api)?;
            (self.load_alone(number)?, asked)
        };
        let lasts = Duration::from_secs(2 * options.seconds);
        let cpus = (options.broker_cpu, options.generator_cpu);
        let echo_cpu_ms_max = echo::echo_cpu_ms_max(lasts, cpus)?;
        let round = OperatedRound { alone, asked, requests, echo_cpu_ms_max };
        println!("{round}");
        Ok(round)
    }

    fn load_alone(&mut self, number: usize) -> Result<LoadSeen> {
        self.restart()?;
        self.load(&format!("alone-{number}"))
    }

    fn load_asked(&mut self, number: usize, api: &Api) -> Result<(LoadSeen, Requests)> {
        self.restart()?;
        let asker = Asker::start(api, self.options.sessions);
        let asked = self.load(&format!("asked-{number}"))?;
        Ok((asked, asker.end()?))
    }

    /// The broker knows its longest turn since it started only.
    fn restart(&mut self) -> Result<()> {
        self.broker.restart()?;
        pin_self_to(&[self.options.generator_cpu])
    }

    fn load(&self, name: &str) -> Result<LoadSeen> {
        let run = self.folder.join(name);
        let mut command = shell::command(self.tacho);
        command.args(["run", "symmetric", "--quiet", "--beyond-calibration"]);
        command.arg(format!("--broker=mqtt://127.0.0.1:{}", self.broker.port()));
        command.arg("--dir").arg(&run);
        for (name, value) in [
            ("publishers", 100),
            ("subscribers", 100),
            ("target_throughput", self.options.rate),
            ("duration", self.options.seconds),
        ] {
            command.args(["--var", &format!("{name}={value}")]);
        }
        let core = self.options.generator_cpu.to_string();
        command.args(["--generator-cores", &core, "--threads", "1"]);
        // Its exit code is that of its verdict, which is read from its record.
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().context("cannot start")?;
        let text = fs::read(run.join("summary.json")).context("a run left no summary")?;
        let summary: Value = serde_json::from_slice(&text).context("summary.json")?;
        let figure = |path: &str| summary.pointer(path).and_then(Value::as_f64);
        let turns = self.broker.turns()?;
        Ok(LoadSeen {
            p99_us: figure("/steps/0/latency_us/p99").context("a run has no p99")?,
            lost: figure("/steps/0/lost").unwrap_or(0.0) as u64,
            verdict: summary["verdict"].as_str().unwrap_or("unknown").to_owned(),
            turn_cpu_ms_max: turns.cpu_max_s * 1e3,
            turn_units_max: turns.units_max,
            slow_turns: turns.slow,
        })
    }
}
