//! A broker under test that is ready: a running one, or one that the run has started.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use tacho_broker::{Durability, Level, Limits};
use tacho_lab::run::Course;
use tacho_load::Transport;
use tacho_record::RunDirectory;
use tacho_record::{NetworkLimit, TargetKind, TargetRecord};
use tacho_rig::{
    BridgeRule, Bridging, BrokerShare, BuiltIn, Cores, DATA_PLACEHOLDER, DataDirectory, Killer,
    Launch, Network, Process, Serving, Sessions, SharedProcess, free_port,
};
use tacho_scenario::{Bridge, BrokerUrl, ProtocolVersion, Scheme, TlsOptions};

use super::target::{OwnBroker, Source, Target};
use super::transport::transport;
use crate::exit::Failure;

/// A broker that accepts connections.
#[derive(Debug)]
pub(super) struct Broker {
    name: String,
    version: ProtocolVersion,
    kind: TargetKind,
    url: BrokerUrl,
    addresses: Vec<SocketAddr>,
    transport: Transport,
    /// Absent without TLS.
    tls: Option<Encryption>,
    /// A process that the run did not start.
    foreign_pid: Option<u32>,
    /// Of Tacho's own: how safe it keeps sessions that outlive their connections.
    level: Option<Level>,
    /// Kills the process; ends before it does.
    killer: Option<Killer>,
    process: Option<SharedProcess>,
    /// Its data directory, which outlives its process.
    data: Option<DataDirectory>,
    /// What the network of its host carries, as stated.
    network_limit: Option<NetworkLimit>,
}

/// Where brokers of a run are started: on which cores, with files where, in which network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'a> {
    pub(super) cores: &'a Cores,
    pub(super) directory: &'a RunDirectory,
    pub(super) network: &'a Network,
}

/// What the record says of TLS.
#[derive(Clone, Copy, Debug)]
struct Encryption {
    is_verified: bool,
    is_resumed: bool,
}

impl Encryption {
    fn of(url: &BrokerUrl, tls: &TlsOptions) -> Option<Self> {
        let encryption = Self { is_verified: !tls.insecure, is_resumed: tls.resume };
        url.scheme.uses_tls().then_some(encryption)
    }
}

/// A broker whose launch is prepared.
struct Prepared {
    kind: TargetKind,
    url: BrokerUrl,
    tls: TlsOptions,
    launch: Launch,
    data: Option<DataDirectory>,
    level: Option<Level>,
}

impl Site<'_> {
    /// Starts the broker of `target` unless it is running, and waits until it accepts connections.
    pub(super) fn ready(
        self,
        target: Target,
        share: BrokerShare,
        stop: &AtomicBool,
    ) -> Result<Broker, Failure> {
        let prepared = match &target.source {
            Source::Url { url, addresses, pid, transport } => {
                return Ok(Broker {
                    kind: TargetKind::Url,
                    url: url.clone(),
                    addresses: addresses.clone(),
                    transport: transport.clone(),
                    tls: Encryption::of(url, &target.tls),
                    foreign_pid: *pid,
                    name: target.name,
                    version: target.version,
                    level: None,
                    killer: None,
                    process: None,
                    data: None,
                    network_limit: target.network_limit,
                });
            }
            Source::Command { template, scheme } => self.shell(&target, template, *scheme)?,
            Source::BuiltIn(own) => self.built_in(&target, own, share)?,
        };
        let Prepared { kind, url, tls, launch, data, level } = prepared;
        let log = self.file("broker", &target.name, ".log");
        let process = SharedProcess::new(Process::start(launch, log, (self.cores, share), stop)?);
        let killer = (target.kills > 0).then(|| Killer::new(process.clone())).transpose()?;
        Ok(Broker {
            kind,
            transport: transport(&url, &tls)?,
            tls: Encryption::of(&url, &tls),
            addresses: vec![SocketAddr::from(([127, 0, 0, 1], url.port))],
            url,
            name: target.name,
            version: target.version,
            foreign_pid: None,
            level,
            killer,
            process: Some(process),
            data,
            network_limit: target.network_limit,
        })
    }

    /// Prepares a command of the user.
    fn shell(self, target: &Target, template: &str, scheme: Scheme) -> Result<Prepared, Failure> {
        let port = free_port(target.port_use())?;
        let data = match template.contains(DATA_PLACEHOLDER) {
            true => Some(DataDirectory::create(&self.file("data", &target.name, ""))?),
            false => None,
        };
        let serving = match scheme {
            Scheme::Mqtt => Serving::AnswersConnect,
            _ => Serving::AcceptsConnections,
        };
        Ok(Prepared {
            kind: TargetKind::Command,
            launch: Launch::shell(template, port, data.as_ref(), serving)?,
            url: BrokerUrl::new(scheme, "127.0.0.1", port),
            tls: target.tls.clone(),
            data,
            level: None,
        })
    }

    /// Prepares Tacho's own broker.
    fn built_in(
        self,
        target: &Target,
        OwnBroker { shards, scheme, level, arguments }: &OwnBroker,
        share: BrokerShare,
    ) -> Result<Prepared, Failure> {
        let bridging = self.bridging(target, *level)?;
        let port = match &bridging {
            Some(bridging) => bridging.port,
            None => free_port(target.port_use())?,
        };
        let data = match *level > Level::Memory {
            true => Some(DataDirectory::create(&self.file("data", &target.name, ""))?),
            false => None,
        };
        let certificates = scheme.uses_tls().then(|| self.file("certificates", &target.name, ""));
        let launch = Launch::built_in(&BuiltIn {
            port,
            scheme: scheme.listener(),
            shards: shards.map_or(self.cores.of_broker(share).len().max(1), usize::from),
            certificates: certificates.as_deref(),
            data: data.as_ref().map(|data| (data, level.name())),
            bridging: bridging.as_ref(),
            arguments,
        })?;
        Ok(Prepared {
            kind: TargetKind::BuiltIn,
            url: BrokerUrl::new(*scheme, "127.0.0.1", port),
            tls: TlsOptions {
                ca: certificates.map(|folder| folder.join("ca.pem")),
                resume: target.tls.resume,
                ..TlsOptions::default()
            },
            launch,
            data,
            level: Some(*level),
        })
    }

    /// Writes the part of a broker's configuration that makes it one of a network.
    fn bridging(self, target: &Target, level: Level) -> Result<Option<Bridging>, Failure> {
        let rules: Vec<BridgeRule> =
            target.bridges.iter().flatten().cloned().map(bridge_rule).collect();
        // Brokers that keep sessions keep those of bridges too, at both ends.
        let sessions = if level > Level::Memory { Sessions::Persistent } else { Sessions::Clean };
        let config = self.file("bridges", &target.name, ".toml");
        Ok(self.network.bridging(&target.name, (&rules, sessions), config)?)
    }

    /// A file of the broker `name`; the default one's is without a name.
    fn file(self, what: &str, name: &str, extension: &str) -> PathBuf {
        self.directory.file(&match name {
            "" => format!("{what}{extension}"),
            name => format!("{what}-{name}{extension}"),
        })
    }
}

fn bridge_rule(bridge: Bridge) -> BridgeRule {
    let Bridge { to, filter, prefix, connections, .. } = bridge;
    BridgeRule { to, filter, prefix, connections }
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

    /// Its killer, where the run kills it.
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
        self.process.as_ref().map(|process| process.lock().pid()).or(self.foreign_pid)
    }

    /// Its data directory, where the run has one for it.
    pub(super) fn data_dir(&self) -> Option<PathBuf> {
        self.data.as_ref().map(|data| data.path().to_owned())
    }

    /// Does it run on this machine?
    pub(super) fn is_local(&self) -> bool {
        self.foreign_pid.is_some() || self.addresses.iter().all(|a| a.ip().is_loopback())
    }

    /// Has this run started it?
    pub(super) const fn is_started(&self) -> bool {
        self.process.is_some()
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
            command: self.process.as_ref().map(|process| process.lock().shown().to_owned()),
            pid: self.pid(),
            tls_verified: self.tls.map(|tls| tls.is_verified),
            tls_resumed: self.tls.map(|tls| tls.is_resumed),
            durability: self.level.map(|level| level.to_string()),
            host: None,
            network_limit: self.network_limit,
            offline_qos0: self.level.map(|level| match level {
                Level::Memory => Limits::default().queue_qos0_offline,
                Level::Written | Level::Fsynced => Durability::default().offline_qos0,
            }),
        }
    }

    /// Why a broker that the run started has ended by itself or could not be started again; `None`
    /// while it lives.
    pub(super) fn failure(&self) -> Option<String> {
        let failed = self.killer.as_ref().and_then(Killer::failure);
        match failed {
            Some(error) => Some(error.to_string()),
            None => self.process.as_ref()?.lock().ended().map(|error| error.to_string()),
        }
    }

    /// Could it not be started again?
    pub(super) fn stayed_away(&self) -> bool {
        self.killer.as_ref().is_some_and(|killer| killer.failure().is_some())
    }
}
