//! Brokers of our own that pass messages on to each other, set up as the published bridge test's.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tacho_lab::output::RunDirectory;
use tacho_lab::scenario::{Bridge, Scheme};

use super::broker::{file_name, free_port};
use super::unless_stopped;
use crate::bridge::Asker;
use crate::exit::{self, Failure};

/// Connections of a bridge unless the scenario says otherwise.
const CONNECTIONS: u16 = 64;

/// The published set-up, but for what the scenario says.
const SETTINGS: &str = "\
version = \"5\"
keep_alive_s = 300
inflight = 100
buffer_bytes_max = 1073741824
buffer_ttl_s = 45
retry_longest_s = 15
health_check_s = 15
";

/// How long bridges may take until all their connections are made.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long one answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Brokers of our own that know of each other, by name; empty where nothing is bridged.
#[derive(Debug, Default)]
pub(super) struct Network(BTreeMap<String, Place>);

/// Where one of them listens, before it does.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// For clients.
    port: u16,
    /// For bridges, by TCP without anything around it.
    bridges: u16,
    /// For questions.
    control: u16,
}

/// What a broker of a network is started with, beside what others are.
#[derive(Debug)]
pub(super) struct Bridging {
    /// Its port for clients.
    pub(super) port: u16,
    /// Its configuration.
    pub(super) config: PathBuf,
    /// Where it listens for bridges, if not where clients are.
    pub(super) listen: Option<SocketAddr>,
}

impl Network {
    /// Chooses ports for `brokers`: names, and whether they are killed.
    pub(super) fn of<'a>(
        brokers: impl Iterator<Item = (&'a str, bool)>,
        scheme: Scheme,
    ) -> Result<Self, Failure> {
        let mut taken = Vec::new();
        let mut choose = |killed: bool| {
            loop {
                let port = free_port(killed)?;
                if !taken.contains(&port) {
                    taken.push(port);
                    return Ok::<u16, Failure>(port);
                }
            }
        };
        let mut places = BTreeMap::new();
        for (name, killed) in brokers {
            let port = choose(killed)?;
            let bridges = if scheme == Scheme::Mqtt { port } else { choose(killed)? };
            places.insert(name.to_owned(), Place { port, bridges, control: choose(killed)? });
        }
        Ok(Self(places))
    }

    /// Writes the configuration of the broker `name`, which `bridges` lead away from. Brokers that
    /// keep sessions (`keeps`) keep those of bridges too, at both ends; others begin anew with each
    /// connection, as the published ones do.
    pub(super) fn bridging(
        &self,
        name: &str,
        (bridges, keeps): (&[Bridge], bool),
        directory: &RunDirectory,
    ) -> Result<Option<Bridging>, Failure> {
        let Some(place) = self.0.get(name) else { return Ok(None) };
        let config = directory.file(&file_name("bridges", name, ".toml"));
        self.write(place, (bridges, keeps), &config).map_err(|error| {
            let sentence = format!("cannot write {}: {error}", config.display());
            Failure::new(exit::UNEXPECTED, sentence)
        })?;
        let listen = (place.bridges != place.port).then(|| loopback(place.bridges));
        Ok(Some(Bridging { port: place.port, config, listen }))
    }

    fn write(
        &self,
        place: &Place,
        (bridges, keeps): (&[Bridge], bool),
        path: &Path,
    ) -> std::io::Result<()> {
        let mut text = format!("metrics = \"{}\"\n", loopback(place.control));
        let mut by_end: BTreeMap<&str, Vec<&Bridge>> = BTreeMap::new();
        for bridge in bridges {
            by_end.entry(&bridge.to).or_default().push(bridge);
        }
        // Writing to a string cannot fail.
        for (to, bridges) in by_end {
            let Some(there) = self.0.get(to) else { continue };
            let address = loopback(there.bridges);
            let connections = bridges.iter().find_map(|bridge| bridge.connections);
            let _ = write!(
                text,
                "\n[[bridges]]\nname = \"{}\"\naddress = \"mqtt://{address}\"\n\
                 connections = {}\nclean_start = {}\n{SETTINGS}",
                bridge_name(to),
                connections.unwrap_or(CONNECTIONS),
                !keeps,
            );
            for bridge in bridges {
                let topic = format!("{}${{topic}}", bridge.prefix.replace("${", "$${"));
                let _ = write!(
                    text,
                    "\n[[bridges.egress]]\nfilter = {}\ntopic = {}\npayload = \"${{payload}}\"\n\
                     qos = \"keep\"\nretain = \"keep\"\n",
                    quoted(&bridge.filter),
                    quoted(&topic),
                );
            }
        }
        std::fs::write(path, text)
    }

    /// Waits until all bridges are up.
    pub(super) fn wait(&self, stop: &AtomicBool) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        let asker = Asker::new(ANSWER_TIMEOUT);
        for (name, place) in &self.0 {
            let url = url(place);
            loop {
                unless_stopped(stop)?;
                let complaint = match asker.ask(&url) {
                    Ok(list) => match list.bridges.iter().find(|bridge| !bridge.is_up()) {
                        None => break,
                        Some(bridge) => bridge.to_string(),
                    },
                    Err(sentence) => sentence,
                };
                if Instant::now() >= deadline {
                    let seconds = PATIENCE.as_secs();
                    let sentence = format!(
                        "'{name}' has a bridge that is not up after {seconds} s: {complaint}"
                    );
                    return Err(Failure::new(exit::TARGET_UNREACHABLE, sentence));
                }
                std::thread::sleep(LOOK_EVERY);
            }
        }
        Ok(())
    }

    /// Where the broker `name` answers questions, if it is one of them.
    pub(super) fn url(&self, name: &str) -> Option<String> {
        self.0.get(name).map(url)
    }

    /// The broker that a bridge of this name leads to.
    pub(super) fn led_to(&self, bridge: &str) -> Option<&str> {
        self.0.keys().find(|name| bridge_name(name) == bridge).map(String::as_str)
    }
}

fn url(place: &Place) -> String {
    format!("http://{}", loopback(place.control))
}

/// Names of scenarios may have what names of bridges may not.
fn bridge_name(to: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = to.chars().map(plain).take(60).collect();
    format!("to-{name}")
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// As TOML quotes it, which is as JSON does.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use tacho_broker::RawConfig;

    use super::*;

    #[test]
    fn brokers_are_bridged_as_the_published_ones() {
        let names = [("node1", false), ("node2", true)];
        let bridge = |from: &str, to: &str, connections| Bridge {
            from: from.to_owned(),
            to: to.to_owned(),
            filter: "bridge/#".to_owned(),
            strip: String::new(),
            prefix: "remote/".to_owned(),
            connections,
        };
        for scheme in [Scheme::Mqtt, Scheme::Mqtts] {
            let network = Network::of(names.into_iter(), scheme).expect("ports");
            let folder = tempfile::tempdir().expect("a folder");
            let directory = RunDirectory::create(&folder.path().join("run")).expect("a directory");
            let bridging = |name, other, connections| {
                let bridges = [bridge(name, other, connections)];
                let keeps = name == "node2";
                network
                    .bridging(name, (&bridges, keeps), &directory)
                    .expect("is written")
                    .expect("known")
            };
            let (one, two) =
                (bridging("node1", "node2", None), bridging("node2", "node1", Some(3)));
            assert_eq!(one.listen.is_some(), scheme == Scheme::Mqtts, "bridges use plain TCP");
            let read = |path: &Path| RawConfig::read(path).expect("TOML").resolve().expect("valid");
            let (first, second) = (read(&one.config), read(&two.config));
            let ports: std::collections::BTreeSet<u16> =
                network.0.values().flat_map(|p| [p.port, p.bridges, p.control]).collect();
            assert_eq!(ports.len(), if scheme == Scheme::Mqtt { 4 } else { 6 });
            let bridge = &first.bridges[0];
            let plain = two.listen.map_or(two.port, |address| address.port());
            assert_eq!(bridge.remote.to_string(), format!("mqtt://127.0.0.1:{plain}"));
            assert_eq!((bridge.connections, second.bridges[0].connections), (64, 3));
            assert!(bridge.clean_start && !second.bridges[0].clean_start);
            assert_eq!(network.led_to(&bridge.name), Some("node2"));
            assert_eq!((bridge.inflight, bridge.buffer_ttl_s, bridge.keep_alive_s), (100, 45, 300));
            let rule = &bridge.egress[0];
            assert_eq!(rule.filter.as_str(), "bridge/#");
            assert_eq!(rule.mapping.topic.to_string(), "remote/${topic}");
            assert!(rule.mapping.payload.keeps_payload() && rule.mapping.qos.is_none());
        }
    }
}
