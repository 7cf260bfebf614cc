//! The broker under test: one that is there, or one that the run starts and stops.

use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tacho_broker::{Durability, Level, Limits};
use tacho_lab::output::RunDirectory;
use tacho_lab::record::{TargetKind, TargetRecord};
use tacho_lab::run::Course;
use tacho_lab::scenario::{
    Bridge, BrokerUrl, Group, ProtocolVersion, Scenario, Scheme, Shortage, TlsOptions,
};
use tacho_load::Transport;

use super::attached;
use super::bridged::{Bridging, Network};
use super::cores::Cores;
use super::killer::Killer;
use super::process::{DataDirectory, Launched, Process, SharedProcess, lock};
use super::target_arguments::{Named, TargetArguments};
use super::transport::transport;
use crate::exit::{self, Failure};

/// How long a broker that is there may take to accept one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What to load, before it is ready.
#[derive(Debug)]
pub(crate) struct Target {
    /// Name in the scenario; empty for the default one.
    name: String,
    /// Protocol version of the clients.
    version: ProtocolVersion,
    /// For brokers that bring their own certificates.
    tls: TlsOptions,
    /// How often the run kills it.
    kills: u32,
    source: Source,
    /// Bridges that lead away from it, where the brokers of the run, which starts them all, know
    /// of each other.
    bridges: Option<Vec<Bridge>>,
}

/// Where a broker comes from.
#[derive(Debug)]
enum Source {
    /// It is running.
    Url { url: BrokerUrl, addresses: Vec<SocketAddr>, pid: Option<u32>, transport: Transport },
    /// A command with `{port}` in it.
    Command { template: String, scheme: Scheme },
    /// `tacho broker`.
    BuiltIn { shards: Option<u16>, scheme: Scheme, level: Level, more: Vec<String> },
}

/// A broker that accepts connections.
#[derive(Debug)]
pub(super) struct Broker {
    name: String,
    version: ProtocolVersion,
    kind: TargetKind,
    url: BrokerUrl,
    addresses: Vec<SocketAddr>,
    transport: Transport,
    /// With TLS: is its certificate verified?
    tls_verified: Option<bool>,
    /// A process that somebody else started.
    foreign_pid: Option<u32>,
    /// Of Tacho's own: how safe it keeps sessions that outlive their connections.
    level: Option<Level>,
    /// Kills the process; ends before it does.
    killer: Option<Killer>,
    process: Option<SharedProcess>,
    /// Where it keeps what must outlive its process.
    _data: Option<DataDirectory>,
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
            let tls = target.tls.clone();
            let level = arguments.durability.unwrap_or_else(|| level_for(scenario, name));
            let source = Source::of(arguments, (name, level), target.broker.clone(), &tls)?;
            let by_actions = scenario.kill_actions(name).len();
            let kills = target.kills + u32::try_from(by_actions).unwrap_or(u32::MAX);
            let (name, version) = (name.to_owned(), target.version);
            Ok(Self { name, version, tls, kills, source, bridges: None })
        };
        let mut targets: Vec<Self> =
            targets.into_iter().map(target).collect::<Result<_, Failure>>()?;
        let built_in = |target: &Self| matches!(target.source, Source::BuiltIn { .. });
        if !scenario.bridges.is_empty() && targets.iter().any(built_in) {
            Self::bridge(&mut targets, scenario)?;
        }
        let alive = |target: &&Self| target.kills > 0 && !target.starts_a_broker();
        if let Some(target) = targets.iter().find(alive) {
            let name = if target.name.is_empty() { "the broker" } else { &target.name };
            let sentence = format!(
                "{name} cannot be killed {} times: it is running already, and only a broker that \
                 the run starts can be started again; use --broker-cmd, or kills = 0",
                target.kills
            );
            return Err(Failure::new(exit::INVALID_CONFIG, sentence));
        }
        let useless = |flag: &str, what: &str| {
            let sentence = format!("the argument {flag} cannot be used here: {what}");
            Err(Failure::new(exit::UNEXPECTED, sentence))
        };
        if arguments.shards.is_some() && !targets.iter().any(built_in) {
            return useless("--shards", "Tacho's own broker is not among those under test");
        }
        if arguments.durability.is_some() && !targets.iter().any(built_in) {
            return useless("--durability", "Tacho's own broker is not among those under test");
        }
        if arguments.transport.transport.is_some() && !targets.iter().any(Self::starts_a_broker) {
            return useless("--transport", "the run starts no broker, and a URL has its own");
        }
        if let Some(flag) = arguments.transport.tls_flag()
            && !targets.iter().any(Self::shows_a_certificate)
        {
            return useless(flag, "no broker with certificates of its own is reached by TLS");
        }
        if arguments.broker_cores.is_some() && !targets.iter().any(Self::starts_a_broker) {
            return useless("--broker-cores", "the run starts no broker");
        }
        Ok(targets)
    }

    /// Notes who passes messages on to whom, where all brokers are started by the run.
    fn bridge(targets: &mut [Self], scenario: &Scenario) -> Result<(), Failure> {
        let invalid = |sentence: String| Err(Failure::new(exit::INVALID_CONFIG, sentence));
        if !targets.iter().all(|target| matches!(target.source, Source::BuiltIn { .. })) {
            let names = targets.iter().map(|target| format!("--broker {}=URL", target.name));
            let shortage = Shortage::Bridge { arguments: names.collect() };
            return invalid(format!(
                "'{}' {shortage}; without any of them, Tacho's own are started and bridged",
                scenario.name
            ));
        }
        if let Some(bridge) = scenario.bridges.iter().find(|bridge| !bridge.strip.is_empty()) {
            return invalid(format!(
                "'{}' has a bridge that strips '{}' from topics, which bridges of Tacho's own do \
                 not: name brokers that do",
                scenario.name, bridge.strip
            ));
        }
        for target in targets {
            let away = scenario.bridges.iter().filter(|bridge| bridge.from == target.name);
            target.bridges = Some(away.cloned().collect());
        }
        Ok(())
    }

    /// Where those of `targets` will be that know of each other.
    pub(super) fn network(targets: &[Self]) -> Result<Network, Failure> {
        let scheme = targets.iter().find_map(|target| match target.source {
            Source::BuiltIn { scheme, .. } => Some(scheme),
            _ => None,
        });
        let bridged = targets.iter().filter(|target| target.bridges.is_some());
        let brokers = bridged.map(|target| (target.name.as_str(), target.kills > 0));
        Network::of(brokers, scheme.unwrap_or_default())
    }

    /// Does the run start the broker?
    pub(super) fn starts_a_broker(&self) -> bool {
        !matches!(self.source, Source::Url { .. })
    }

    /// Is there a certificate that the run did not make?
    fn shows_a_certificate(&self) -> bool {
        match &self.source {
            Source::Url { url, .. } => url.scheme.uses_tls(),
            Source::Command { scheme, .. } => scheme.uses_tls(),
            Source::BuiltIn { .. } => false,
        }
    }

    /// Starts the broker if that is asked for, and waits until it accepts connections.
    pub(super) fn ready(
        self,
        cores: &Cores,
        which: (usize, usize),
        (directory, network): (&RunDirectory, &Network),
        stop: &AtomicBool,
    ) -> Result<Broker, Failure> {
        let Self { name, version, tls, kills, source, bridges } = self;
        let bridges = bridges.unwrap_or_default();
        let unexpected = |sentence: String| Failure::new(exit::UNEXPECTED, sentence);
        let data = |wanted: bool| {
            let path = directory.file(&file_name("data", &name, ""));
            wanted.then(|| DataDirectory::create(&path)).transpose()
        };
        let port = || free_port(kills > 0);
        let level = match &source {
            Source::BuiltIn { level, .. } => Some(*level),
            _ => None,
        };
        let keeps = level.is_some_and(|level| level > Level::Memory);
        let bridging = network.bridging(&name, (&bridges, keeps), directory)?;
        let (kind, launch, data) = match source {
            Source::Url { url, addresses, pid, transport } => {
                let tls_verified = url.scheme.uses_tls().then_some(!tls.insecure);
                return Ok(Broker {
                    name,
                    version,
                    kind: TargetKind::Url,
                    url,
                    addresses,
                    transport,
                    tls_verified,
                    foreign_pid: pid,
                    level: None,
                    killer: None,
                    process: None,
                    _data: None,
                });
            }
            Source::Command { template, scheme } => {
                let url = BrokerUrl::new(scheme, "127.0.0.1", port()?);
                let data = data(template.contains(DIR))?;
                let launch = Launch::command(&template, url, tls, data.as_ref())?;
                (TargetKind::Command, launch, data)
            }
            Source::BuiltIn { shards, scheme, level, more } => {
                let cores = cores.of_broker(which).len().max(1);
                let shards = shards.map_or(cores, usize::from);
                let port = bridging.as_ref().map_or_else(port, |bridging| Ok(bridging.port))?;
                let url = BrokerUrl::new(scheme, "127.0.0.1", port);
                let certificates = directory.file(&file_name("certificates", &name, ""));
                let data = data(level > Level::Memory)?;
                let keeping = data.as_ref().map(|data| (data, level));
                let launch = Launch::built_in(url, shards, &certificates, keeping)?;
                let mut launch = launch.with(&more);
                if let Some(bridging) = &bridging {
                    launch.bridge(bridging);
                }
                (TargetKind::BuiltIn, launch, data)
            }
        };
        let Launch { command, shown, url, tls } = launch;
        let address = SocketAddr::from(([127, 0, 0, 1], url.port));
        let log = directory.file(&file_name("broker", &name, ".log"));
        let speaks_plainly = url.scheme == Scheme::Mqtt;
        let cores = cores.clone();
        let launched = Launched { command, shown, log, address, speaks_plainly, cores, which };
        let process = Arc::new(Mutex::new(Process::start(launched, stop)?));
        let killer = (kills > 0).then(|| Killer::new(Arc::clone(&process))).transpose();
        let killer = killer.map_err(|error| unexpected(format!("no thread: {error}")))?;
        Ok(Broker {
            name,
            version,
            kind,
            transport: transport(&url, &tls)?,
            tls_verified: url.scheme.uses_tls().then_some(!tls.insecure),
            url,
            addresses: vec![address],
            foreign_pid: None,
            level,
            killer,
            process: Some(process),
            _data: data,
        })
    }
}

/// A broker process before it is started.
struct Launch {
    command: Command,
    /// The command as the record shows it.
    shown: String,
    url: BrokerUrl,
    /// How the clients trust it.
    tls: TlsOptions,
}

impl Launch {
    /// A command of the user's.
    fn command(
        template: &str,
        url: BrokerUrl,
        tls: TlsOptions,
        data: Option<&DataDirectory>,
    ) -> Result<Self, Failure> {
        let mut shown = template.replace("{port}", &url.port.to_string());
        if let Some(data) = data {
            shown = shown.replace(DIR, &data.path().display().to_string());
        }
        let mut command = attached::command(&shown)?;
        command.stdin(Stdio::null());
        Ok(Self { command, shown, url, tls })
    }

    /// Tacho's own, `keeping` sessions in a directory or in memory; with TLS it leaves its
    /// certificates in the folder `certificates`.
    fn built_in(
        url: BrokerUrl,
        shards: usize,
        certificates: &Path,
        keeping: Option<(&DataDirectory, Level)>,
    ) -> Result<Self, Failure> {
        let address = format!("127.0.0.1:{}", url.port);
        let listen = match url.scheme {
            Scheme::Mqtt => address,
            scheme => format!("{}://{address}", scheme.transport()),
        };
        let mut shown = format!("tacho broker --listen {listen} --shards {shards}");
        let mut command = Command::new(attached::this_program()?);
        command.args(["broker", "--listen", &listen, "--shards", &shards.to_string()]);
        // The other end of the pipe is ours, and is closed with us however we end.
        command.arg("--end-with-stdin").stdin(Stdio::piped());
        if let Some((data, level)) = keeping {
            let (path, level) = (data.path(), level.name());
            command.arg("--data-dir").arg(path).args(["--durability", level]);
            shown.push_str(&format!(" --data-dir {} --durability {level}", path.display()));
        }
        let mut tls = TlsOptions::default();
        if url.scheme.uses_tls() {
            command.arg("--self-signed").arg(certificates);
            shown.push_str(&format!(" --self-signed {}", certificates.display()));
            tls.ca = Some(certificates.join("ca.pem"));
        }
        Ok(Self { command, shown, url, tls })
    }

    /// Adds what makes it a part of a network.
    fn bridge(&mut self, bridging: &Bridging) {
        self.command.arg("--config").arg(&bridging.config);
        self.shown.push_str(&format!(" --config {}", bridging.config.display()));
        if let Some(listen) = bridging.listen {
            self.command.args(["--listen", &listen.to_string()]);
            self.shown.push_str(&format!(" --listen {listen}"));
        }
    }

    /// With further arguments.
    fn with(mut self, more: &[String]) -> Self {
        self.command.args(more);
        for word in more {
            self.shown.push(' ');
            self.shown.push_str(word);
        }
        self
    }
}

/// Name of a file of the broker `name`; the default one's is without a name.
pub(super) fn file_name(what: &str, name: &str, extension: &str) -> String {
    match name {
        "" => format!("{what}{extension}"),
        name => format!("{what}-{name}{extension}"),
    }
}

impl Broker {
    /// Its addresses, with how to reach them.
    pub(super) fn addresses(&self) -> Vec<tacho_load::Target> {
        let target = |address: &SocketAddr| tacho_load::Target {
            addr: *address,
            transport: self.transport.clone(),
            name: self.name.clone(),
        };
        self.addresses.iter().map(target).collect()
    }

    /// The process as a run follows it.
    pub(super) fn course(&self) -> Course {
        Course::new(self.pid(), self.killer.is_some())
    }

    /// Who kills it.
    pub(super) fn killer(&self) -> Option<&Killer> {
        self.killer.as_ref()
    }

    /// Its name in the scenario.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The port that it listens on.
    pub(super) fn port(&self) -> u16 {
        self.url.port
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| lock(process).pid()).or(self.foreign_pid)
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
            command: self.process.as_ref().map(|process| lock(process).shown().to_owned()),
            pid: self.pid(),
            tls_verified: self.tls_verified,
            durability: self.level.map(|level| level.to_string()),
            offline_qos0: self.level.map(|level| match level {
                Level::Memory => Limits::default().queue_qos0_offline,
                Level::Written | Level::Fsynced => Durability::default().offline_qos0,
            }),
        }
    }

    /// What a broker that the run started said when it ended by itself, or why it could not be
    /// started again; `None` while it lives.
    pub(super) fn last_words(&mut self) -> Option<String> {
        let failed = self.killer.as_ref().and_then(Killer::failure);
        failed.or_else(|| lock(self.process.as_ref()?).last_words())
    }

    /// Could it not be started again?
    pub(super) fn stayed_away(&self) -> bool {
        self.killer.as_ref().is_some_and(|killer| killer.failure().is_some())
    }
}

impl Source {
    /// The broker of the target `name`, for which the scenario may give an address.
    fn of(
        arguments: &TargetArguments,
        (name, level): (&str, Level),
        url: Option<BrokerUrl>,
        tls: &TlsOptions,
    ) -> Result<Self, Failure> {
        let scheme = arguments.transport.scheme();
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
            // Certificates that cannot be used are named before anything is started.
            transport(&BrokerUrl::new(scheme, "127.0.0.1", 1), tls)?;
            return Ok(Self::Command { template: template.clone(), scheme });
        }
        let asked = Named::of(&arguments.brokers, name);
        let Some(url) = asked.map_or(url, |asked| asked.url().cloned()) else {
            let (shards, more) = (arguments.shards, arguments.builtin_arguments.clone());
            return Ok(Self::BuiltIn { shards, scheme, level, more });
        };
        let transport = transport(&url, tls)?;
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
                    let addresses = vec![address];
                    return Ok(Self::Url { url, addresses, pid, transport });
                }
                Err(error) => last = error.to_string(),
            }
        }
        Err(unreachable(format!("cannot connect to {url}: {last}; is a broker listening there?")))
    }
}

/// How safe Tacho's own broker keeps the sessions of a target: on the disk where some outlive their
/// connections, else nothing needs to be kept.
fn level_for(scenario: &Scenario, target: &str) -> Level {
    let is_loaded = |group: &&Group| group.clients > 0 && scenario.target_of(group).0 == target;
    let mut groups = scenario.groups.values().filter(is_loaded);
    match groups.any(|group| scenario.has_lasting_sessions(group)) {
        true => Durability::default().persistent_level,
        false => Level::Memory,
    }
}

/// What a command's template calls the directory that stays for the run.
const DIR: &str = "{dir}";

/// A port that nobody listens on. Somebody could take it until the broker does; then the broker
/// says so and the run ends. A broker that is `killed` must find its port free again: it gets one
/// that no connection takes for its own end.
pub(super) fn free_port(killed: bool) -> Result<u16, Failure> {
    let (first, last) = tacho_load::local_port_range();
    let address = TcpListener::bind(("127.0.0.1", 0)).and_then(|socket| socket.local_addr());
    let mut port = address
        .map_err(|error| {
            let sentence = format!("no free port on 127.0.0.1: {error}");
            Failure::new(exit::UNEXPECTED, sentence)
        })?
        .port();
    let mut attempts = if killed && first > PORT_MIN { PORT_ATTEMPTS } else { 0 };
    // A start that others do not share, without a source of random numbers.
    let mut candidate = PORT_MIN + port % first.saturating_sub(PORT_MIN).max(1);
    while attempts > 0 && (first..=last).contains(&port) {
        if TcpListener::bind(("127.0.0.1", candidate)).is_ok() {
            port = candidate;
        }
        candidate = if candidate + 1 < first { candidate + 1 } else { PORT_MIN };
        attempts -= 1;
    }
    Ok(port)
}

/// The lowest port for a broker that is killed, and how many are tried.
const PORT_MIN: u16 = 10_000;
const PORT_ATTEMPTS: u32 = 1000;
