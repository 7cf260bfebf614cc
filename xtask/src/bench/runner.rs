//! Runs one case: the broker on its core, the generator on the other.

mod durable;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;

use super::Options;
use super::abuse::abuse;
use super::attack::{self, Attack, Victim};
use super::case::{Case, Kind, Load, Subject};
use super::connects::{self, Way};
use super::disk;
use super::figures::Sample;
use super::idle;
use super::leavers::Leavers;
use super::login::{self, Method, Programs, Site};
use super::machine::{MEMORY_BACK, free_port, rss_bytes};
use super::partial::{SENT_BYTES, partial_packets};
use super::routing;
use super::scaling;
use crate::brokers::{Broker, MOSQUITTO_FAST};
use crate::floor::Floor;
use crate::shell;

const BURST: &str = "bench/scenarios/burst.toml";
const LOAD_START: Duration = Duration::from_secs(11);

pub(super) struct Runner {
    options: Options,
    tacho: PathBuf,
    xtask: PathBuf,
    /// The brokers of `--peers`.
    brokers: Vec<Broker>,
    /// Folder of the run directories.
    folder: PathBuf,
}

/// Where a generator runs.
#[derive(Clone, Copy)]
struct Generator<'a> {
    /// It has a thread on each.
    cores: &'a [usize],
    /// Another load of the same case is under way.
    beside: bool,
}

impl Runner {
    /// `tacho` is the program that is both broker and generator.
    pub(super) fn new(options: &Options, tacho: &Path, brokers: &[Broker]) -> Result<Self> {
        if options.broker_cpu == options.generator_cpu {
            bail!("broker and generator need a core each");
        }
        // All child processes inherit these two cores.
        pin(&[options.broker_cpu, options.generator_cpu])?;
        let folder = shell::target_dir().join("bench");
        fs::create_dir_all(&folder).context("cannot create the folder for runs")?;
        fs::write(folder.join("mosquitto.conf"), MOSQUITTO_FAST).context("cannot write")?;
        Ok(Self {
            options: options.clone(),
            tacho: tacho.to_owned(),
            xtask: shell::target_dir().join("release").join("xtask"),
            brokers: brokers.to_vec(),
            folder,
        })
    }

    pub(super) fn run(&self, case: &Case, round: usize) -> Result<Sample> {
        let sample = Sample::new(&case.name, round);
        match &case.kind {
            Kind::Floor { rate, sockets } => self.floor(sample, *rate, *sockets),
            Kind::Load { subject: Subject::Forwarder, load } => {
                let dir = self.dir(case, round)?;
                self.with_forwarder(|pid, port| {
                    let summary = self.tacho_run(load, &dir, &running_broker(pid, port), || {})?;
                    read_summary(sample, &summary)
                })
            }
            Kind::Load { subject, load } => {
                let dir = self.dir(case, round)?;
                let core = self.options.broker_cpu;
                let broker = [
                    format!("--broker-cmd={}", self.broker_command(*subject)?),
                    format!("--broker-cores={core}"),
                ];
                let summary = self.tacho_run(load, &dir, &broker, || {})?;
                read_summary(sample, &summary)
            }
            Kind::Scaled { load, shards } => {
                self.scaled(sample, &self.dir(case, round)?, load, *shards)
            }
            Kind::Idle { subject } => self.idle(sample, *subject),
            Kind::Routing(routing) => self.with_broker(|pid, port| {
                routing::measure(sample, *routing, pid, port, self.options.seconds)
            }),
            Kind::Subscriptions => self.with_broker(|pid, port| {
                routing::subscribe_million(sample, port, || rss_bytes(pid))
            }),
            Kind::Disk => disk::measure(sample, &self.folder),
            Kind::WrittenBytes { load } => {
                self.written_bytes(sample, &self.dir(case, round)?, load)
            }
            Kind::FanOutBytes => self.fan_out_bytes(sample, &self.dir(case, round)?),
            Kind::Offline => self.offline(sample, &self.dir(case, round)?),
            Kind::Burst => self.burst(sample, &self.dir(case, round)?),
            Kind::Beside { subject, load } => {
                let dir = self.dir(case, round)?;
                let work = |pid, port| Ok(self.with_pairs(sample, &dir, load, pid, port)?.0);
                match subject {
                    Subject::Forwarder => self.with_forwarder(work),
                    _ => self.with_broker(work),
                }
            }
            Kind::Partial { load, clients } => {
                self.partial(sample, &self.dir(case, round)?, load, *clients)
            }
            Kind::Abuse { load, clients } => {
                self.abuse(sample, &self.dir(case, round)?, load, *clients)
            }
            Kind::Attack { attack, bare: false } => self.attacked(sample, *attack),
            Kind::Attack { attack, bare: true } => self.with_forwarder(|_, port| {
                attack::measure(sample, *attack, Victim { port, http: None }, self.length())
            }),
            Kind::Connects { subject, way, load } => {
                self.connects(sample, &self.dir(case, round)?, (*subject, *way), load)
            }
            Kind::Login { method, load } => {
                self.login(sample, &self.dir(case, round)?, *method, load)
            }
            Kind::Leaving { load, shared } => {
                self.leaving(sample, &self.dir(case, round)?, load, *shared)
            }
        }
    }

    const fn length(&self) -> Duration {
        Duration::from_secs(self.options.seconds)
    }

    fn dir(&self, case: &Case, round: usize) -> Result<PathBuf> {
        let dir = self.folder.join(format!("{}-{round}", case.name));
        if dir.exists() {
            fs::remove_dir_all(&dir).with_context(|| format!("cannot clear {dir:?}"))?;
        }
        Ok(dir)
    }

    fn floor(&self, mut sample: Sample, rate: u64, sockets: usize) -> Result<Sample> {
        let mut command = shell::command(&self.xtask);
        command.args(["floor", "--rate", &rate.to_string()]);
        command.args(["--sockets", &sockets.to_string()]);
        command.args(["--seconds", &self.options.seconds.to_string()]);
        command.args(["--server-cpu", &self.options.broker_cpu.to_string()]);
        command.args(["--client-cpu", &self.options.generator_cpu.to_string()]);
        let floor: Floor = serde_json::from_str(&shell::output(&mut command)?)
            .context("unexpected output of the floor")?;
        let seconds = self.options.seconds as f64;
        let (sent, received) = (floor.sent as f64, floor.received as f64);
        sample.set("cpu_us_per_message", Some(floor.server_cpu_us_per_frame));
        sample.set("tps", Some((sent + received) / seconds));
        sample.set("in_per_s", Some(sent / seconds));
        sample.set("out_per_s", Some(received / seconds));
        sample.set("broker_cpu_percent", Some(floor.server_cpu_percent));
        sample.set("generator_cpu_percent", Some(floor.client_cpu_percent));
        sample.set("latency_us_mean", Some(floor.latency_us_mean));
        sample.set("latency_us_p50", Some(floor.latency_us_p50));
        sample.set("latency_us_p99", Some(floor.latency_us_p99));
        sample.set("sent", Some(sent));
        sample.set("received", Some(received));
        sample.set("lost", Some(sent - received));
        Ok(sample)
    }

    fn broker_command(&self, subject: Subject) -> Result<String> {
        Ok(match subject {
            Subject::Tacho { shards } => {
                let tacho = self.tacho.display();
                format!("{tacho} broker --quiet --listen 127.0.0.1:{{port}} --shards {shards}")
            }
            Subject::Durable => {
                let tacho = self.broker_command(Subject::Tacho { shards: 1 })?;
                format!("{tacho} --data-dir {{dir}}")
            }
            Subject::Mosquitto => {
                let (program, conf) = self.mosquitto()?;
                format!("{} -c {} -p {{port}}", program.display(), conf.display())
            }
            Subject::Forwarder => bail!("the forwarder is no broker with a command"),
            Subject::Peer(key) => {
                let broker = self.brokers.iter().find(|broker| broker.key == key);
                broker.with_context(|| format!("no {key} here"))?.start(&self.folder, false)?
            }
        })
    }

    /// The program and its configuration.
    fn mosquitto(&self) -> Result<(PathBuf, PathBuf)> {
        let program = shell::find("mosquitto").context("no mosquitto on this machine")?;
        Ok((program, self.folder.join("mosquitto.conf")))
    }

    /// With a core for each shard, and the generator's threads on the other cores.
    fn scaled(&self, sample: Sample, dir: &Path, load: &Load, shards: usize) -> Result<Sample> {
        let (own, generator) = scaling::placement(shards);
        let broker = [
            format!("--broker-cmd={} --pin", self.broker_command(Subject::Tacho { shards })?),
            format!("--broker-cores={}", list(&own)),
        ];
        pin(&[own, generator.clone()].concat())?;
        let place = Generator { cores: &generator, beside: false };
        let summary = self.tacho_run_on(place, load, dir, &broker, || {});
        pin(&[self.options.broker_cpu, self.options.generator_cpu])?;
        read_summary(sample, &summary?)
    }

    /// Runs a scenario and returns its summary; calls `during` repeatedly while it runs.
    fn tacho_run(
        &self,
        load: &Load,
        dir: &Path,
        broker: &[String],
        during: impl FnMut(),
    ) -> Result<Value> {
        let place = Generator { cores: &[self.options.generator_cpu], beside: false };
        self.tacho_run_on(place, load, dir, broker, during)
    }

    /// The same with a generator elsewhere.
    fn tacho_run_on(
        &self,
        generator: Generator<'_>,
        load: &Load,
        dir: &Path,
        broker: &[String],
        mut during: impl FnMut(),
    ) -> Result<Value> {
        let mut command = shell::command(&self.tacho);
        command.args(["run", load.scenario, "--quiet", "--beyond-calibration"]);
        command.arg("--dir").arg(dir).args(broker);
        let Generator { cores, beside } = generator;
        command.args(["--generator-cores", &list(cores), "--threads", &cores.len().to_string()]);
        if beside {
            // It would wait for the end of the other load.
            command.env("TACHO_MACHINE_LOCK", "none");
        }
        for (name, value) in &load.vars {
            command.args(["--var", &format!("{name}={value}")]);
        }
        if load.has_length() && load.vars.iter().all(|(name, _)| *name != "duration") {
            command.args(["--var", &format!("duration={}s", self.options.seconds)]);
        }
        let errors = self.folder.join("stderr.txt");
        command.stdout(Stdio::null());
        command.stderr(fs::File::create(&errors).context("cannot create a file")?);
        let shown = shell::display(&command);
        let mut child = Running(command.spawn().with_context(|| format!("cannot run {shown}"))?);
        let deadline = Instant::now() + Duration::from_secs(120 + self.options.seconds);
        let status = loop {
            if let Some(status) = child.0.try_wait().context("cannot wait for the run")? {
                break status;
            }
            if Instant::now() > deadline {
                bail!("`{shown}` does not finish");
            }
            during();
            thread::sleep(Duration::from_millis(100));
        };
        let text = fs::read_to_string(dir.join("summary.json"));
        let text = text.with_context(|| {
            let said = fs::read_to_string(&errors).unwrap_or_default();
            format!("`{shown}` left no summary, {status}: {}", said.trim())
        })?;
        serde_json::from_str(&text).context("summary.json is not JSON")
    }

    /// Starts a broker that listens on this port, on its core.
    fn start_broker(&self, mut command: Command, port: u16) -> Result<Running> {
        pin(&[self.options.broker_cpu])?;
        let child = command.spawn().context("cannot start the broker");
        // Later children belong to the generator.
        pin(&[self.options.generator_cpu])?;
        let running = Running(child?);
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > deadline {
                bail!("the broker does not listen");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(running)
    }

    /// With Tacho's broker.
    fn with_broker(&self, work: impl FnOnce(u32, u16) -> Result<Sample>) -> Result<Sample> {
        self.with_broker_and(&[], work)
    }

    /// The same with further arguments.
    fn with_broker_and(
        &self,
        arguments: &[String],
        work: impl FnOnce(u32, u16) -> Result<Sample>,
    ) -> Result<Sample> {
        let port = free_port()?;
        let listen = format!("127.0.0.1:{port}");
        let mut command = shell::command(&self.tacho);
        command.args(["broker", "--quiet", "--listen", &listen, "--shards", "1"]).args(arguments);
        self.with_started(command, port, work)
    }

    fn with_mosquitto(&self, work: impl FnOnce(u32, u16) -> Result<Sample>) -> Result<Sample> {
        let port = free_port()?;
        let (program, conf) = self.mosquitto()?;
        let mut command = shell::command(&program);
        command.arg("-c").arg(conf).args(["-p", &port.to_string()]);
        self.with_started(command, port, work)
    }

    fn with_started(
        &self,
        command: Command,
        port: u16,
        work: impl FnOnce(u32, u16) -> Result<Sample>,
    ) -> Result<Sample> {
        let started = self.start_broker(command, port);
        let result = started.and_then(|broker| work(broker.0.id(), port));
        pin(&[self.options.broker_cpu, self.options.generator_cpu])?;
        result
    }

    fn idle(&self, sample: Sample, subject: Subject) -> Result<Sample> {
        let work = |pid, port| idle::measure(sample, port, || rss_bytes(pid));
        match subject {
            Subject::Mosquitto => self.with_mosquitto(work),
            _ => self.with_broker(work),
        }
    }

    /// Figures are those of the concurrent clients, except for the duration of a burst.
    fn burst(&self, sample: Sample, dir: &Path) -> Result<Sample> {
        let burst = Load { scenario: BURST, vars: Vec::new() };
        self.with_broker(|pid, port| {
            let (mut sample, burst) = self.with_pairs(sample, dir, &burst, pid, port)?;
            let figure = |path| burst.pointer(path).and_then(Value::as_f64);
            ensure!(figure("/steps/0/lost") == Some(0.0), "the bursts lost messages");
            sample.set("burst_us_max", figure("/steps/0/latency_us/max"));
            sample.set("burst_us_p50", figure("/steps/0/latency_us/p50"));
            Ok(sample)
        })
    }

    /// A scenario with 100 pairs beside it: their figures, and its summary.
    fn with_pairs(
        &self,
        sample: Sample,
        dir: &Path,
        load: &Load,
        pid: u32,
        port: u16,
    ) -> Result<(Sample, Value)> {
        let mut load = load.clone();
        load.vars.push(("duration", (self.options.seconds + 15).to_string() + "s"));
        let vars = [("publishers", 100), ("subscribers", 100), ("target_throughput", 1000)];
        let mut beside = Load { scenario: "symmetric", vars: Vec::new() };
        beside.vars.extend(vars.map(|(name, value)| (name, value.to_string())));
        beside.vars.extend([("ramp_up", "1s".to_owned()), ("warmup", "1s".to_owned())]);
        let dirs = ["load", "beside"].map(|name| dir.join(name));
        fs::create_dir_all(dir).context("cannot create a folder")?;
        let broker = running_broker(pid, port);
        let (load, beside, ended) = thread::scope(|scope| {
            let load =
                scope.spawn(|| (self.tacho_run(&load, &dirs[0], &broker, || {}), Instant::now()));
            // Until its clients are connected and its first messages are delivered.
            thread::sleep(LOAD_START);
            let place = Generator { cores: &[self.options.generator_cpu], beside: true };
            let beside = self.tacho_run_on(place, &beside, &dirs[1], &broker, || {});
            let ended = Instant::now();
            (load.join(), beside, ended)
        });
        let (load, load_ended) = load.map_err(|_| anyhow!("its thread panicked"))?;
        ensure!(load_ended > ended, "the load was over before the pairs beside it");
        Ok((read_summary(sample, &beside?)?, load?))
    }

    /// The broker's memory while the packets are unfinished, and once their clients have left.
    fn partial(
        &self,
        mut sample: Sample,
        dir: &Path,
        load: &Load,
        clients: usize,
    ) -> Result<Sample> {
        self.with_broker(|pid, port| {
            thread::sleep(Duration::from_millis(500));
            let before = rss_bytes(pid)?;
            let mut most = before;
            let partial = partial_packets(port, clients)?;
            let watch = || most = most.max(rss_bytes(pid).unwrap_or(0));
            let summary = self.tacho_run(load, dir, &running_broker(pid, port), watch);
            let held = partial.stop();
            if held < clients as u64 {
                bail!("only {held} of {clients} clients have sent their part");
            }
            thread::sleep(MEMORY_BACK);
            let left = rss_bytes(pid)?.saturating_sub(before);
            let sent = (held as usize * SENT_BYTES) as f64;
            let per_byte = most.saturating_sub(before) as f64 / sent;
            sample.set("rss_bytes_per_partial_byte", Some(per_byte));
            sample.set("rss_bytes_left", Some(left as f64));
            read_summary(sample, &summary?)
        })
    }

    fn abuse(&self, sample: Sample, dir: &Path, load: &Load, clients: usize) -> Result<Sample> {
        self.with_broker(|pid, port| {
            let bad = abuse(port, clients)?;
            let summary = self.tacho_run(load, dir, &running_broker(pid, port), || {});
            let attempts = bad.stop();
            if attempts < clients as u64 {
                bail!("only {attempts} bad clients connected");
            }
            read_summary(sample, &summary?)
        })
    }

    fn attacked(&self, sample: Sample, attack: Attack) -> Result<Sample> {
        let http = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let arguments = [format!("--metrics={http}")];
        self.with_broker_and(&arguments, |_, port| {
            attack::measure(sample, attack, Victim { port, http: Some(http) }, self.length())
        })
    }

    /// With a bare forwarder instead of a broker.
    fn with_forwarder(&self, work: impl FnOnce(u32, u16) -> Result<Sample>) -> Result<Sample> {
        let mut command = shell::command(&self.xtask);
        command.args(["floor", "forwarder", "--cpu", &self.options.broker_cpu.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut forwarder = Running(command.spawn().context("cannot start the forwarder")?);
        let stdout = forwarder.0.stdout.take().context("the forwarder's output is not piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).context("cannot read the port")?;
        let port = line.trim().parse().with_context(|| format!("not a port: {line:?}"))?;
        pin(&[self.options.generator_cpu])?;
        let result = work(forwarder.0.id(), port);
        pin(&[self.options.broker_cpu, self.options.generator_cpu])?;
        result
    }

    fn connects(
        &self,
        sample: Sample,
        dir: &Path,
        (subject, way): (Subject, Way),
        load: &Load,
    ) -> Result<Sample> {
        let mosquitto = shell::find("mosquitto");
        let programs = Programs { tacho: &self.tacho, mosquitto: mosquitto.as_deref() };
        let (is_mosquitto, folder) = (subject == Subject::Mosquitto, self.folder.join("connects"));
        let mut broker = connects::arguments(is_mosquitto, way, programs, &folder)?;
        broker.push(format!("--broker-cores={}", self.options.broker_cpu));
        let is_storm = load.scenario == connects::STORM;
        if is_storm {
            broker.push(connects::STORM_SOURCES.to_owned());
        }
        let summary = self.tacho_run(load, dir, &broker, || {})?;
        let mut sample = read_summary(sample, &summary)?;
        match is_storm {
            true => connects::figures(&mut sample, &summary),
            false => login::figures(&mut sample, &summary)?,
        }
        Ok(sample)
    }

    fn login(&self, sample: Sample, dir: &Path, method: Method, load: &Load) -> Result<Sample> {
        let mosquitto = shell::find("mosquitto");
        let programs = Programs { tacho: &self.tacho, mosquitto: mosquitto.as_deref() };
        // What is started beside the broker is on the generator's core.
        pin(&[self.options.generator_cpu])?;
        // Not below the run's directory, which must not exist yet.
        let site = Site::prepare(method, programs, &self.folder.join("login"));
        pin(&[self.options.broker_cpu, self.options.generator_cpu])?;
        let site = site?;
        let mut broker = site.arguments.clone();
        broker.push(format!("--broker-cores={}", self.options.broker_cpu));
        let summary = self.tacho_run(load, dir, &broker, || {})?;
        let mut sample = read_summary(sample, &summary)?;
        login::figures(&mut sample, &summary)?;
        Ok(sample)
    }

    fn leaving(&self, sample: Sample, dir: &Path, load: &Load, shared: bool) -> Result<Sample> {
        self.with_broker(|pid, port| {
            let mut leavers = Leavers::connect(port, shared)?;
            let rss_before = rss_bytes(pid)?;
            let summary =
                self.tacho_run(load, dir, &running_broker(pid, port), || leavers.tick())?;
            ensure!(leavers.have_left(), "the run was over before they left");
            let mut sample = read_summary(sample, &summary)?;
            sample.set("rss_bytes_before", Some(rss_before as f64));
            sample.set("rss_bytes_after", Some(rss_bytes(pid)? as f64));
            Ok(sample)
        })
    }
}

/// Cores as a list.
fn list(cores: &[usize]) -> String {
    cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn running_broker(pid: u32, port: u16) -> [String; 2] {
    [format!("--broker=mqtt://127.0.0.1:{port}"), format!("--broker-pid={pid}")]
}

/// A child process that is ended on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return;
        }
        // SIGTERM first; a process that ignores it is killed.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        for _ in 0..50 {
            if matches!(self.0.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Pins this thread and its children to these cores.
fn pin(cpus: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    sched_setaffinity(None, &set).with_context(|| format!("cannot run on cores {cpus:?}"))
}

/// Reads the figures from `summary.json`.
fn read_summary(mut sample: Sample, summary: &Value) -> Result<Sample> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    sample.verdict = summary.get("verdict").map(text).context("the summary has no verdict")?;
    let reasons = summary.get("reasons").and_then(Value::as_array);
    sample.reasons = reasons.into_iter().flatten().map(text).collect();
    let step = summary.pointer("/steps/0").context("the summary has no step")?;
    let figure = |path: &str| step.pointer(path).and_then(Value::as_f64);
    for (metric, path) in [
        ("tps", "/tps"),
        ("in_per_s", "/achieved_in_per_s"),
        ("out_per_s", "/achieved_out_per_s"),
        ("broker_cpu_percent", "/broker_cpu_percent"),
        ("generator_cpu_percent", "/generator_cpu_percent"),
        ("latency_us_mean", "/latency_us/mean"),
        ("latency_us_p50", "/latency_us/p50"),
        ("latency_us_p99", "/latency_us/p99"),
        ("latency_us_p999", "/latency_us/p999"),
        ("latency_us_max", "/latency_us/max"),
        ("send_delay_us_p99", "/send_delay_us/p99"),
        ("sent", "/sent"),
        ("received", "/received"),
        ("lost", "/lost"),
        ("duplicates", "/duplicates"),
        ("out_of_order", "/out_of_order"),
    ] {
        sample.set(metric, figure(path));
    }
    let cpu_us_per_s = figure("/broker_cpu_percent").map(|percent| percent * 1e4);
    let per = |rate: Option<f64>| Some(cpu_us_per_s? / rate.filter(|rate| *rate > 0.0)?);
    sample.set("cpu_us_per_message", per(figure("/tps")));
    sample.set("cpu_us_per_delivery", per(figure("/achieved_out_per_s")));
    Ok(sample)
}
