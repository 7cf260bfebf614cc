//! Which brokers a run loads, from the arguments and the scenario, checked.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use tacho_broker::{Durability, Level};
use tacho_load::Transport;
use tacho_record::NetworkLimit;
use tacho_rig::{Network, PORT_PLACEHOLDER, PortUse};
use tacho_scenario::{
    Bridge, BrokerUrl, Group, ProtocolVersion, Scenario, Scheme, Shortage, TlsOptions,
};

use super::named::Named;
use super::sources;
use super::target_arguments::TargetArguments;
use super::transport::transport;
use crate::exit::{self, Failure};

/// How long a running broker may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A broker under test before it is ready.
#[derive(Debug)]
pub(crate) struct Target {
    /// Name in the scenario; empty for the default one.
    pub(super) name: String,
    /// Protocol version of the clients.
    pub(super) version: ProtocolVersion,
    /// For brokers that bring their own certificates.
    pub(super) tls: TlsOptions,
    /// How often the run kills it.
    pub(super) kills: u32,
    pub(super) source: Source,
    /// What the network of its host carries, as stated.
    pub(super) network_limit: Option<NetworkLimit>,
    /// Bridges that lead away from it, where the brokers of the run, which starts them all, know
    /// of each other.
    pub(super) bridges: Option<Vec<Bridge>>,
}

/// Where a broker comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// It is running.
    Url { url: BrokerUrl, addresses: Vec<SocketAddr>, pid: Option<u32>, transport: Transport },
    /// A command with `{port}` in it.
    Command { template: String, scheme: Scheme },
    /// `tacho broker`.
    BuiltIn(OwnBroker),
}

/// `tacho broker` with the options of the arguments and the scenario.
#[derive(Debug)]
pub(super) struct OwnBroker {
    pub(super) shards: Option<u16>,
    pub(super) scheme: Scheme,
    pub(super) level: Level,
    /// Further arguments.
    pub(super) arguments: Vec<String>,
}

impl Target {
    /// The targets of `scenario`: each from the arguments, else from the scenario,
    /// else Tacho's own broker.
    pub(super) fn of(
        arguments: &TargetArguments,
        scenario: &Scenario,
    ) -> Result<Vec<Self>, Failure> {
        let targets = scenario.targets_in_use();
        arguments.check(&targets.iter().map(|(name, _)| *name).collect::<Vec<_>>())?;
        if let Some((group, variable)) = scenario.missing_password() {
            let sentence = format!(
                "the password of the group '{group}' is expected in the environment variable \
                 {variable}, which is not set: set it, or use --password-file"
            );
            return Err(Failure::new(exit::INVALID_CONFIG, sentence));
        }
        let target = |(name, target): (&str, &tacho_scenario::Target)| {
            let tls = target.tls.clone();
            let level = arguments.durability.unwrap_or_else(|| level_for(scenario, name));
            let source = Source::of(arguments, (name, level), target.broker.clone(), &tls)?;
            let by_actions = scenario.kill_actions(name).len();
            let kills = target.kills + u32::try_from(by_actions).unwrap_or(u32::MAX);
            let network_limit = Named::of(&arguments.network_limits, name).copied();
            let (name, version) = (name.to_owned(), target.version);
            Ok(Self { name, version, tls, kills, source, network_limit, bridges: None })
        };
        let mut targets: Vec<Self> =
            targets.into_iter().map(target).collect::<Result<_, Failure>>()?;
        let brokers: Vec<IpAddr> = targets.iter().flat_map(Self::addresses).collect();
        sources::check(scenario, &brokers)?;
        let built_in = |target: &Self| matches!(target.source, Source::BuiltIn(_));
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
        let by_tls = targets.iter().any(Self::is_reached_by_tls);
        let certified = targets.iter().any(Self::shows_a_certificate);
        if let Some((flag, what)) = arguments.transport.useless_flag(by_tls, certified) {
            return useless(flag, what);
        }
        for target in targets.iter().filter(|target| target.shows_a_certificate()) {
            // They are read or signed before anything is started, and kept for the run.
            scenario
                .prepare_certificates(&target.name)
                .map_err(|why| Failure::new(exit::INVALID_CONFIG, why))?;
        }
        if arguments.broker_cores.is_some() && !targets.iter().any(Self::starts_a_broker) {
            return useless("--broker-cores", "the run starts no broker");
        }
        Ok(targets)
    }

    /// Notes which broker forwards to which, where the run starts all brokers.
    fn bridge(targets: &mut [Self], scenario: &Scenario) -> Result<(), Failure> {
        let invalid = |sentence: String| Err(Failure::new(exit::INVALID_CONFIG, sentence));
        if !targets.iter().all(|target| matches!(target.source, Source::BuiltIn(_))) {
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

    /// Ports for those of `targets` that bridge to each other.
    pub(super) fn network(targets: &[Self]) -> Result<Network, Failure> {
        let scheme = targets.iter().find_map(|target| match target.source {
            Source::BuiltIn(OwnBroker { scheme, .. }) => Some(scheme),
            _ => None,
        });
        let bridged = targets.iter().filter(|target| target.bridges.is_some());
        let brokers = bridged.map(|target| (target.name.as_str(), target.port_use()));
        Ok(Network::new(brokers, scheme.unwrap_or_default() == Scheme::Mqtt)?)
    }

    /// How its port is going to be used, where the run starts it.
    pub(super) const fn port_use(&self) -> PortUse {
        if self.kills > 0 { PortUse::Restarted } else { PortUse::Once }
    }

    /// Does the run start the broker?
    pub(super) fn starts_a_broker(&self) -> bool {
        !matches!(self.source, Source::Url { .. })
    }

    /// Where it is; the run starts brokers on loopback.
    fn addresses(&self) -> Vec<IpAddr> {
        match &self.source {
            Source::Url { addresses, .. } => addresses.iter().map(SocketAddr::ip).collect(),
            Source::Command { .. } | Source::BuiltIn(_) => vec![Ipv4Addr::LOCALHOST.into()],
        }
    }

    /// Is there a certificate that the run did not make?
    fn shows_a_certificate(&self) -> bool {
        self.is_reached_by_tls() && !matches!(self.source, Source::BuiltIn(_))
    }

    fn is_reached_by_tls(&self) -> bool {
        match &self.source {
            Source::Url { url, .. } => url.scheme.uses_tls(),
            Source::Command { scheme, .. } | Source::BuiltIn(OwnBroker { scheme, .. }) => {
                scheme.uses_tls()
            }
        }
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
            if !template.contains(PORT_PLACEHOLDER) {
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
        // The arguments about addresses are in the scenario.
        let Some(url) = url else {
            let (shards, arguments) = (arguments.shards, arguments.builtin_arguments.clone());
            return Ok(Self::BuiltIn(OwnBroker { shards, scheme, level, arguments }));
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
    match groups.any(|group| scenario.has_persistent_sessions(group)) {
        true => Durability::default().persistent_level,
        false => Level::Memory,
    }
}
