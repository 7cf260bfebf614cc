//! Does the load generator agree with an independent client?
//!
//! The same load on the same broker, in turns: by the pairs of the floor, which never sleep, and by
//! `tacho run`. The broker's CPU per message and the median latency must agree; a generator that
//! wakes up late, or makes the broker pay for its wake-ups, does not.

mod judge;

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;

use crate::bench::machine::{Machine, Steal, free_port, utc_now, wait_until_idle};
use crate::floor::{PairsFigures, pin_self_to};
use crate::kept_record;
use crate::own_child::OwnChild;
use crate::shell;
use judge::{Agreement, Conclusion, JUDGED, Round, RunFigures};

const SCENARIO: &str = "bench/scenarios/pairs.toml";

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Rounds that count; a round in which the hypervisor took more than 2 % is made again
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Most rounds to make, of each load
    #[arg(long, default_value_t = 10)]
    rounds_max: usize,
    /// Measured seconds of every run
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Loads, in thousands of messages in + out per second
    #[arg(long, value_delimiter = ',', default_values_t = [10, 20])]
    tps_k: Vec<u64>,
    /// QoS of the messages, 0 or 1
    #[arg(long, value_delimiter = ',', default_values_t = [0, 1])]
    qos: Vec<u8>,
    /// Timings of the generator; `auto` is judged, others are shown beside it
    #[arg(long, value_delimiter = ',', default_value = JUDGED)]
    timing: Vec<String>,
    /// Command of the broker, run by sh, with {port}; Tacho's own with one shard by default
    #[arg(long)]
    broker_cmd: Option<String>,
    /// Seconds to wait before each run until the machine is idle
    #[arg(long, default_value_t = 20)]
    idle_wait: u64,
    /// Core of the broker
    #[arg(long, default_value_t = 0)]
    broker_cpu: usize,
    /// Core of the client
    #[arg(long, default_value_t = 1)]
    client_cpu: usize,
    /// Write README.md and results.json to bench/runs/<date>-<NAME>
    #[arg(long, value_name = "NAME")]
    record: Option<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if options.broker_cpu == options.client_cpu {
        bail!("broker and client need a core each");
    }
    shell::run(shell::cargo().args(["build", "--release", "-p", "tacho", "-p", "xtask"]))?;
    let bench = Bench::new(options)?;
    let started = utc_now().context("cannot read the date")?;
    let mut agreements = Vec::new();
    for tps_k in &options.tps_k {
        for qos in &options.qos {
            let rounds = bench.rounds(Load { tps_k: *tps_k, qos: *qos })?;
            for timing in &options.timing {
                let agreement = Agreement::new(*tps_k, *qos, timing, options.rounds, &rounds);
                println!("{}", agreement.line());
                agreements.push(agreement);
            }
        }
    }
    let table = judge::table(&agreements);
    print!("\n{table}");
    if let Some(name) = &options.record {
        println!("\nrecord: {}", write(name, &started, options, &agreements, &table)?.display());
    }
    let judged = || agreements.iter().filter(|agreement| agreement.is_judged());
    if judged().any(|agreement| agreement.conclusion() == Conclusion::Apart) {
        bail!("the load generator does not agree with the independent client");
    }
    if judged().any(|agreement| agreement.conclusion() == Conclusion::Unknown) {
        bail!("cannot be told on this machine: too many rounds were disturbed");
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Load {
    tps_k: u64,
    qos: u8,
}

impl Load {
    /// Messages per second in.
    const fn rate(self) -> u64 {
        self.tps_k * 500
    }
}

struct Bench<'a> {
    options: &'a Options,
    tacho: PathBuf,
    xtask: PathBuf,
    /// Folder of the run directories.
    folder: PathBuf,
}

impl<'a> Bench<'a> {
    fn new(options: &'a Options) -> Result<Self> {
        let release = shell::target_dir().join("release");
        let folder = shell::target_dir().join("agreement");
        fs::create_dir_all(&folder).context("cannot create the folder for runs")?;
        let (tacho, xtask) = (release.join("tacho"), release.join("xtask"));
        Ok(Self { options, tacho, xtask, folder })
    }

    /// Rounds of one load, until enough of them count.
    fn rounds(&self, load: Load) -> Result<Vec<Round>> {
        let mut rounds: Vec<Round> = Vec::new();
        while rounds.iter().filter(|round| round.counts()).count() < self.options.rounds
            && rounds.len() < self.options.rounds_max
        {
            let round = self.round(load, rounds.len())?;
            println!("{:>3}K TPS, QoS {}: {}", load.tps_k, load.qos, round.line());
            rounds.push(round);
        }
        Ok(rounds)
    }

    /// Each client once; every other round in reverse.
    fn round(&self, load: Load, number: usize) -> Result<Round> {
        let mut order: Vec<Option<&String>> = vec![None];
        order.extend(self.options.timing.iter().map(Some));
        if number % 2 == 1 {
            order.reverse();
        }
        let mut round = Round::default();
        for timing in order {
            wait_until_idle(self.options.idle_wait);
            let broker = Broker::start(self)?;
            let before = Steal::look()?;
            let figures = match timing {
                None => self.floor(load, &broker)?,
                Some(timing) => self.tacho(load, &broker, timing)?,
            };
            let figures = RunFigures { steal_percent: before.percent_since()?, ..figures };
            round.push(timing.map(String::as_str), figures);
        }
        Ok(round)
    }

    fn floor(&self, load: Load, broker: &Broker) -> Result<RunFigures> {
        let mut command = shell::command(&self.xtask);
        command.args(["floor", "pairs", &format!("127.0.0.1:{}", broker.port)]);
        command.args(["--pid", &broker.child.0.id().to_string()]);
        command.args(["--rate", &load.rate().to_string(), "--qos", &load.qos.to_string()]);
        command.args(["--seconds", &self.options.seconds.to_string()]);
        command.args(["--cpu", &self.options.client_cpu.to_string()]);
        let figures: PairsFigures = serde_json::from_str(&shell::output(&mut command)?)
            .context("unexpected output of the pairs")?;
        Ok(RunFigures {
            broker_cpu_us_per_message: figures.broker_cpu_us_per_message,
            latency_us_p50: figures.latency_us_p50,
            latency_us_p99: figures.latency_us_p99,
            ..RunFigures::default()
        })
    }

    fn tacho(&self, load: Load, broker: &Broker, timing: &str) -> Result<RunFigures> {
        let dir = self.folder.join("run");
        if dir.exists() {
            fs::remove_dir_all(&dir).with_context(|| format!("cannot clear {dir:?}"))?;
        }
        let mut command = shell::command(&self.tacho);
        command.args(["run", SCENARIO, "--quiet", "--threads", "1", "--timing", timing]);
        command.arg("--dir").arg(&dir);
        command.arg(format!("--broker=mqtt://127.0.0.1:{}", broker.port));
        command.arg(format!("--broker-pid={}", broker.child.0.id()));
        command.arg(format!("--generator-cores={}", self.options.client_cpu));
        command.arg(format!("--var=qos={}", load.qos));
        command.arg(format!("--var=target_throughput={}", load.rate()));
        command.arg(format!("--var=duration={}s", self.options.seconds));
        // Its verdict may be about steal, which the rounds are judged by.
        let output = command.output().context("cannot start tacho")?;
        let text = fs::read_to_string(dir.join("summary.json")).with_context(|| {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            format!("`{}` left no summary: {said}", shell::display(&command))
        })?;
        let summary: Value = serde_json::from_str(&text).context("summary.json is not JSON")?;
        let figure = |path: &str| {
            let value = summary.pointer(&format!("/steps/0/{path}")).and_then(Value::as_f64);
            value.with_context(|| format!("the summary has no {path}"))
        };
        let lost = figure("lost")?;
        if lost > 0.0 {
            bail!("{lost} messages were lost");
        }
        Ok(RunFigures {
            broker_cpu_us_per_message: figure("broker_cpu_us_per_message")?,
            latency_us_p50: figure("latency_us/p50")?,
            latency_us_p99: figure("latency_us/p99")?,
            work_percent: Some(figure("generator_cpu_percent")?),
            spin_percent: Some(figure("generator_spin_percent")?),
            ..RunFigures::default()
        })
    }
}

/// A broker on its core, ended on drop.
struct Broker {
    child: OwnChild,
    port: u16,
}

impl Broker {
    fn start(bench: &Bench<'_>) -> Result<Self> {
        let options = bench.options;
        let port = free_port()?;
        let own = || {
            let tacho = bench.tacho.display();
            format!("'{tacho}' broker --quiet --listen 127.0.0.1:{{port}} --shards 1")
        };
        let template = options.broker_cmd.clone().unwrap_or_else(own);
        let line = format!("exec {}", template.replace("{port}", &port.to_string()));
        let mut command = shell::command("sh");
        command.args(["-c", &line]).stdout(Stdio::null());
        // The child inherits the core of this thread.
        pin_self_to(&[options.broker_cpu])?;
        let child = command.spawn().context("cannot start the broker");
        pin_self_to(&[options.broker_cpu, options.client_cpu])?;
        let broker = Self { child: OwnChild(child?), port };
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > deadline {
                bail!("the broker does not listen: {line}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(broker)
    }
}

/// Writes the record; returns its folder.
fn write(
    name: &str,
    started: &str,
    options: &Options,
    agreements: &[Agreement],
    table: &str,
) -> Result<PathBuf> {
    let machine = Machine::look();
    let date = kept_record::date(started);
    let record = serde_json::json!({
        "schema_version": 1,
        "started_at": started,
        "seconds": options.seconds,
        "broker_core": options.broker_cpu,
        "client_core": options.client_cpu,
        "broker": options.broker_cmd,
        "machine": machine,
        "agreements": agreements,
    });
    let readme = format!(
        "# The load generator against an independent client, {date}\n\n\
         `cargo xtask agreement`, started {started}, revision {}.\n\n\
         {}, {} cores, {}. Broker on core {}, client on core {}, 1,000 pairs, 128 B, runs of {} s \
         in turns. Figures are medians of the rounds that count: those in which the hypervisor \
         took at most 2 %.\n\n{table}",
        machine.revision,
        machine.cpu,
        machine.cores,
        machine.kernel,
        options.broker_cpu,
        options.client_cpu,
        options.seconds,
    );
    kept_record::keep((name, started), readme, &record, Vec::new())
}
