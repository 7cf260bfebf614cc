//! `tacho ctl` as an operator uses it: on the broker's host without any set-up, by HTTP with a key.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tacho_codec::{QoS, ReasonCode, Version};
use tacho_testkit::{BrokerProgram, Client, connect, line_with, wait_until};
use tempfile::TempDir;

/// A folder that stands for that of a user's sockets.
struct Host(TempDir);

impl Host {
    fn new() -> Self {
        Self(TempDir::new().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.args(arguments).env("XDG_RUNTIME_DIR", self.0.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn broker(&self, arguments: &[&str]) -> BrokerProgram {
        let all = ["broker", "--listen", "0", "--sys-interval-s", "0", "--shards", "2"];
        BrokerProgram::start(&mut self.command(&[&all[..], arguments].concat()))
    }

    /// Runs `tacho ctl`, checks its exit code, and gives back what it said.
    fn ctl(&self, arguments: &[&str], code: i32) -> String {
        let Output { status, stdout, stderr } =
            self.command(&[&["ctl"], arguments].concat()).output().expect("starts");
        let said = String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(code), "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
        said.into_owned()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let text = self.ctl(&[&["--json"], arguments].concat(), 0);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("is there").permissions().mode() & 0o777
}

#[test]
fn a_single_broker_is_found_and_of_two_one_is_chosen() {
    let host = Host::new();
    host.ctl(&["health"], 112);
    let said = host.ctl(&["status"], 112);
    assert!(said.contains("no broker has a socket in"), "{said}");
    let mut broker = host.broker(&[]);
    let line = line_with(&mut broker.log, "tacho ctl");
    let socket = host.path(&format!("tacho/{}.sock", broker.address.port()));
    assert!(line.contains(socket.to_str().expect("is text")), "{line}");
    assert_eq!((mode(&host.path("tacho")), mode(&socket)), (0o700, 0o600));
    let said = host.ctl(&["status"], 0);
    assert!(said.contains("health") && said.contains("fine"), "{said}");
    assert!(host.ctl(&["health"], 0).contains("The broker is healthy."));
    // What an earlier broker has left is no broker.
    drop(UnixListener::bind(host.path("tacho/1.sock")).expect("is made"));
    host.ctl(&["status"], 0);
    let other = host.broker(&[]);
    let said = host.ctl(&["status"], 104);
    let flag = format!("--socket {}", socket.display());
    assert!(said.contains("2 brokers run here") && said.contains(&flag), "{said}");
    host.ctl(&["status", "--socket", socket.to_str().expect("is text")], 0);
    drop(other);
    host.ctl(&["status"], 0);
    let none = host.path("none.sock");
    let said = host.ctl(&["status", "--socket", none.to_str().expect("is text")], 112);
    assert!(said.contains("none.sock does not answer"), "{said}");
}

#[test]
fn a_broker_without_a_place_for_its_socket_starts_and_says_so() {
    let host = Host::new();
    fs::write(host.path("tacho"), "no folder").expect("writes");
    let all = ["broker", "--listen", "0", "--sys-interval-s", "0", "--shards", "1"];
    let mut child = host.command(&all).stdout(Stdio::null()).spawn().expect("starts");
    let mut log = BufReader::new(child.stderr.take().expect("is piped")).lines();
    let line = line_with(&mut log, "no management socket");
    assert!(line.contains("--management-socket"), "{line}");
    let broker = BrokerProgram::listening(child, log);
    broker.connected("c");
    drop(broker);
    // Where one was asked for, the broker does not start without it.
    let path = host.path("tacho");
    let flags = ["--management-socket", path.to_str().expect("is text")];
    let output = host.command(&[&all[..], &flags[..]].concat()).output().expect("starts");
    assert_eq!(output.status.code(), Some(104));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("is there and no socket"), "{said}");
    // And none may be wanted.
    let broker = host.broker(&["--management-socket", "none"]);
    broker.connected("c");
    host.ctl(&["status"], 112);
}

#[test]
fn clients_are_listed_shown_and_disconnected() {
    let host = Host::new();
    let broker = host.broker(&[]);
    assert!(host.ctl(&["clients"], 0).contains("There is no such client."));
    let mut client = broker.connected("meter 7");
    client.subscribe("a/+", QoS::AtLeastOnce);
    let _others: Vec<Client> = (0..5).map(|i| broker.connected(&format!("other-{i}"))).collect();
    let said = host.ctl(&["clients", "--prefix", "meter"], 0);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].starts_with("client") && lines[1].starts_with("meter 7  connected"), "{said}");
    assert!(host.ctl(&["clients", "-n", "2"], 0).contains("... and more"));
    assert_eq!(host.json(&["clients", "--all"])["clients"].as_array().map(Vec::len), Some(6));
    let said = host.ctl(&["client", "meter 7"], 0);
    let address = client.stream.local_addr().expect("has one").to_string();
    assert!(said.contains(&address) && said.contains("subscriptions"), "{said}");
    assert!(host.ctl(&["subscriptions", "meter 7"], 0).contains("a/+"));
    let said = host.ctl(&["topic", "a/b"], 0);
    assert!(said.contains("meter 7  a/+"), "{said}");
    assert!(host.ctl(&["subscribers", "a/+"], 0).contains("meter 7"));
    let said = host.ctl(&["kick", "meter 7"], 0);
    assert!(said.contains("was disconnected; its session has ended"), "{said}");
    assert_eq!(client.expect_disconnect(), ReasonCode::ADMINISTRATIVE_ACTION);
    let said = host.ctl(&["client", "meter 7"], 104);
    assert!(said.contains("there is no session of the client 'meter 7'"), "{said}");
    for wrong in [
        &["clients", "--state", "asleep"][..],
        &["clients", "--limit", "0"],
        &["publish"],
        &["nothing"],
        &["keys", "add", "a", "--role", "king"],
    ] {
        host.ctl(wrong, 1);
    }
    let said = host.ctl(&["clients", "--address", "here"], 104);
    assert!(said.contains("address: ") && said.contains("192.0.2.7"), "{said}");
}

#[test]
fn messages_are_published_kept_shown_and_deleted() {
    let host = Host::new();
    let broker = host.broker(&[]);
    let mut client = broker.connected("c");
    client.subscribe("news", QoS::AtLeastOnce);
    let said = host.ctl(&["publish", "-t", "news", "-m", "good", "-q", "1", "-r"], 0);
    assert_eq!(said, "published 4 B to news\n");
    assert_eq!(client.receive_and_ack().payload, b"good");
    let file = host.path("payload");
    fs::write(&file, [0xff, 0]).expect("writes");
    host.ctl(&["publish", "-t", "bytes", "-r", "-f", file.to_str().expect("is text")], 0);
    let said = host.ctl(&["retained", "list"], 0);
    assert!(said.contains("news") && said.contains("bytes"), "{said}");
    assert_eq!(host.ctl(&["retained", "show", "news"], 0), "good\n");
    assert_eq!(host.ctl(&["retained", "show", "bytes"], 0), "/wA= (base64)\n");
    assert_eq!(host.ctl(&["retained", "delete", "news"], 0), "1 retained message deleted\n");
    host.ctl(&["retained", "show", "news"], 104);
    assert_eq!(host.json(&["retained", "delete", "--filter", "#"])["deleted"], 1);
    assert!(host.ctl(&["publish", "-t", "$SYS/x"], 104).contains("topic: "));
    client.subscribe("$share/g/jobs", QoS::AtLeastOnce);
    assert!(host.ctl(&["groups"], 0).contains("$share/g/jobs"));
    assert!(host.ctl(&["group", "$share/g/jobs"], 0).contains("c "));
}

#[test]
fn the_broker_is_looked_at_and_reloaded() {
    let host = Host::new();
    let config = host.path("broker.toml");
    let text = "[limits]\ninflight_max = 7\n[[bridges]]\nname = 'b'\naddress = 'mqtt://127.0.0.1:1'\n\
                [[bridges.egress]]\nfilter = 'a'\n";
    fs::write(&config, text).expect("writes");
    let data = host.path("data");
    let flags = [
        "--config",
        config.to_str().expect("is text"),
        "--data-dir",
        data.to_str().expect("is text"),
        "--connections-max",
        "50",
    ];
    let _broker = host.broker(&flags);
    let values = host.json(&["config"]);
    let source = |key: &str| {
        let rows = values["values"].as_array().expect("is a list");
        rows.iter().find(|row| row["key"] == key).map(|row| row["source"].clone())
    };
    assert_eq!(source("limits.inflight_max"), Some("file".into()));
    assert_eq!(source("bridges.0.name"), Some("file".into()));
    assert_eq!(source("limits.connections_max"), Some("flag".into()));
    assert_eq!(source("limits.sessions_max"), Some("default".into()));
    assert_eq!(source("sys_interval_s"), Some("flag".into()));
    let said = host.ctl(&["config", "--changed"], 0);
    assert!(said.contains("limits.inflight_max") && !said.contains("sessions_max"), "{said}");
    assert!(host.ctl(&["bridges"], 0).contains("mqtt://127.0.0.1:1"));
    assert_eq!(host.ctl(&["bridge", "pause", "b"], 0), "b is paused: messages wait for it\n");
    let said = host.ctl(&["bridges"], 0);
    assert!(said.contains("an operator has paused the bridge"), "{said}");
    host.ctl(&["bridge", "drain", "b"], 0);
    host.ctl(&["bridge", "stop", "b"], 0);
    assert_eq!(host.ctl(&["bridge", "resume", "b"], 0), "b forwards messages\n");
    assert!(host.ctl(&["bridge", "pause", "c"], 104).contains("there is no bridge 'c'"));
    assert!(host.ctl(&["journal"], 0).contains("garbage"));
    assert!(host.ctl(&["alarms", "--past"], 0).contains("There was no other alarm."));
    assert!(host.ctl(&["limits"], 0).contains("connections_max"));
    assert!(host.ctl(&["listeners"], 0).contains("tcp"));
    assert!(host.ctl(&["users"], 0).contains("There are no users"));
    assert!(host.ctl(&["roles"], 0).contains("There are no roles"));
    let said = host.ctl(&["history", "--day", "-n", "2"], 0);
    assert!(said.contains("There is no point yet") || said.contains("loop lag"), "{said}");
    assert_eq!(host.json(&["history"])["span"], "hour");
    let said = host.ctl(&["explain", "-i", "c", "-u", "ann", "-q", "1", "-r", "publish", "a"], 0);
    assert_eq!(said, "allowed: no access rules: every client may do everything\n");
    let said = host.ctl(&["explain", "publish", "$SYS/a/#"], 104);
    assert!(said.contains("a topic is text without + and #"), "{said}");
    assert!(host.ctl(&["metrics"], 0).contains("tacho_sessions"));
    assert_eq!(host.json(&["openapi"])["openapi"], "3.1.0");
    let said = host.ctl(&["reload"], 0);
    assert!(said.contains("no users and access rules are configured"), "{said}");
    assert!(!said.contains("->"), "nothing has changed: {said}");
    // What has changed is applied or waits; what cannot be used changes nothing.
    let rows = host.json(&["config"]);
    let rows = rows["values"].as_array().expect("is a list");
    let place = rows.iter().find(|row| row["key"] == "limits.inflight_max").expect("is there");
    assert_eq!(place["place"], config.to_str().expect("is text"));
    fs::write(&config, text.replace("= 7", "= 8\nturn_us_max = 500")).expect("writes");
    let said = host.ctl(&["reload"], 0);
    assert!(said.contains("applied: limits.inflight_max 7 -> 8"), "{said}");
    assert!(said.contains("at the next start: limits.turn_us_max 1000 -> 500"), "{said}");
    let said = host.ctl(&["config"], 0);
    let line = |key: &str| {
        let line = said.lines().find(|line| line.starts_with(key)).expect("is there");
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let path = config.display();
    assert_eq!(
        line("limits.inflight_max"),
        format!("limits.inflight_max 8 file {path} new connections")
    );
    assert_eq!(line("limits.turn_us_max"), "limits.turn_us_max 1000 default restart");
    fs::write(&config, text.replace("= 7", "= 0")).expect("writes");
    let said = host.ctl(&["reload"], 104);
    assert!(said.contains("nothing has changed: `limits.inflight_max` is 0"), "{said}");
}

#[test]
fn a_listener_is_stopped_and_started() {
    let host = Host::new();
    let broker = host.broker(&[]);
    let _client = broker.connected("c");
    let address = broker.address.to_string();
    let said = host.ctl(&["listener", "stop", &address], 0);
    assert_eq!(said, format!("{address} is stopped, with 1 connections\n"));
    assert!(std::net::TcpStream::connect(broker.address).is_err());
    assert!(host.ctl(&["listeners"], 0).contains("stopped"));
    host.ctl(&["listener", "start", &address], 0);
    broker.connected("d").disconnect();
    host.ctl(&["listener", "stop", "127.0.0.1:1"], 104);
    host.ctl(&["listener", "stop"], 1);
}

#[test]
fn bridges_of_a_file_are_made_and_removed() {
    let host = Host::new();
    let store = host.path("store");
    let broker = host.broker(&["--management-store", store.to_str().expect("is text")]);
    let other = host.broker(&["--management-socket", "none"]);
    let file = host.path("bridges.toml");
    let path = file.to_str().expect("is text").to_owned();
    let bridge = |name: &str| {
        format!(
            "[[bridges]]\nname = '{name}'\naddress = 'mqtt://{}'\nusername = 'u'\n\
             password = 'hunter2'\n[[bridges.egress]]\nfilter = '{name}/#'\n",
            other.address
        )
    };
    fs::write(&file, bridge("north") + &bridge("south")).expect("writes");
    assert_eq!(host.ctl(&["bridge", "add", &path, "--name", "north"], 0), "north is made\n");
    wait_until("it is up", || host.ctl(&["bridges"], 0).contains("1/1"));
    let said = host.ctl(&["bridge", "add", &path], 104);
    assert!(said.contains("there is a bridge 'north' already"), "{said}");
    let said = host.ctl(&["bridge", "add", &path, "--replace"], 0);
    assert_eq!(said, "north is made\nsouth is made\n");
    assert!(host.ctl(&["bridge", "test", "north"], 0).starts_with("north is accepted by mqtt://"));
    let said = host.ctl(&["bridge", "test", "--file", &path], 0);
    assert!(said.contains("south is accepted by") && said.lines().count() == 2, "{said}");
    let mut client = broker.connected("c");
    client.publish("north/1", b"", QoS::AtLeastOnce, false);
    let everything = host.ctl(&["--json", "bridges"], 0) + &host.ctl(&["config"], 0);
    assert!(!everything.contains("hunter2"), "{everything}");
    assert_eq!(mode(&store.join("bridges.json")), 0o600);
    wait_until("it is removed", || {
        host.ctl(&["bridge", "remove", "north", "--discard"], 0) == "north is removed\n"
    });
    assert!(host.ctl(&["bridge", "remove", "north"], 104).contains("there is no bridge 'north'"));
    assert!(host.ctl(&["bridge", "test", "north"], 104).contains("there is no bridge 'north'"));
    host.ctl(&["bridge", "test"], 1);
    drop(other);
    let said = host.ctl(&["bridge", "test", "south"], 99);
    assert!(said.contains("south is not accepted by mqtt://"), "{said}");
    fs::write(&file, "[[bridges]]\nname = 'x'\npassword = 'hunter2\n").expect("writes");
    let said = host.ctl(&["bridge", "add", &path], 104);
    assert!(said.contains("bridges.toml: ") && !said.contains("hunter2"), "{said}");
    fs::write(&file, "[[bridges]]\nname = 'x'\ncolour = 7\n").expect("writes");
    let said = host.ctl(&["bridge", "add", &path], 104);
    assert!(said.contains("bridge: unknown field `colour`"), "{said}");
    assert!(host.ctl(&["bridge", "add", &path, "--name", "y"], 104).contains("no bridge 'y'"));
}

#[test]
fn what_takes_most_and_what_is_counted_are_told() {
    let host = Host::new();
    let broker = host.broker(&[]);
    let mut client = broker.connected("loud");
    let said = host.ctl(&["topic-metrics", "add", "a/#"], 0);
    assert_eq!(said, "messages of a/# are counted\n");
    client.publish("a/b", b"12345", QoS::AtLeastOnce, true);
    let said = host.ctl(&["topic-metrics", "list"], 0);
    assert!(said.contains("a/#") && said.contains("5 B"), "{said}");
    assert!(host.ctl(&["topic-metrics", "add", "a/#"], 104).contains("counted already"));
    host.ctl(&["topic-metrics", "remove", "a/#"], 0);
    assert!(host.ctl(&["topic-metrics", "list"], 0).contains("No filter is counted"));
    assert!(host.ctl(&["top", "retained", "-n", "3"], 0).contains("a/b"));
    assert!(host.ctl(&["top", "queues"], 0).contains("No session has a queue."));
    assert!(host.ctl(&["slow"], 0).contains("No client is slow."));
    let said = host.ctl(&["top", "publishers", "--for", "1"], 0);
    assert_eq!(said, "No client has published anything.\n");
    host.ctl(&["top", "publishers", "--for", "31"], 1);
    host.ctl(&["top", "queues", "-n", "0"], 1);
}

#[test]
fn bans_are_made_and_lifted() {
    let host = Host::new();
    let broker = host.broker(&[]);
    let mut client = broker.connected("pest");
    let flags = ["bans", "add", "--client-id", "pest", "--reason", "floods", "--for", "600"];
    assert_eq!(host.ctl(&flags, 0), "client pest is banned\n");
    assert_eq!(client.expect_disconnect(), ReasonCode::ADMINISTRATIVE_ACTION);
    let said = host.ctl(&["bans", "list"], 0);
    assert!(said.contains("client pest  operator") && said.contains("floods"), "{said}");
    assert!(said.contains("end with the broker"), "{said}");
    host.ctl(&["bans", "add"], 1);
    host.ctl(&["bans", "add", "--user", "a", "--address", "192.0.2.7"], 1);
    host.ctl(&["bans", "add", "--address", "here"], 104);
    host.ctl(&["bans", "remove", "--client-id", "pest"], 0);
    host.ctl(&["bans", "remove", "--client-id", "pest"], 104);
    let answer =
        || Client::open(broker.address, Version::V5).connect(&connect("pest", Version::V5)).1;
    wait_until("it may connect", || answer() == ReasonCode::SUCCESS);
}

#[test]
fn events_are_followed() {
    let host = Host::new();
    let broker = host.broker(&[]);
    let mut command = host.command(&["ctl", "events", "-n", "2", "--prefix", "a"]);
    let mut watching = command.spawn().expect("starts");
    let mut log = BufReader::new(watching.stderr.take().expect("is piped")).lines();
    line_with(&mut log, "watching");
    broker.connected("b").disconnect();
    broker.connected("a1").disconnect();
    let output = watching.wait_with_output().expect("ends");
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].contains("connected") && lines[0].contains("client=a1"), "{said}");
    assert!(lines[1].contains("disconnected") && lines[1].contains("DISCONNECT"), "{said}");
    let said = host.ctl(&["events", "--only", "sleep"], 104);
    assert!(said.contains("there is no event 'sleep'"), "{said}");
}

#[test]
fn a_client_is_traced_to_the_terminal_and_to_a_file() {
    let host = Host::new();
    let broker = host.broker(&[]);
    let file = host.path("trace");
    let path = file.to_str().expect("is text");
    let to_file = ["ctl", "trace", "--topic", "a/#", "--payload", "text", "-n", "2", "-o", path];
    let mut tracing: Vec<(Child, Lines<BufReader<ChildStderr>>)> = [
        &["ctl", "trace", "--client-id", "meter", "-n", "5"][..],
        &to_file,
        &["ctl", "--json", "trace", "--client-id", "meter", "--for", "1"],
    ]
    .into_iter()
    .map(|arguments| {
        let mut child = host.command(arguments).spawn().expect("starts");
        let mut log = BufReader::new(child.stderr.take().expect("is piped")).lines();
        line_with(&mut log, "Ctrl-C ends it");
        (child, log)
    })
    .collect();
    let mut meter = broker.connected("meter");
    meter.publish("a/b", b"21 \x1b[1m", QoS::AtMostOnce, false);
    let mut said = |at: usize| {
        let (child, _log) = tracing.remove(at);
        let output = child.wait_with_output().expect("ends");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let words = said(0);
    let lines: Vec<&str> = words.lines().collect();
    assert_eq!(lines.len(), 5, "{words}");
    assert!(lines[0].contains("Z  in     CONNECT      client=meter address=127.0.0.1:"), "{words}");
    assert!(lines[4].contains("a/b  to no receiver: no subscription matches"), "{words}");
    assert_eq!(said(0), "");
    let words = fs::read_to_string(&file).expect("is written");
    assert!(words.contains("\"21 \\u{1b}[1m\"") && words.lines().count() == 2, "{words}");
    assert_eq!(mode(&file), 0o600);
    let words = said(0);
    let entries: Vec<Value> =
        words.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect();
    assert_eq!(entries.first().map(|entry| entry["kind"].clone()), Some("ready".into()));
    assert_eq!(entries.last().map(|entry| entry["kind"].clone()), Some("ended".into()));
    // A file that is there stays as it is.
    let said = host.ctl(&to_file[1..], 104);
    assert!(said.contains("trace cannot be written"), "{said}");
    assert!(host.ctl(&["trace"], 1).contains("--client-id"));
    host.ctl(&["trace", "--client-id", "c", "--payload", "all"], 1);
    assert!(host.ctl(&["trace", "--address", "here"], 104).contains("address: "));
}

#[test]
fn a_drained_broker_ends_or_takes_clients_again() {
    let host = Host::new();
    let broker = host.broker(&["--metrics", "127.0.0.1:0"]);
    assert!(host.ctl(&["drain-status"], 0).contains("off"));
    let said = host.ctl(&["undrain"], 104);
    assert!(said.contains("is not being drained"), "{said}");
    let mut client = broker.connected("c");
    let flags = ["drain", "--wait", "0", "--server-reference", "b.example", "--keep"];
    let said = host.ctl(&flags, 0);
    assert!(said.contains("no client is left; `tacho ctl undrain`"), "{said}");
    assert_eq!(client.expect_disconnect(), ReasonCode::USE_ANOTHER_SERVER);
    assert!(host.ctl(&["status"], 0).contains("drained"));
    assert!(host.ctl(&["drain-status"], 0).contains("b.example"));
    host.ctl(&["drain"], 104);
    assert_eq!(host.ctl(&["undrain"], 0), "clients are taken again\n");
    broker.connected("d").disconnect();
    for wrong in [&["drain", "--rate", "0"][..], &["drain", "--deadline", "x"]] {
        host.ctl(wrong, 1);
    }
    let said = host.ctl(&["drain", "--wait", "9", "--deadline", "3"], 104);
    assert!(said.contains("wait_s: "), "{said}");
    let said = host.ctl(&["drain", "--wait", "0"], 0);
    assert!(said.contains("the broker ends"), "{said}");
    assert!(broker.ended().success());
    host.ctl(&["status"], 112);
}

#[test]
fn what_looks_can_be_repeated_until_ctrl_c() {
    let host = Host::new();
    let _broker = host.broker(&[]);
    let mut watching = host.command(&["ctl", "status", "--watch", "1"]).spawn().expect("starts");
    let mut lines = BufReader::new(watching.stdout.take().expect("is piped")).lines();
    line_with(&mut lines, "health");
    line_with(&mut lines, "health");
    kill_process(Pid::from_child(&watching), Signal::INT).expect("is ours");
    assert_eq!(watching.wait().expect("ends").code(), Some(0));
    for command in [
        &["kick", "c"][..],
        &["reload"],
        &["drain"],
        &["events"],
        &["trace", "--client-id", "c"],
        &["keys", "remove", "a"],
    ] {
        let said = host.ctl(&[&["--watch", "1"], command].concat(), 104);
        assert!(said.contains("--watch is for commands that look"), "{said}");
    }
    host.ctl(&["status", "--watch", "0"], 1);
}

#[test]
fn a_key_opens_the_api_by_http_as_far_as_its_role_goes() {
    let host = Host::new();
    let store = host.path("store");
    let store = store.to_str().expect("is text");
    let flags = ["--management-listen", "127.0.0.1:0", "--management-store", store];
    let mut broker = host.broker(&flags);
    let line = line_with(&mut broker.log, "management API at ");
    let url = line.split("management API at ").nth(1).expect("is told");
    let url = url.trim().trim_end_matches("/api/v1");
    let key = host.ctl(&["keys", "add", "ci", "--role", "viewer"], 0);
    assert!(key.starts_with("tacho_") && key.lines().count() == 1, "{key}");
    let file = host.path("key");
    fs::write(&file, &key).expect("writes");
    let file = file.to_str().expect("is text");
    let by_http = |arguments: &[&str], code| {
        host.ctl(&[&["--url", url, "--key-file", file], arguments].concat(), code)
    };
    assert!(by_http(&["status"], 0).contains("fine"));
    let _client = broker.connected("c");
    assert!(by_http(&["clients"], 0).contains('c'));
    let said = by_http(&["kick", "c"], 104);
    assert!(said.contains("only operators may do this"), "{said}");
    let said = host.ctl(&["--url", url, "status"], 104);
    assert!(said.contains("--url needs --key-file"), "{said}");
    assert!(host.ctl(&["keys", "list"], 0).contains("ci   viewer"));
    host.ctl(&["keys", "remove", "ci"], 0);
    assert!(by_http(&["status"], 104).contains("this needs a key"));
    // Another kind of answer, whose errors are the same.
    assert!(by_http(&["metrics"], 104).contains("this needs a key"));
    host.ctl(&["--url", "127.0.0.1:1", "--key-file", file, "status"], 112);
}

#[test]
fn by_https_the_key_travels_encrypted() {
    let host = Host::new();
    let made = host.path("certificates");
    let made = made.to_str().expect("is text");
    // It leaves a CA and a certificate for this machine.
    drop(host.broker(&["--listen", "tls://0", "--self-signed", made]));
    let config = host.path("broker.toml");
    let configure = |listen: &str, more: &str| {
        let store = host.path("store");
        let text = format!("[management]\nlisten = '{listen}'\nstore = {store:?}\n{more}");
        fs::write(&config, text).expect("writes");
    };
    let flags = ["--config", config.to_str().expect("is text")];
    let files = format!("cert = '{made}/server.pem'\nkey = '{made}/server.key'\n");
    configure("127.0.0.1:0", &files);
    let mut broker = host.broker(&flags);
    let line = line_with(&mut broker.log, "management API at ");
    let url = line.split("management API at ").nth(1).expect("is told");
    let url = url.trim().trim_end_matches("/api/v1");
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let file = host.path("key");
    fs::write(&file, host.ctl(&["keys", "add", "ci", "--role", "viewer"], 0)).expect("writes");
    let key = ["--key-file", file.to_str().expect("is text")];
    let ca = format!("{made}/ca.pem");
    let ask = |url: &str, more: &[&str], code| {
        host.ctl(&[&["status", "--url", url], &key[..], more].concat(), code)
    };
    assert!(ask(url, &["--ca", &ca], 0).contains("fine"));
    let said = ask(url, &[], 112);
    assert!(said.contains("ertificate"), "its CA is not the system's: {said}");
    let plain = url.replace("https", "http");
    ask(&plain, &[], 112);
    let said = ask(&plain, &["--ca", &ca], 104);
    assert!(said.contains("--ca has no use"), "{said}");
    ask(url, &["--ca", "/none.pem"], 104);
    // A peer that says nothing keeps no other one waiting.
    let silent = std::net::TcpStream::connect(&url["https://".len()..]).expect("connects");
    assert!(ask(url, &["--ca", &ca], 0).contains("fine"));
    drop(silent);
    assert!(host.ctl(&["reload"], 0).contains("1 unchanged"));
    drop(broker);
    for (listen, more, words) in [
        ("0.0.0.0:0", "", "keys must not travel unencrypted"),
        ("127.0.0.1:0", &files[..files.find("key").expect("is there")], "belong together"),
        ("127.0.0.1:0", "cert = '/none'\nkey = '/none'\n", "/none"),
    ] {
        configure(listen, more);
        let all = [&["broker", "--listen", "0"], &flags[..]].concat();
        let output = host.command(&all).output().expect("starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(104), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

/// There is nothing to operate: a run has its broker for itself.
#[test]
fn brokers_of_runs_have_no_socket() {
    let host = Host::new();
    let directory = host.path("run");
    let directory = directory.to_str().expect("is text");
    let mut arguments = vec!["run", "symmetric", "--hold", "1s", "--ramp-up", "100ms"];
    for variable in ["publishers=2", "subscribers=2", "target_throughput=10"] {
        arguments.extend(["--var", variable]);
    }
    arguments.extend(["--dir", directory]);
    let output = host.command(&arguments).output().expect("starts");
    assert!(output.status.code().is_some_and(|code| code != 1 && code != 104), "{output:?}");
    assert!(!host.path("tacho").exists());
}
