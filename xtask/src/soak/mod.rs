//! `cargo xtask soak`: half of what the broker sustains, for half an hour, by sessions in memory,
//! durable ones, TLS and WebSocket clients. Memory, descriptors and latency must stay flat.

mod flat;
mod verdict;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::bench::machine::{Machine, free_port, utc_now};
use crate::floor::{pin_self_to, raise_descriptor_limit};
use crate::kept_record;
use crate::own_child::OwnChild;
use crate::shell;
use flat::{Look, Trend};

const SCENARIO: &str = "bench/scenarios/soak.toml";
/// Kinds of clients in it: each has this part of the rate.
const KINDS: u64 = 4;
/// Rates that are tried for the capacity, and the seconds of each.
const RATES: [u64; 6] = [4_000, 8_000, 16_000, 32_000, 64_000, 128_000];
const TRY_S: f64 = 6.0;
/// Between two looks at the broker's process.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Measured minutes
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Messages per second in; without it half of what the broker is found to sustain
    #[arg(long)]
    rate: Option<u64>,
    /// Publishers of each of the four kinds of clients, and as many subscribers
    #[arg(long, default_value_t = 100)]
    pairs: u64,
    /// The program; without it that of this tree, built in release
    #[arg(long, value_name = "PROGRAM")]
    tacho: Option<PathBuf>,
    /// Last part of the record's name under bench/runs
    #[arg(long, default_value = "soak")]
    name: String,
    /// Core of the broker
    #[arg(long, default_value_t = 0)]
    broker_cpu: usize,
    /// Core of the generator
    #[arg(long, default_value_t = 1)]
    generator_cpu: usize,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if !(0.1..=10_000.0).contains(&options.minutes) || options.pairs == 0 {
        bail!("--minutes must be between 0.1 and 10000, and --pairs above 0");
    }
    if options.broker_cpu == options.generator_cpu {
        bail!("broker and generator need a core each");
    }
    raise_descriptor_limit()?;
    let tacho = shell::tacho(options.tacho.as_deref())?;
    let soak = Soak { options, tacho, folder: shell::target_dir().join("soak") };
    let started = utc_now()?;
    let (rate, capacity) = match options.rate {
        Some(rate) => (rate, None),
        None => {
            let capacity = soak.capacity()?;
            (capacity / 2, Some(capacity))
        }
    };
    println!("{rate} messages/s in for {} min", options.minutes);
    let lasted = soak.load(rate, options.minutes * 60.0)?;
    soak.conclude(&started, rate, capacity, &lasted)
}

struct Soak<'o> {
    options: &'o Options,
    tacho: PathBuf,
    folder: PathBuf,
}

/// What was seen of one load.
struct Lasted {
    summary: Value,
    looks: Vec<Look>,
    /// Per measured second, in microseconds.
    p99_us: Vec<f64>,
}

impl Soak<'_> {
    /// The largest of the rates that arrives: at most a factor of two below the capacity.
    fn capacity(&self) -> Result<u64> {
        let mut sustained = None;
        for rate in RATES {
            let lasted = self.load(rate, TRY_S)?;
            let figure = |path| lasted.summary.pointer(path).and_then(Value::as_f64);
            let achieved = figure("/steps/0/achieved_out_per_s").unwrap_or(0.0);
            let p99_us = figure("/steps/0/latency_us/p99").unwrap_or(f64::MAX);
            println!("{rate} messages/s in: {achieved:.0} arrive, p99 {p99_us:.0} us");
            if achieved < 0.98 * rate as f64 || p99_us > 100_000.0 {
                break;
            }
            sustained = Some(rate);
        }
        sustained.with_context(|| format!("not even {} messages/s arrive", RATES[0]))
    }

    /// A broker of its own, with the load for so long.
    fn load(&self, rate: u64, seconds: f64) -> Result<Lasted> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder).context("cannot clear the folder of the soak")?;
        }
        fs::create_dir_all(&self.folder).context("cannot create the folder of the soak")?;
        let broker = SoakBroker::start(self)?;
        let run = self.folder.join("run");
        let mut command = shell::command(&self.tacho);
        command.args(["run", SCENARIO, "--quiet", "--beyond-calibration", "--dir"]).arg(&run);
        for (name, url) in &broker.urls {
            command.arg(format!("--broker={name}={url}"));
        }
        for (name, value) in [
            ("pairs", self.options.pairs.to_string()),
            ("rate", (rate / KINDS).to_string()),
            ("duration", format!("{seconds}s")),
        ] {
            command.args(["--var", &format!("{name}={value}")]);
        }
        let core = self.options.generator_cpu.to_string();
        command.args(["--generator-cores", &core, "--threads", "1"]).stdout(Stdio::null());
        let errors = self.folder.join("stderr.txt");
        command.stderr(fs::File::create(&errors).context("cannot create a file")?);
        pin_self_to(&[self.options.generator_cpu])?;
        let mut child = OwnChild(command.spawn().context("cannot start the load")?);
        let mut looks = Vec::new();
        let begun = Instant::now();
        while child.0.try_wait().context("cannot wait for the load")?.is_none() {
            looks.push(Look::at(begun.elapsed(), broker.child.0.id())?);
            thread::sleep(PAUSE);
        }
        let summary = fs::read_to_string(run.join("summary.json")).with_context(|| {
            let said = fs::read_to_string(&errors).unwrap_or_default();
            format!("the load left no summary: {}", said.trim())
        })?;
        let series = fs::read_to_string(run.join("timeseries.csv")).context("no time series")?;
        let summary = serde_json::from_str(&summary).context("summary.json is not JSON")?;
        let p99_us = flat::column(&series, "measure", "e2e_p99_us")?;
        Ok(Lasted { summary, looks, p99_us })
    }

    /// Prints and records what came of it; an error unless the soak has passed.
    fn conclude(
        &self,
        started: &str,
        rate: u64,
        capacity: Option<u64>,
        lasted: &Lasted,
    ) -> Result<()> {
        let of = |pick: fn(&Look) -> f64| lasted.looks.iter().map(pick).collect::<Vec<_>>();
        let trends = [
            Trend::new("RSS", "bytes", &of(|look| look.rss_bytes as f64), (1.05, 8e6)),
            Trend::new("descriptors", "", &of(|look| look.descriptors as f64), (1.0, 8.0)),
            Trend::new("p99 of a second", "us", &lasted.p99_us, (1.5, 1000.0)),
        ];
        let figure = |name: &str| {
            let value = lasted.summary.pointer(&format!("/steps/0/{name}"));
            value.cloned().unwrap_or(Value::Null)
        };
        let lost = figure("lost");
        let why_not = verdict::why_not_passed(&lasted.summary, &trends);
        let machine = Machine::look();
        let record = json!({
            "schema_version": 1,
            "started_at": started,
            "minutes": self.options.minutes,
            "rate_in_per_s": rate,
            "capacity_in_per_s": capacity,
            "pairs_of_each_kind": self.options.pairs,
            "machine": machine,
            "verdict": verdict::of_run(&lasted.summary),
            "passed": why_not.is_empty(),
            "why_not": why_not,
            "sent": figure("sent"),
            "received": figure("received"),
            "lost": lost,
            "trends": trends,
            "looks": lasted.looks,
            "p99_us": lasted.p99_us,
        });
        let table = flat::table(&trends);
        let date = kept_record::date(started);
        let capacity = capacity
            .map_or_else(String::new, |found| format!(", half of {found} that it sustains"));
        let text = format!(
            "# Soak, {date}\n\n`cargo xtask soak --minutes {}`, started {started}, revision {}. \
             {}, {} cores.\n\n{rate} messages/s in{capacity}, a quarter each by sessions in \
             memory, durable sessions, TLS and WebSocket clients; {} publishers and subscribers of \
             each kind. Broker and generator on a core each. Lost: {lost}. Verdict of the run: \
             {}. {}\n\nMedians of two thirds, without a sixth at the beginning and the end:\n\n{table}",
            self.options.minutes,
            machine.revision,
            machine.cpu,
            machine.cores,
            self.options.pairs,
            verdict::of_run(&lasted.summary),
            verdict::sentence(&why_not),
        );
        let name = (self.options.name.as_str(), started);
        let folder = kept_record::keep(name, text, &record, Vec::new())?;
        println!("{table}\nlost: {lost}\nrecord: {}", folder.display());
        if !why_not.is_empty() {
            bail!("{}", verdict::sentence(&why_not));
        }
        Ok(())
    }
}

/// The broker with all its listeners and a data directory.
struct SoakBroker {
    child: OwnChild,
    /// By the name of the target.
    urls: [(&'static str, String); 3],
}

impl SoakBroker {
    fn start(soak: &Soak<'_>) -> Result<Self> {
        let [tcp, tls, ws] = [free_port()?, free_port()?, free_port()?];
        let at = |scheme: &str, port: u16| format!("{scheme}://127.0.0.1:{port}");
        let mut command = shell::command(&soak.tacho);
        command.args(["broker", "--quiet", "--shards", "1"]);
        for listener in [at("tcp", tcp), at("tls", tls), at("ws", ws)] {
            command.args(["--listen", &listener]);
        }
        let path = |name: &str| soak.folder.join(name);
        command.arg("--data-dir").arg(path("data"));
        command.arg("--self-signed").arg(path("certificates"));
        let log = fs::File::create(path("broker.log")).context("cannot create a file")?;
        command.stdout(Stdio::null()).stderr(log);
        pin_self_to(&[soak.options.broker_cpu])?;
        let child = OwnChild(command.spawn().context("cannot start the broker")?);
        wait_for(tcp, &path("broker.log"))?;
        let urls = [("tcp", at("mqtt", tcp)), ("tls", at("mqtts", tls)), ("ws", at("ws", ws))];
        Ok(Self { child, urls })
    }
}

fn wait_for(port: u16, log: &Path) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).is_err() {
        if Instant::now() > deadline {
            let said = fs::read_to_string(log).unwrap_or_default();
            bail!("the broker does not listen: {}", said.trim());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
