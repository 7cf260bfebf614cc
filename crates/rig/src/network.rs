//! Brokers of Tacho that bridge to each other, set up as in the published bridge test.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::bridge_client::BridgeClient;
use crate::error::RigError;
use crate::port::{PortUse, free_port};
use crate::stop::unless_stopped;

/// Connections of a bridge unless its rules say otherwise.
const CONNECTIONS: u16 = 64;

/// The published settings that rules do not change.
const SETTINGS: &str = "\
version = \"5\"
keep_alive_s = 300
inflight = 100
buffer_bytes_max = 1073741824
buffer_ttl_s = 45
ack_timeout_s = 15
health_check_s = 15
";

/// How long bridges may take until all their connections are up.
const UP_TIMEOUT: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long one answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Brokers that bridge to each other, by name; empty where nothing is bridged.
#[derive(Debug, Default)]
pub struct Network(BTreeMap<String, Ports>);

/// Ports of one broker, chosen before it is started.
#[derive(Clone, Copy, Debug)]
struct Ports {
    clients: u16,
    /// For bridges, which use plain TCP.
    bridges: u16,
    /// For questions by HTTP.
    control: u16,
}

/// Messages that a broker passes on.
#[derive(Clone, Debug)]
pub struct BridgeRule {
    /// The broker that they arrive at.
    pub to: String,
    /// Their topics.
    pub filter: String,
    /// Prefix added to the topic.
    pub prefix: String,
    /// Connections of the bridge; the published number unless given.
    pub connections: Option<u16>,
}

/// Sessions of bridges, at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sessions {
    /// Each connection begins with a clean session, as in the published test.
    Clean,
    /// They outlive connections, as the sessions of clients do.
    Persistent,
}

/// Settings of a broker that is part of a network.
#[derive(Debug)]
pub struct Bridging {
    /// Its port for clients.
    pub port: u16,
    /// Its configuration file.
    pub(crate) config: PathBuf,
    /// Where it listens for bridges, if not where it listens for clients.
    pub(crate) listen: Option<SocketAddr>,
}

impl Network {
    /// Chooses ports for `brokers`, given by name. With `bridges_share_port` bridges connect to the
    /// port for clients, which then must be plain TCP.
    ///
    /// # Errors
    /// When the system has no free port.
    pub fn new<'a>(
        brokers: impl Iterator<Item = (&'a str, PortUse)>,
        bridges_share_port: bool,
    ) -> Result<Self, RigError> {
        let mut taken = Vec::new();
        let mut choose = |port_use| {
            loop {
                let port = free_port(port_use)?;
                if !taken.contains(&port) {
                    taken.push(port);
                    return Ok::<u16, RigError>(port);
                }
            }
        };
        let mut all = BTreeMap::new();
        for (name, port_use) in brokers {
            let clients = choose(port_use)?;
            let bridges = if bridges_share_port { clients } else { choose(port_use)? };
            let control = choose(port_use)?;
            all.insert(name.to_owned(), Ports { clients, bridges, control });
        }
        Ok(Self(all))
    }

    /// Writes the configuration of the broker `name` to the file `config`; `rules` select
    /// the messages that it forwards. `None` for a broker that is not in the network.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn bridging(
        &self,
        name: &str,
        (rules, sessions): (&[BridgeRule], Sessions),
        config: PathBuf,
    ) -> Result<Option<Bridging>, RigError> {
        let Some(ports) = self.0.get(name) else { return Ok(None) };
        if let Err(error) = self.write(ports, (rules, sessions), &config) {
            return Err(RigError::Write { path: config, error });
        }
        let listen = (ports.bridges != ports.clients).then(|| loopback(ports.bridges));
        Ok(Some(Bridging { port: ports.clients, config, listen }))
    }

    fn write(
        &self,
        ports: &Ports,
        (rules, sessions): (&[BridgeRule], Sessions),
        path: &Path,
    ) -> std::io::Result<()> {
        let mut text = format!("metrics = \"{}\"\n", loopback(ports.control));
        let mut by_end: BTreeMap<&str, Vec<&BridgeRule>> = BTreeMap::new();
        for rule in rules {
            by_end.entry(&rule.to).or_default().push(rule);
        }
        // Writing to a string cannot fail.
        for (to, rules) in by_end {
            let Some(there) = self.0.get(to) else { continue };
            let address = loopback(there.bridges);
            let connections = rules.iter().find_map(|rule| rule.connections);
            let _ = write!(
                text,
                "\n[[bridges]]\nname = \"{}\"\naddress = \"mqtt://{address}\"\n\
                 connections = {}\nclean_start = {}\n{SETTINGS}",
                bridge_name(to),
                connections.unwrap_or(CONNECTIONS),
                sessions == Sessions::Clean,
            );
            for rule in rules {
                let topic = format!("{}${{topic}}", rule.prefix.replace("${", "$${"));
                let _ = write!(
                    text,
                    "\n[[bridges.egress]]\nfilter = {}\ntopic = {}\npayload = \"${{payload}}\"\n\
                     qos = \"keep\"\nretain = \"keep\"\n",
                    quoted(&rule.filter),
                    quoted(&topic),
                );
            }
        }
        std::fs::write(path, text)
    }

    /// Waits until all bridges are up.
    ///
    /// # Errors
    /// When one is not in time, or the process was asked to stop.
    pub fn wait(&self, stop: &AtomicBool) -> Result<(), RigError> {
        let deadline = Instant::now() + UP_TIMEOUT;
        let client = BridgeClient::new(ANSWER_TIMEOUT);
        for (name, ports) in &self.0 {
            let url = url(ports);
            loop {
                unless_stopped(stop)?;
                let problem = match client.ask(&url) {
                    Ok(answer) => match answer.bridges.iter().find(|bridge| !bridge.is_up()) {
                        None => break,
                        Some(bridge) => bridge.to_string(),
                    },
                    Err(error) => error.to_string(),
                };
                if Instant::now() >= deadline {
                    let (broker, seconds) = (name.clone(), UP_TIMEOUT.as_secs());
                    return Err(RigError::BridgeDown { broker, seconds, problem });
                }
                std::thread::sleep(LOOK_EVERY);
            }
        }
        Ok(())
    }

    /// Where the broker `name` answers questions, if it is in the network.
    pub(crate) fn url(&self, name: &str) -> Option<String> {
        self.0.get(name).map(url)
    }

    /// The broker that a bridge of this name leads to.
    pub(crate) fn led_to(&self, bridge: &str) -> Option<&str> {
        self.0.keys().find(|name| bridge_name(name) == bridge).map(String::as_str)
    }
}

fn url(ports: &Ports) -> String {
    format!("http://{}", loopback(ports.control))
}

/// Names of brokers may have characters that names of bridges may not.
fn bridge_name(to: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = to.chars().map(plain).take(60).collect();
    format!("to-{name}")
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// As a string of TOML, which is written as one of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use tacho_broker::RawConfig;

    use super::*;

    #[test]
    fn brokers_are_bridged_as_the_published_ones() {
        let names = [("node1", PortUse::Once), ("node2", PortUse::Restarted)];
        let rule = |to: &str, connections| BridgeRule {
            to: to.to_owned(),
            filter: "bridge/#".to_owned(),
            prefix: "remote/".to_owned(),
            connections,
        };
        for plain in [true, false] {
            let network = Network::new(names.into_iter(), plain).expect("ports");
            let folder = tempfile::tempdir().expect("a folder");
            let bridging = |name, other, connections| {
                let sessions = if name == "node2" { Sessions::Persistent } else { Sessions::Clean };
                network
                    .bridging(
                        name,
                        (&[rule(other, connections)], sessions),
                        folder.path().join(name),
                    )
                    .expect("is written")
                    .expect("known")
            };
            let (one, two) =
                (bridging("node1", "node2", None), bridging("node2", "node1", Some(3)));
            assert_eq!(one.listen.is_some(), !plain, "bridges use plain TCP");
            let read = |path: &Path| RawConfig::read(path).expect("TOML").resolve().expect("valid");
            let (first, second) = (read(&one.config), read(&two.config));
            let ports: std::collections::BTreeSet<u16> =
                network.0.values().flat_map(|p| [p.clients, p.bridges, p.control]).collect();
            assert_eq!(ports.len(), if plain { 4 } else { 6 });
            let bridge = &first.bridges[0];
            let port = two.listen.map_or(two.port, |address| address.port());
            assert_eq!(bridge.remote.to_string(), format!("mqtt://127.0.0.1:{port}"));
            assert_eq!((bridge.connections, second.bridges[0].connections), (64, 3));
            assert!(bridge.clean_start && !second.bridges[0].clean_start);
            assert_eq!(network.led_to(&bridge.name), Some("node2"));
            assert_eq!((bridge.inflight, bridge.buffer_ttl_s, bridge.keep_alive_s), (100, 45, 300));
            let egress = &bridge.egress[0];
            assert_eq!(egress.filter.as_str(), "bridge/#");
            assert_eq!(egress.mapping.topic.to_string(), "remote/${topic}");
            assert!(egress.mapping.payload.keeps_payload() && egress.mapping.qos.is_none());
        }
    }
}
