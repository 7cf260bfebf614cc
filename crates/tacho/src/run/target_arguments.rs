//! Arguments about the brokers under test, and the cores of brokers and generator.

use std::collections::BTreeMap;

use clap::Args;
use tacho_broker::Level;
use tacho_monitor::{MonitorSpec, parse_cpu_list};
use tacho_record::NetworkLimit;
use tacho_rig::Cores;
use tacho_scenario::{BrokerUrl, Password, Scenario, TlsOptions};

use super::credentials::{BrokerCredentials, CredentialArguments};
use super::crew_arguments::CrewArguments;
use super::named::Named;
use super::tolerate::TolerateArguments;
use super::transport::TransportArguments;
use crate::exit::{self, Failure};
use crate::machine::MachineArguments;
use crate::profile::Profile;

/// The brokers under test and their cores.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Broker")]
pub(crate) struct TargetArguments {
    /// Load this running broker; NAME=URL for a named target of the scenario, may then be given
    /// several times. 'builtin' starts Tacho's own broker instead of the scenario's, @NAME is a
    /// broker in ~/.config/tacho/targets.toml
    ///
    /// mqtt:// is TCP, mqtts:// is TLS, ws:// and wss:// are WebSocket and may have a path (default
    /// /mqtt). Default ports: 1883, 8883, 80 and 443. ',user=USER' and ',password-file=FILE' after
    /// it are the credentials of this broker's clients.
    #[arg(long = "broker", value_name = "[NAME=]mqtt://HOST:PORT",
          value_parser = |text: &str| Named::parse(text, BrokerArgument::parse))]
    pub(super) brokers: Vec<Named<BrokerArgument>>,

    /// How brokers are reached.
    #[command(flatten)]
    pub(super) transport: TransportArguments,

    /// How clients identify themselves.
    #[command(flatten)]
    pub(super) credentials: CredentialArguments,

    /// Process id of that broker if it runs on this machine, to sample its CPU and memory; NAME=PID
    /// for a named target
    #[arg(long = "broker-pid", value_name = "[NAME=]PID", requires = "brokers",
          value_parser = |text: &str| Named::parse(text, parse_pid))]
    pub(super) broker_pids: Vec<Named<u32>>,

    /// Start this broker for the run and stop it afterwards; {port} becomes a free loopback port,
    /// {dir} a directory that exists until the end of the run
    ///
    /// sh runs the command, which must listen on 127.0.0.1 and stay in the foreground, for example
    /// --broker-cmd 'mosquitto -p {port}'. Its output goes to broker.log in the run directory.
    /// On Linux all processes that it starts end with the run.
    /// After a kill by the scenario the same command restarts the broker, with the same port and
    /// directory.
    /// NAME=COMMAND for a named target; may then be given several times.
    #[arg(long = "broker-cmd", value_name = "[NAME=]COMMAND",
          value_parser = |text: &str| Named::parse(text, |command| Ok(command.to_owned())))]
    pub(super) broker_cmds: Vec<Named<String>>,

    /// Watch the host of a broker: agent://HOST:PORT (a 'tacho monitor --listen' there),
    /// prometheus+http://HOST:PORT/metrics, collectd://ADDRESS:PORT (collectd sends to it), or
    /// local; may be given several times
    ///
    /// NAME=SOURCE binds it to a named target. An agent takes ?token-file=PATH (else
    /// TACHO_MONITOR_TOKEN), &port=N or &process=NAME for the broker's process, and &data-dir=PATH
    /// to describe its disk. The host of a local broker is always watched. See docs/monitoring.md.
    #[arg(long = "monitor", value_name = "[NAME=]SOURCE",
          value_parser = |text: &str| MonitorSpec::parse(text).map_err(|error| error.to_string()))]
    pub(super) monitors: Vec<MonitorSpec>,

    /// Network capacity of the broker's host in each direction, such as 8Gbit/s,800kpps, if its
    /// interface does not report a speed; NAME=LIMIT for a named target
    ///
    /// A load that fills 85 % of it gives the verdict network_bound. Needs figures of that host,
    /// see --monitor. Units: kbit/s, Mbit/s, Gbit/s; pps, kpps, Mpps.
    #[arg(long = "network-limit", value_name = "[NAME=]LIMIT",
          value_parser = |text: &str| Named::parse(text, NetworkLimit::parse))]
    pub(super) network_limits: Vec<Named<NetworkLimit>>,

    #[command(flatten)]
    pub(super) tolerate: TolerateArguments,

    #[command(flatten)]
    pub(super) machine: MachineArguments,

    /// Shards (event loops) of Tacho's own broker; default: one per core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) shards: Option<u16>,

    /// Durability of persistent sessions in Tacho's own broker: memory, written or fsynced.
    /// Default: fsynced if the scenario has such sessions, else memory. The run removes its data
    /// directory
    #[arg(long, value_name = "LEVEL")]
    pub(super) durability: Option<Level>,

    /// Cores of the brokers that the run starts, such as 0-3; default: half of all. Several brokers
    /// divide them
    #[arg(long, value_name = "LIST", value_parser = parse_cores)]
    pub(super) broker_cores: Option<CoreList>,

    /// Cores of the generator's threads, such as 4-7; default: the other half, or all with --broker
    #[arg(long, help_heading = "Generator", value_name = "LIST", value_parser = parse_cores)]
    pub(super) generator_cores: Option<CoreList>,

    #[command(flatten)]
    pub(super) crew: CrewArguments,

    /// Further arguments of Tacho's own broker, of one side of a comparison.
    #[arg(skip)]
    pub(super) builtin_arguments: Vec<String>,
}

impl TargetArguments {
    /// The targets of `scenario` for which neither it nor the arguments name a broker.
    pub(crate) fn missing(&self, scenario: &Scenario) -> Vec<String> {
        let is_missing = |(name, target): &(&str, &tacho_scenario::Target)| {
            target.broker.is_none() && Named::of(&self.broker_cmds, name).is_none()
        };
        let missing = scenario.targets_in_use().into_iter().filter(is_missing);
        missing.map(|(name, _)| name.to_owned()).collect()
    }

    /// The arguments that concern `scenario`, one of several scenarios of a campaign.
    pub(crate) fn narrowed(&self, scenario: &Scenario) -> Self {
        let mut narrowed = self.clone();
        let targets = scenario.targets_in_use();
        let is_loaded = |name: &str| targets.iter().any(|(known, _)| *known == name);
        narrowed.brokers.retain(|named| is_loaded(&named.name));
        narrowed.broker_cmds.retain(|named| is_loaded(&named.name));
        narrowed.broker_pids.retain(|named| is_loaded(&named.name));
        narrowed.network_limits.retain(|named| is_loaded(&named.name));
        narrowed.credentials.retain(is_loaded);
        narrowed.monitors.retain(|spec| spec.target.as_deref().is_none_or(is_loaded));
        if self.missing(scenario).is_empty() {
            narrowed.shards = None;
            narrowed.durability = None;
            if narrowed.broker_cmds.is_empty() {
                narrowed.broker_cores = None;
                narrowed.transport.transport = None;
            }
        }
        narrowed
    }

    /// The same, with or without waiting for the machine.
    pub(crate) fn waiting(self, machine: MachineArguments) -> Self {
        Self { machine, ..self }
    }

    /// Divides the cores of this machine.
    pub(super) fn cores(&self, starts_a_broker: bool) -> Result<Cores, Failure> {
        let broker = self.broker_cores.as_ref().map(|cores| &*cores.0);
        let generator = self.generator_cores.as_ref().map(|cores| &*cores.0);
        Ok(Cores::divide(broker, generator, starts_a_broker)?)
    }

    /// For one of the `sides` of a comparison: the arguments for `name`, or `broker`, apply to the
    /// scenario's default broker.
    pub(crate) fn of_side(
        &self,
        (name, sides): (&str, &[&str]),
        broker: Option<SideBroker>,
        builtin_arguments: Vec<String>,
    ) -> Self {
        let mut side = Self { builtin_arguments, ..self.clone() };
        let is_mine = |known: &str| known == name || !sides.contains(&known);
        side.brokers.retain(|named| is_mine(&named.name));
        side.broker_cmds.retain(|named| is_mine(&named.name));
        side.broker_pids.retain(|named| is_mine(&named.name));
        side.network_limits.retain(|named| is_mine(&named.name));
        side.credentials.retain(is_mine);
        side.monitors.retain(|spec| spec.target.as_deref().is_none_or(is_mine));
        if broker.is_some() || self.tells_about(name) {
            side.brokers.retain(|named| !named.name.is_empty());
            side.broker_cmds.retain(|named| !named.name.is_empty());
        }
        let default = Scenario::DEFAULT_TARGET;
        match broker {
            None => {}
            Some(SideBroker::BuiltIn) => side.brokers.push(Named::new(BrokerArgument::new(None))),
            Some(SideBroker::Url(url)) => {
                side.brokers.push(Named::new(BrokerArgument::new(Some(url))))
            }
            Some(SideBroker::Command(command)) => side.broker_cmds.push(Named::new(command)),
        }
        Named::rename(&mut side.brokers, name, default);
        Named::rename(&mut side.broker_cmds, name, default);
        Named::rename(&mut side.broker_pids, name, default);
        Named::rename(&mut side.network_limits, name, default);
        side.credentials.rename(name, default);
        for spec in &mut side.monitors {
            if spec.target.as_deref() == Some(name) {
                spec.target = None;
            }
        }
        side.forget_useless();
        side
    }

    /// Gives clients without another one this password.
    pub(crate) fn give_password(&mut self, password: Password) {
        self.credentials.give_password(password);
    }

    /// Sets shards and durability of Tacho's own broker for one side.
    pub(crate) fn set_builtin(&mut self, shards: Option<u16>, level: Option<Level>) {
        self.shards = shards.or(self.shards);
        self.durability = level.or(self.durability);
    }

    /// Removes options that only another side uses.
    fn forget_useless(&mut self) {
        let is_builtin = |named: &Named<BrokerArgument>| named.value.url.is_none();
        let default = |name: &str| name == Scenario::DEFAULT_TARGET;
        let builtin = self.brokers.iter().any(|named| default(&named.name) && is_builtin(named));
        let running = !builtin && self.brokers.iter().any(|named| default(&named.name));
        let command = self.broker_cmds.iter().any(|named| default(&named.name));
        if running || command {
            self.shards = None;
            self.durability = None;
        }
        if running {
            self.broker_cores = None;
            self.transport.transport = None;
        } else {
            self.broker_pids.retain(|named| !default(&named.name));
        }
    }

    /// Whether the arguments give `name` a broker.
    pub(crate) fn tells_about(&self, name: &str) -> bool {
        Named::of(&self.brokers, name).is_some() || Named::of(&self.broker_cmds, name).is_some()
    }

    /// All target names in the arguments, each with its flag.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let monitors = self.monitors.iter().filter_map(|spec| spec.target.as_deref());
        let monitors = monitors.map(|name| ("--monitor", name));
        self.names_of_brokers().chain(monitors).chain(self.credentials.names())
    }

    /// The target names of broker flags, without those of --monitor.
    fn names_of_brokers(&self) -> impl Iterator<Item = (&'static str, &str)> {
        // 'builtin' without a name is about all brokers.
        let is_about_one =
            |named: &&Named<BrokerArgument>| !named.name.is_empty() || named.value.url.is_some();
        let urls = self.brokers.iter().filter(is_about_one);
        let urls = urls.map(|named| ("--broker", named.name.as_str()));
        let commands = self.broker_cmds.iter().map(|named| ("--broker-cmd", named.name.as_str()));
        let pids = self.broker_pids.iter().map(|named| ("--broker-pid", named.name.as_str()));
        let limits = self.network_limits.iter();
        let limits = limits.map(|named| ("--network-limit", named.name.as_str()));
        urls.chain(commands).chain(pids).chain(limits)
    }

    /// What --broker says about the target `name`. Where all targets have names, 'builtin' without
    /// a name is about each of them.
    pub(super) fn broker(&self, name: &str, only_named: bool) -> Option<&BrokerArgument> {
        let all_builtin = || {
            let own = Named::of(&self.brokers, Scenario::DEFAULT_TARGET)?;
            (only_named && own.url.is_none()).then_some(own)
        };
        Named::of(&self.brokers, name).or_else(all_builtin)
    }

    /// The addresses of the targets about whose brokers the arguments say something; `None` where
    /// the run starts the broker.
    pub(super) fn located(&self, scenario: &Scenario) -> BTreeMap<String, Option<BrokerUrl>> {
        let only_named = scenario.has_only_named_targets();
        let named = scenario.targets.keys().map(String::as_str);
        let all = std::iter::once(Scenario::DEFAULT_TARGET).chain(named);
        all.filter_map(|name| {
            let is_command = || Named::of(&self.broker_cmds, name).map(|_| None);
            let broker = self.broker(name, only_named).map(|broker| broker.url.clone());
            Some((name.to_owned(), broker.or_else(is_command)?))
        })
        .collect()
    }

    /// The command that starts the default broker.
    pub(crate) fn command(&self) -> Option<&String> {
        Named::of(&self.broker_cmds, Scenario::DEFAULT_TARGET)
    }

    /// Checks the target names in the arguments against the scenario's.
    pub(crate) fn check(&self, names: &[&str]) -> Result<(), Failure> {
        let complain = |sentence: String| Err(Failure::new(exit::INVALID_CONFIG, sentence));
        self.crew.choice()?;
        let known: Vec<&str> = names.iter().copied().filter(|known| !known.is_empty()).collect();
        for (flag, name) in self.names_of_brokers() {
            // Otherwise the option would apply to no broker without notice.
            if name.is_empty() && !names.contains(&name) {
                return complain(format!(
                    "{flag} needs the name of one of the scenario's brokers: write {flag} NAME=..., \
                     with one of {}",
                    known.join(", ")
                ));
            }
        }
        for (flag, name) in self.names() {
            if !names.contains(&name) && !name.is_empty() {
                return complain(match known.is_empty() {
                    true => format!("{flag} {name}=...: the scenario has no named targets"),
                    false => format!(
                        "{flag} {name}=...: the scenario has no target '{name}', only {}",
                        known.join(", ")
                    ),
                });
            }
        }
        self.credentials.check(self.brokers.iter().map(|named| &named.value.credentials))?;
        for Named { name, .. } in &self.broker_pids {
            if Named::of(&self.brokers, name).is_none() {
                return complain(format!(
                    "--broker-pid of the target '{name}' needs the --broker that it belongs to"
                ));
            }
        }
        for Named { name, .. } in &self.brokers {
            if Named::of(&self.broker_cmds, name).is_some() {
                let of = if name.is_empty() { String::new() } else { format!(" of '{name}'") };
                return Err(Failure::new(
                    exit::UNEXPECTED,
                    format!("the argument --broker{of} cannot be used with --broker-cmd{of}"),
                ));
            }
        }
        Ok(())
    }
}

/// The broker of one side of a comparison.
#[derive(Clone, Debug)]
pub(crate) enum SideBroker {
    /// Tacho's own.
    BuiltIn,
    /// One that is running.
    Url(BrokerUrl),
    /// One that the run starts.
    Command(String),
}

/// The broker under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BrokerArgument {
    /// One that is running; otherwise Tacho's own, started for the run.
    url: Option<BrokerUrl>,
    pub(super) credentials: BrokerCredentials,
    /// Certificates of a broker with a name of the user's, else the default.
    pub(super) tls: TlsOptions,
}

impl BrokerArgument {
    fn parse(text: &str) -> Result<Self, String> {
        let (rest, credentials) = BrokerCredentials::take(text)?;
        if rest == "builtin" {
            return Ok(Self { credentials, ..Self::new(None) });
        }
        let Profile { url, username, password, tls } = Profile::parse(&rest)?;
        let credentials = credentials.completed(username, password)?;
        Ok(Self { url: Some(url), credentials, tls })
    }

    fn new(url: Option<BrokerUrl>) -> Self {
        Self { url, credentials: BrokerCredentials::default(), tls: TlsOptions::default() }
    }
}

/// Cores, at least one.
#[derive(Clone, Debug)]
pub(crate) struct CoreList(pub(super) Vec<usize>);

fn parse_cores(text: &str) -> Result<CoreList, String> {
    match parse_cpu_list(text) {
        Some(cores) if !cores.is_empty() => Ok(CoreList(cores)),
        _ => Err("write core numbers such as 0-3,8".to_owned()),
    }
}

fn parse_pid(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("'{text}' is not a process id"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_values() {
        let named = |text: &str| {
            let named = Named::parse(text, |rest| Ok(rest.to_owned())).expect("any value");
            (named.name, named.value)
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(named("mqtt://a:1"), pair("", "mqtt://a:1"));
        assert_eq!(named("node1=mqtt://a:1"), pair("node1", "mqtt://a:1"));
        assert_eq!(named("mosquitto --port={port}"), pair("", "mosquitto --port={port}"));
        assert_eq!(named("n-2=mosquitto -p {port}"), pair("n-2", "mosquitto -p {port}"));
        let all = [
            Named { name: "a".to_owned(), value: 1 },
            Named { name: String::new(), value: 2 },
            Named { name: "a".to_owned(), value: 3 },
        ];
        assert_eq!((Named::of(&all, "a"), Named::of(&all, "")), (Some(&3), Some(&2)));
        assert_eq!(Named::of(&all, "b"), None);
    }
}
