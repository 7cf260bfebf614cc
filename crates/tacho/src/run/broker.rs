//! The broker under test: one that is there, or one that the run starts and stops.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tacho_lab::output::RunDirectory;
use tacho_lab::record::{TargetKind, TargetRecord};
use tacho_lab::scenario::{BrokerUrl, ProtocolVersion, Scenario, Scheme};

use super::cores::Cores;
use super::target_arguments::{Named, TargetArguments};
use super::unless_stopped;
use crate::exit::{self, Failure};

/// How long a broker may take until it accepts connections.
const START_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a broker that is there may take to accept one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a broker may take to end after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Lines of a broker's output that are shown when it ends by itself.
const LINES_SHOWN: usize = 10;

/// What to load, before it is ready.
#[derive(Debug)]
pub(crate) struct Target {
    /// Name in the scenario; empty for the default one.
    name: String,
    /// Protocol version of the clients.
    version: ProtocolVersion,
    source: Source,
}

/// Where a broker comes from.
#[derive(Debug)]
enum Source {
    /// It is running.
    Url { url: BrokerUrl, addresses: Vec<SocketAddr>, pid: Option<u32> },
    /// A command with `{port}` in it.
    Command { template: String },
    /// `tacho broker`.
    BuiltIn { shards: Option<u16> },
}

/// A broker that accepts connections.
#[derive(Debug)]
pub(super) struct Broker {
    name: String,
    version: ProtocolVersion,
    kind: TargetKind,
    url: BrokerUrl,
    addresses: Vec<SocketAddr>,
    /// A process that somebody else started.
    foreign_pid: Option<u32>,
    process: Option<Process>,
}

/// A broker process that the run started; dropping it stops it.
#[derive(Debug)]
struct Process {
    child: Child,
    command: String,
    log: PathBuf,
}

impl Target {
    /// The targets of `scenario`: what the arguments say about each, else what the scenario says,
    /// else Tacho's own broker.
    pub(super) fn of(
        arguments: &TargetArguments,
        scenario: &Scenario,
    ) -> Result<Vec<Self>, Failure> {
        let targets = scenario.targets_in_use();
        arguments.check(&targets.iter().map(|(name, _)| *name).collect::<Vec<_>>())?;
        let target = |(name, target): (&str, &tacho_lab::scenario::Target)| {
            let source = Source::of(arguments, name, target.broker.clone())?;
            Ok(Self { name: name.to_owned(), version: target.version, source })
        };
        let targets: Vec<Self> = targets.into_iter().map(target).collect::<Result<_, Failure>>()?;
        let useless = |flag: &str, what: &str| {
            let sentence = format!("the argument {flag} cannot be used here: {what}");
            Err(Failure::new(exit::UNEXPECTED, sentence))
        };
        let built_in = |target: &Self| matches!(target.source, Source::BuiltIn { .. });
        if arguments.shards.is_some() && !targets.iter().any(built_in) {
            return useless("--shards", "Tacho's own broker is not among those under test");
        }
        if arguments.broker_cores.is_some() && !targets.iter().any(Self::starts_a_broker) {
            return useless("--broker-cores", "the run starts no broker");
        }
        Ok(targets)
    }

    /// Does the run start the broker?
    pub(super) fn starts_a_broker(&self) -> bool {
        !matches!(self.source, Source::Url { .. })
    }

    /// Starts the broker if that is asked for, and waits until it accepts connections.
    pub(super) fn ready(
        self,
        cores: &Cores,
        which: (usize, usize),
        directory: &RunDirectory,
        stop: &AtomicBool,
    ) -> Result<Broker, Failure> {
        let (name, version) = (self.name, self.version);
        let (kind, template) = match self.source {
            Source::Url { url, addresses, pid } => {
                let kind = TargetKind::Url;
                return Ok(Broker {
                    name,
                    version,
                    kind,
                    url,
                    addresses,
                    foreign_pid: pid,
                    process: None,
                });
            }
            Source::Command { template } => (TargetKind::Command, template),
            Source::BuiltIn { shards } => {
                let cores = cores.of_broker(which).len().max(1);
                let shards = shards.map_or(cores, usize::from);
                (
                    TargetKind::BuiltIn,
                    format!("broker --listen 127.0.0.1:{{port}} --shards {shards}"),
                )
            }
        };
        let unexpected = |sentence: String| Failure::new(exit::UNEXPECTED, sentence);
        let port = free_port()
            .map_err(|error| unexpected(format!("no free port on 127.0.0.1: {error}")))?;
        let words = template.replace("{port}", &port.to_string());
        let (mut command, shown) = match kind {
            TargetKind::BuiltIn => {
                let program = std::env::current_exe()
                    .map_err(|error| unexpected(format!("cannot find this program: {error}")))?;
                let mut command = Command::new(program);
                command.args(words.split(' '));
                (command, format!("tacho {words}"))
            }
            _ => {
                let mut command = Command::new("sh");
                command.arg("-c").arg(format!("exec {words}"));
                (command, words)
            }
        };
        let log = directory.file(&match name.as_str() {
            "" => "broker.log".to_owned(),
            name => format!("broker-{name}.log"),
        });
        let output = File::create(&log)
            .and_then(|file| Ok((file.try_clone()?, file)))
            .map_err(|error| unexpected(format!("cannot write {}: {error}", log.display())))?;
        command.stdin(Stdio::null()).stdout(output.0).stderr(output.1);
        // A group of its own: Ctrl-C on the terminal must reach the run first.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = cores.for_broker(which, || command.spawn()).map_err(|error| {
            Failure::new(
                exit::TARGET_UNREACHABLE,
                format!("cannot start the broker '{shown}': {error}"),
            )
        })?;
        let mut process = Process { child, command: shown, log };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        process.wait_until_it_accepts(address, stop)?;
        Ok(Broker {
            name,
            version,
            kind,
            url: BrokerUrl::new(Scheme::Mqtt, "127.0.0.1", port),
            addresses: vec![address],
            foreign_pid: None,
            process: Some(process),
        })
    }
}

impl Broker {
    /// Its addresses, with how to reach them.
    pub(super) fn addresses(&self) -> Vec<tacho_load::Target> {
        let target = |address: &SocketAddr| tacho_load::Target {
            name: self.name.clone(),
            ..(*address).into()
        };
        self.addresses.iter().map(target).collect()
    }

    /// Does it run on this machine?
    pub(super) fn is_local(&self) -> bool {
        self.foreign_pid.is_some() || self.addresses.iter().all(|a| a.ip().is_loopback())
    }

    /// For the run record.
    pub(super) fn record(&self) -> TargetRecord {
        TargetRecord {
            name: self.name.clone(),
            kind: self.kind,
            broker: self.url.to_string(),
            version: match self.version {
                ProtocolVersion::V31 => "3.1".to_owned(),
                ProtocolVersion::V311 => "3.1.1".to_owned(),
                ProtocolVersion::V5 => "5.0".to_owned(),
            },
            command: self.process.as_ref().map(|process| process.command.clone()),
            pid: self.process.as_ref().map(|process| process.child.id()).or(self.foreign_pid),
        }
    }

    /// What a broker that the run started said when it ended by itself; `None` while it lives.
    pub(super) fn last_words(&mut self) -> Option<String> {
        let process = self.process.as_mut()?;
        let ended = process.child.try_wait().ok().flatten();
        ended.map(|status| process.obituary("ended during the run", status))
    }
}

impl Source {
    /// The broker of the target `name`, for which the scenario may give an address.
    fn of(
        arguments: &TargetArguments,
        name: &str,
        url: Option<BrokerUrl>,
    ) -> Result<Self, Failure> {
        if let Some(template) = Named::of(&arguments.broker_cmds, name) {
            if !template.contains("{port}") {
                return Err(Failure::new(
                    exit::INVALID_CONFIG,
                    format!(
                        "--broker-cmd '{template}' does not say where {{port}} goes: the broker \
                         must listen on the port that the run chooses"
                    ),
                ));
            }
            return Ok(Self::Command { template: template.clone() });
        }
        let Some(url) = Named::of(&arguments.brokers, name).cloned().or(url) else {
            return Ok(Self::BuiltIn { shards: arguments.shards });
        };
        if url.scheme != Scheme::Mqtt {
            return Err(Failure::new(
                exit::INVALID_CONFIG,
                format!("{url}: clients speak plain TCP only, write mqtt://"),
            ));
        }
        let unreachable = |sentence: String| Failure::new(exit::TARGET_UNREACHABLE, sentence);
        let addresses: Vec<SocketAddr> = (url.host.as_str(), url.port)
            .to_socket_addrs()
            .map_err(|error| {
                unreachable(format!("cannot find the host of {url}: {error}; check the name"))
            })?
            .collect();
        // Of several addresses the first that answers is loaded, not all in turn.
        let mut last = "it has no address".to_owned();
        for address in addresses {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(_) => {
                    let pid = Named::of(&arguments.broker_pids, name).copied();
                    return Ok(Self::Url { url, addresses: vec![address], pid });
                }
                Err(error) => last = error.to_string(),
            }
        }
        Err(unreachable(format!("cannot connect to {url}: {last}; is a broker listening there?")))
    }
}

impl Process {
    fn wait_until_it_accepts(
        &mut self,
        address: SocketAddr,
        stop: &AtomicBool,
    ) -> Result<(), Failure> {
        let unreachable = |sentence| Failure::new(exit::TARGET_UNREACHABLE, sentence);
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            unless_stopped(stop)?;
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(unreachable(self.obituary("ended before it listened", status)));
            }
            if TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let seconds = START_TIMEOUT.as_secs();
                return Err(unreachable(format!(
                    "the broker '{}' does not accept connections on {address} after {seconds} s{}",
                    self.command,
                    self.tail()
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// How and with what last words the broker ended.
    fn obituary(&self, when: &str, status: ExitStatus) -> String {
        format!("the broker '{}' {when} ({status}){}", self.command, self.tail())
    }

    /// The last lines of its output.
    fn tail(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
        match tail.is_empty() {
            true => ", without a word".to_owned(),
            false => format!("; its last words:\n  {}", tail.join("\n  ")),
        }
    }
}

impl Drop for Process {
    /// SIGTERM, a bounded wait, then SIGKILL.
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(pid) =
            i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw)
            && matches!(self.child.try_wait(), Ok(None))
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let deadline = Instant::now() + STOP_TIMEOUT;
            while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody listens on. Somebody could take it until the broker does; then the broker
/// says so and the run ends.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
