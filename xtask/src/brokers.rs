//! The brokers that stand beside each other, how each is started, and what each cannot do.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::{peers, shell};

/// The keys that `--brokers` takes.
pub(crate) const ALL: [&str; 4] = ["tacho", "mosquitto", "mochi", "rumqttd"];

/// Limits lifted so that no message is lost to a default; everything else is at its default.
const MOSQUITTO: &str = "allow_anonymous true\nset_tcp_nodelay true\nlog_type error\n\
    max_inflight_messages 0\nmax_queued_messages 0\n";

/// For measurements of speed: small messages are not held back, and nothing is stored.
pub(crate) const MOSQUITTO_FAST: &str =
    "allow_anonymous true\nset_tcp_nodelay true\npersistence false\nlog_type error\n";

/// The guide's bridge: everything below `bridge/` to the other one, QoS kept.
const MOSQUITTO_BRIDGE: &str = "listener PORT 127.0.0.1\nlistener OWN 127.0.0.1\n\
    connection other\naddress 127.0.0.1:OTHER\nbridge_protocol_version mqttv50\n\
    restart_timeout 1\ntopic bridge/# out 2 \"\" remote/\n";

/// Its own example configuration with the limits of connections, packets and the inflight window
/// raised; it has no setting for `TCP_NODELAY`. VN is the version of MQTT, which each of its
/// listeners has one of.
const RUMQTTD: &str = "id = 0\n\n[router]\nid = 0\nmax_connections = 30000\n\
    max_outgoing_packet_count = 200\nmax_segment_size = 104857600\nmax_segment_count = 10\n\n\
    [VN.1]\nname = \"VN-1\"\nlisten = \"127.0.0.1:PORT\"\nnext_connection_delay_ms = 0\n\n\
    [VN.1.connections]\nconnection_timeout_ms = 60000\nmax_payload_size = 1048576\n\
    max_inflight_count = 1000\ndynamic_filters = true\n";

/// A broker as the record and the document have it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Broker {
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) version: String,
    /// How it is started, without the folders of one machine.
    pub(crate) command: String,
    /// The same where sessions must outlive their connections.
    pub(crate) persistent_command: String,
    /// Its configuration file; empty without one.
    pub(crate) configuration: String,
    /// What is added to it for the bridge; empty for who has a pair of its own, or none.
    pub(crate) bridge: String,
    /// What it does with sessions that outlive connections.
    pub(crate) persistence: String,
    /// Which rows it cannot do, and why.
    pub(crate) cannot: Vec<Cannot>,
    #[serde(skip)]
    program: PathBuf,
}

/// A kind of rows that a broker cannot do.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cannot {
    /// `bridge` or `persistent`.
    pub(crate) what: String,
    pub(crate) why: String,
}

impl Broker {
    /// Why it cannot do a row, if so.
    pub(crate) fn refuses(&self, bridged: bool, persistent: bool) -> Option<&str> {
        let cannot = |what: &str| self.cannot.iter().find(|cannot| cannot.what == what);
        let bridge = bridged.then(|| cannot("bridge")).flatten();
        let persistence = persistent.then(|| cannot("persistent")).flatten();
        bridge.or(persistence).map(|cannot| cannot.why.as_str())
    }

    /// The `--broker-cmd` of a row; files that it needs lie in `folder`.
    pub(crate) fn start(&self, folder: &Path, persistent: bool) -> Result<String> {
        let template = if persistent { &self.persistent_command } else { &self.command };
        let conf = folder.join(format!("{}.conf", self.key));
        if !self.configuration.is_empty() {
            fs::write(&conf, &self.configuration)
                .with_context(|| format!("cannot write {conf:?}"))?;
        }
        let command = template.replace("CONF", &conf.to_string_lossy());
        Ok(command.replacen("PROGRAM", &self.program.to_string_lossy(), 1))
    }

    /// The commands of two brokers that are bridged as the guide's are; `ports` are free ones.
    ///
    /// `None` where `tacho run` starts its own pair.
    pub(crate) fn bridged(&self, folder: &Path, ports: [u16; 2]) -> Result<Option<[String; 2]>> {
        if self.key != "mosquitto" {
            return Ok(None);
        }
        let mut commands = [String::new(), String::new()];
        for (index, command) in commands.iter_mut().enumerate() {
            let (own, remote) = (ports[index], ports[1 - index]);
            let path = folder.join(format!("mosquitto-node{}.conf", index + 1));
            // Clients come to the port of the run, the other broker to one that it can know. A
            // bridge tells the window to the other side, where 0 is against the protocol.
            let bridge = self.bridge.replace("OWN", &own.to_string());
            let bridge = bridge.replace("OTHER", &remote.to_string());
            let text = self.configuration.replace("inflight_messages 0", "inflight_messages 1000");
            let text = text + &bridge;
            fs::write(&path, text).with_context(|| format!("cannot write {path:?}"))?;
            let program = format!("{} -c", self.program.display());
            *command = on_chosen_port(&path.display().to_string(), "{dir}/own.conf", &program);
        }
        Ok(Some(commands))
    }
}

/// The `--broker-cmd` of a program that has its port from its configuration, where PORT stands for
/// it; `now` is the file with the port of the run.
pub(crate) fn on_chosen_port(configuration: &str, now: &str, program: &str) -> String {
    format!("sh -c \"sed s/PORT/{{port}}/ {configuration} > {now} && exec {program} {now}\"")
}

/// The brokers of these keys; without any, all that are installed or can be. Clients speak MQTT
/// 5.0, or else 3.1.1.
pub(crate) fn chosen(keys: &[String], tacho: &Path, mqtt5: bool) -> Result<Vec<Broker>> {
    if let Some(unknown) = keys.iter().find(|key| !ALL.contains(&key.as_str())) {
        bail!("there is no broker `{unknown}` here: {}", ALL.join(", "));
    }
    let mut brokers = Vec::new();
    for key in ALL.iter().filter(|key| keys.is_empty() || keys.iter().any(|one| one == **key)) {
        match broker(key, tacho, mqtt5) {
            Ok(broker) => brokers.push(broker),
            // A broker asked for by name must be there.
            Err(error) if !keys.is_empty() => return Err(error),
            Err(error) => eprintln!("without {key}: {error:#}"),
        }
    }
    if keys.is_empty() && brokers.len() < 3 {
        bail!("fewer than two other brokers are installed; --brokers selects installed ones");
    }
    Ok(brokers)
}

fn broker(key: &str, tacho: &Path, mqtt5: bool) -> Result<Broker> {
    match key {
        "tacho" => tacho_broker(key, tacho),
        "mosquitto" => mosquitto(key),
        "mochi" => mochi(key),
        _ => rumqttd(key, mqtt5),
    }
}

fn tacho_broker(key: &str, tacho: &Path) -> Result<Broker> {
    Ok(Broker {
        version: shell::output(shell::command(tacho).arg("--version"))?.trim().to_owned(),
        command: "PROGRAM broker --quiet --listen 127.0.0.1:{port} --shards 1".to_owned(),
        persistent_command: "PROGRAM broker --quiet --listen 127.0.0.1:{port} --shards 1 \
                                 --data-dir {dir}"
            .to_owned(),
        configuration: String::new(),
        persistence: "a journal, synced to the disk before anything is acknowledged; messages \
                          of QoS 0 are not kept"
            .to_owned(),
        cannot: Vec::new(),
        ..named(key, "Tacho", tacho.to_path_buf())
    })
}

fn mosquitto(key: &str) -> Result<Broker> {
    let program = shell::find("mosquitto")
        .context("no `mosquitto` on this machine: apt-get install mosquitto")?;
    Ok(Broker {
        version: first_line(&program, "-h"),
        command: "PROGRAM -c CONF -p {port}".to_owned(),
        // It gives up root otherwise, and cannot write to the folder of the run.
        persistent_command: "sh -c \"(cat CONF; echo user root; echo persistence true; echo \
                                     persistence_location {dir}/) > {dir}/own.conf; exec PROGRAM \
                                     -c {dir}/own.conf -p {port}\""
            .to_owned(),
        configuration: MOSQUITTO.to_owned(),
        bridge: MOSQUITTO_BRIDGE.to_owned(),
        persistence: "in memory; `persistence true` writes a copy every half an hour and at \
                              a regular end, so that a crash loses what came since"
            .to_owned(),
        cannot: Vec::new(),
        ..named(key, "mosquitto", program)
    })
}

fn mochi(key: &str) -> Result<Broker> {
    let program = peers::mochi()?;
    Ok(Broker {
        version: first_line(&program, "-version"),
        command: "PROGRAM -listen 127.0.0.1:{port}".to_owned(),
        persistent_command: "PROGRAM -listen 127.0.0.1:{port} -dir {dir}/badger".to_owned(),
        configuration: String::new(),
        persistence: "the storage that its authors recommend (badger), at its defaults: \
                              written, not synced, before anything is acknowledged"
            .to_owned(),
        cannot: vec![Cannot::new("bridge", "has no bridges")],
        ..named(key, "mochi-mqtt", program)
    })
}

fn rumqttd(key: &str, mqtt5: bool) -> Result<Broker> {
    let program = peers::rumqttd()?;
    Ok(Broker {
        version: first_line(&program, "--version"),
        command: "sh -c \"sed s/PORT/{port}/ CONF > {dir}/own.toml; exec PROGRAM --quiet \
                          --config {dir}/own.toml\""
            .to_owned(),
        persistent_command: String::new(),
        configuration: RUMQTTD.replace("VN", if mqtt5 { "v5" } else { "v4" }),
        persistence: "none: its log is in memory".to_owned(),
        cannot: vec![
            Cannot::new(
                "bridge",
                "its bridge puts nothing in front of topics, so that two of them would \
                         pass messages round in circles",
            ),
            Cannot::new("persistent", "keeps nothing on the disk"),
        ],
        ..named(key, "rumqttd", program)
    })
}

fn named(key: &str, name: &str, program: PathBuf) -> Broker {
    Broker {
        key: key.to_owned(),
        name: name.to_owned(),
        program,
        version: String::new(),
        command: String::new(),
        persistent_command: String::new(),
        configuration: String::new(),
        bridge: String::new(),
        persistence: String::new(),
        cannot: Vec::new(),
    }
}

impl Cannot {
    fn new(what: &str, why: &str) -> Self {
        Self { what: what.to_owned(), why: why.to_owned() }
    }
}

/// What a program says of itself first, to either output.
fn first_line(program: &Path, argument: &str) -> String {
    let output = shell::command(program).arg(argument).output();
    let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().next().unwrap_or("unknown").trim().to_owned()
}

/// One that is not installed.
#[cfg(test)]
pub(crate) fn unnamed(key: &str) -> Broker {
    Broker { version: key.to_owned(), ..named(key, key, PathBuf::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mosquitto() -> Broker {
        Broker {
            command: "PROGRAM -c CONF -p {port}".to_owned(),
            persistent_command: "sh -c \"cat CONF > {dir}/own.conf; exec PROGRAM\"".to_owned(),
            configuration: MOSQUITTO.to_owned(),
            bridge: MOSQUITTO_BRIDGE.to_owned(),
            cannot: vec![Cannot::new("persistent", "keeps nothing")],
            ..named("mosquitto", "mosquitto", PathBuf::from("/usr/sbin/mosquitto"))
        }
    }

    #[test]
    fn commands_name_the_program_and_its_configuration() {
        let folder = tempfile::tempdir().expect("a folder");
        let conf = folder.path().join("mosquitto.conf");
        let conf_name = conf.display();
        let command = mosquitto().start(folder.path(), false).expect("a command");
        assert_eq!(command, format!("/usr/sbin/mosquitto -c {conf_name} -p {{port}}"));
        assert_eq!(fs::read_to_string(&conf).expect("written"), MOSQUITTO);
        let command = mosquitto().start(folder.path(), true).expect("a command");
        let wanted =
            format!("sh -c \"cat {conf_name} > {{dir}}/own.conf; exec /usr/sbin/mosquitto\"");
        assert_eq!(command, wanted);
    }

    #[test]
    fn bridged_brokers_point_at_each_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let commands = mosquitto().bridged(folder.path(), [1001, 1002]).expect("commands");
        assert_eq!(commands.expect("a pair").len(), 2);
        for (node, own, other) in [(1, 1001, 1002), (2, 1002, 1001)] {
            let path = folder.path().join(format!("mosquitto-node{node}.conf"));
            let text = fs::read_to_string(path).expect("written");
            assert!(text.contains(&format!("listener {own} ")), "{text}");
            assert!(text.contains(&format!("address 127.0.0.1:{other}")), "{text}");
            assert!(!text.contains("inflight_messages 0"), "{text}");
        }
        let tacho = Broker { key: "tacho".to_owned(), ..mosquitto() };
        assert!(tacho.bridged(folder.path(), [1, 2]).expect("no error").is_none());
    }

    #[test]
    fn brokers_that_cannot_run_a_row_say_why() {
        assert_eq!(mosquitto().refuses(false, false), None);
        assert_eq!(mosquitto().refuses(false, true), Some("keeps nothing"));
        assert_eq!(mosquitto().refuses(true, false), None);
    }
}
