//! `tacho broker` as its operator meets it: addresses, signals, log.

use std::io::{BufRead as _, BufReader, Lines};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tacho_codec::{Connect, QoS, ReasonCode, Version};
use tacho_testkit::{Client, connect, line_with, listening_address, runtime_folder, wait_until};

/// A broker whose log is read line by line; killed when dropped.
struct Broker {
    child: Child,
    log: Option<Lines<BufReader<ChildStderr>>>,
    address: SocketAddr,
}

impl Broker {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.env("XDG_RUNTIME_DIR", runtime_folder());
        command.args(["broker", "--sys-interval-s", "0", "--shards", "1"]).args(arguments);
        Self::start_command(command)
    }

    fn start_command(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let log = child.stderr.take().map(|stderr| BufReader::new(stderr).lines());
        let address = SocketAddr::from(([0; 4], 0));
        let mut broker = Self { child, log, address };
        let line = broker.line_with("listening on ");
        broker.address = listening_address(&line);
        broker
    }

    /// The next line of the log that has these words.
    fn line_with(&mut self, words: &str) -> String {
        line_with(self.log.as_mut().expect("is read"), words)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("is sent");
    }

    /// SIGTERM; the broker must end in order.
    fn stop(mut self) {
        self.signal(Signal::TERM);
        assert!(self.child.wait().expect("ends").success());
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn names_and_ports_are_addresses() {
    for address in ["localhost:0", "0", "tcp://127.0.0.1:0"] {
        let broker = Broker::start(&["--listen", address]);
        assert!(broker.address.ip().is_loopback(), "{address}");
        let mut client = Client::open(broker.address, Version::V5);
        assert_eq!(client.connect(&connect("a", Version::V5)).1, ReasonCode::SUCCESS);
        broker.stop();
    }
}

/// SIGUSR1 and SIGUSR2 killed the broker; SIGHUP left no trace.
#[test]
fn signals_are_answered_in_the_log() {
    let mut broker = Broker::start(&["--listen", "0"]);
    let mut client = Client::open(broker.address, Version::V5);
    client.connect(&connect("a", Version::V5));
    for signal in [Signal::USR1, Signal::USR2] {
        broker.signal(signal);
        let line = broker.line_with("state: ");
        assert!(line.contains("clients connected: 1, sessions: 1"), "{line}");
    }
    broker.signal(Signal::HUP);
    let line = broker.line_with("SIGHUP: ");
    assert!(line.contains("no listener has a certificate"), "{line}");
    client.ping();
    broker.stop();
}

#[test]
fn sighup_says_what_became_of_the_certificates() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a name");
    let certificates = ["--listen", "0", "--listen", "tls://0", "--self-signed", path];
    let mut broker = Broker::start(&certificates);
    broker.signal(Signal::HUP);
    let line = broker.line_with("SIGHUP: ");
    assert!(line.contains("0 reloaded, 1 unchanged, 0 unusable"), "{line}");
    std::fs::write(folder.path().join("server.pem"), "nothing").expect("is written");
    broker.signal(Signal::HUP);
    let line = broker.line_with("SIGHUP: ");
    assert!(line.contains("0 reloaded, 0 unchanged, 1 unusable"), "{line}");
    broker.stop();
}

#[test]
fn each_connection_has_a_line_at_its_begin_and_its_end() {
    let mut broker = Broker::start(&["--listen", "0", "--verbose"]);
    let mut client = Client::open(broker.address, Version::V311);
    let user = Connect { username: Some("meter\"7"), ..connect("station", Version::V311) };
    client.connect(&user);
    let line = broker.line_with("connected");
    let listener = format!("listener=tcp://{}", broker.address);
    for words in
        ["client=station", "address=127.0.0.1:", r#"user=meter\"7"#, "protocol=3.1.1", &listener]
    {
        assert!(line.contains(words), "no {words} in {line}");
    }
    client.disconnect();
    let line = broker.line_with("disconnected");
    let reason = "reason=\"DISCONNECT by the client: ";
    assert!(line.contains("client=station") && line.contains(reason), "{line}");
    assert!(line.contains("duration_s=0."), "{line}");

    let mut other = Client::open(broker.address, Version::V5);
    other.connect(&connect("lost", Version::V5));
    broker.line_with("client=lost");
    drop(other);
    let line = broker.line_with("disconnected");
    assert!(line.contains("reason=\"closed by the client without DISCONNECT\""), "{line}");

    let mut old = Client::open(broker.address, Version::V5);
    old.connect(&connect("twice", Version::V5));
    let mut new = Client::open(broker.address, Version::V5);
    new.connect(&connect("twice", Version::V5));
    let line = broker.line_with("disconnected");
    let reason = "by the broker: Session taken over (0x8E)";
    assert!(line.to_lowercase().contains(&reason.to_lowercase()), "{line}");
    broker.stop();
}

/// The default log has no line per connection.
#[test]
fn connections_are_not_logged_unless_asked() {
    let mut broker = Broker::start(&["--listen", "0", "--management-socket", "none"]);
    let mut client = Client::open(broker.address, Version::V5);
    client.connect(&connect("a", Version::V5));
    client.disconnect();
    broker.signal(Signal::USR1);
    let lines = broker.log.as_mut().expect("is read");
    let next = lines.next().expect("a line").expect("is text");
    assert!(next.contains("state: "), "{next}");
    broker.stop();
}

/// Writing its log to a closed pipe ended a thread of the broker.
#[test]
fn the_broker_goes_on_when_nothing_reads_its_log() {
    let mut broker = Broker::start(&["--listen", "0", "--verbose"]);
    broker.log = None;
    for client_id in ["a", "b"] {
        let mut client = Client::open(broker.address, Version::V5);
        assert_eq!(client.connect(&connect(client_id, Version::V5)).1, ReasonCode::SUCCESS);
        client.ping();
        client.disconnect();
    }
    broker.signal(Signal::USR1);
    broker.stop();
}

/// Resident memory of a process, in bytes.
#[cfg(target_os = "linux")]
fn resident_bytes(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    let kib = line.split_whitespace().next().and_then(|kib| kib.parse::<usize>().ok());
    kib.expect("a number") * 1024
}

/// Resident memory was twice what had arrived, and two thirds of it stayed when all had left.
#[cfg(target_os = "linux")]
#[test]
fn huge_pages_are_off_and_on_as_configured() {
    for (setting, expected) in [("false", "0"), ("true", "1")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.args(["broker", "--shards", "1", "--listen", "127.0.0.1:0"]);
        command.env("TACHO_BROKER__HUGE_PAGES", setting);
        let broker = Broker::start_command(command);
        let path = format!("/proc/{}/status", broker.child.id());
        let status = std::fs::read_to_string(path).expect("is readable");
        match status.lines().find_map(|line| line.strip_prefix("THP_enabled:")) {
            Some(enabled) => assert_eq!(enabled.trim(), expected),
            None => eprintln!("this kernel does not say whether a process has huge pages"),
        }
        broker.stop();
    }
}

#[test]
fn memory_of_unfinished_packets_is_what_has_arrived_and_is_given_back() {
    const CLIENTS: usize = 100;
    const ARRIVED: usize = 600_000;
    let broker = Broker::start(&["--listen", "0"]);
    let pid = broker.child.id();
    let packet = {
        let (topic, payload) = ("t", vec![7; 1_000_000]);
        let publish = tacho_codec::Publish { topic, payload: &payload, ..Default::default() };
        let mut bytes = Vec::new();
        publish.encode(Version::V311, &mut bytes).expect("is encoded");
        bytes
    };
    let mut honest = Client::open(broker.address, Version::V311);
    honest.connect(&connect("honest", Version::V311));
    let before = resident_bytes(pid);
    let mut clients: Vec<Client> = Vec::new();
    for i in 0..CLIENTS {
        let mut client = Client::open(broker.address, Version::V311);
        client.connect(&connect(&i.to_string(), Version::V311));
        client.send_raw(&packet[..ARRIVED]);
        clients.push(client);
    }
    wait_until("all has arrived", || resident_bytes(pid) > before + CLIENTS * ARRIVED);
    honest.ping();
    let held = resident_bytes(pid) - before;
    assert!(held < CLIENTS * (ARRIVED + 150_000) + (10 << 20), "{held} bytes");
    drop(clients);
    wait_until("it is given back", || resident_bytes(pid) < before + (12 << 20));
    honest.ping();
    broker.stop();
}

/// A log that nothing reads held up event loops: a pipe takes 64 KiB.
#[test]
fn a_reader_of_the_log_that_stalls_holds_up_nothing() {
    let broker = Broker::start(&["--listen", "0", "-vv"]);
    let id = "x".repeat(200);
    for _ in 0..400 {
        let mut client = Client::open(broker.address, Version::V5);
        assert_eq!(client.connect(&connect(&id, Version::V5)).1, ReasonCode::SUCCESS);
        client.disconnect();
    }
    let mut client = Client::open(broker.address, Version::V5);
    client.connect(&connect("a", Version::V5));
    client.ping();
}

#[test]
fn the_log_goes_to_a_file_as_json_with_levels_by_area() {
    let folder = tempfile::tempdir().expect("a folder");
    let (config, log) = (folder.path().join("broker.toml"), folder.path().join("broker.log"));
    let configure = |levels: &str| {
        let text = format!(
            "listen = ['127.0.0.1:0']\nshards = 1\nsys_interval_s = 0\n[log]\nformat = 'json'\n\
             file = {log:?}\n[log.levels]\n{levels}\n"
        );
        std::fs::write(&config, text).expect("writes");
    };
    configure("connections = 'debug'");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.env("XDG_RUNTIME_DIR", runtime_folder());
    command.args(["broker", "--config"]).arg(&config);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("starts");
    let mut broker = Broker { child, log: None, address: SocketAddr::from(([0; 4], 0)) };
    let text = || std::fs::read_to_string(&log).unwrap_or_default();
    wait_until("a start", || text().contains("listening on "));
    broker.address = listening_address(&text());
    let mut first = Client::open(broker.address, Version::V5);
    first.connect(&connect("first", Version::V5));
    wait_until("a line for a connection", || text().contains("\"client\":\"first\""));
    for line in text().lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("an object a line");
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
    }
    // The levels change, and the file was moved away.
    configure("connections = 'warn'");
    std::fs::rename(&log, folder.path().join("moved")).expect("moves");
    broker.signal(Signal::HUP);
    wait_until("a new file", || text().contains("SIGHUP"));
    let mut second = Client::open(broker.address, Version::V5);
    second.connect(&connect("second", Version::V5));
    second.ping();
    broker.signal(Signal::USR1);
    wait_until("the state", || text().contains("clients connected: 2"));
    assert!(!text().contains("second"), "{}", text());
    std::fs::write(&config, "[log]\nlevel = 'loud'\n").expect("writes");
    broker.signal(Signal::HUP);
    wait_until("a reason", || text().contains("nothing has changed"));
    broker.stop();
}

#[test]
fn a_log_file_that_cannot_be_opened_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.env("XDG_RUNTIME_DIR", runtime_folder());
    command.args(["broker", "--listen", "127.0.0.1:0", "--log-file"]).arg(folder.path());
    let output = command.stdin(Stdio::null()).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(104), "{said}");
    assert!(said.contains("cannot open the log file"), "{said}");
}

/// Limits of a file, of a folder that it includes, and of the environment, read again by SIGHUP.
#[test]
fn a_changed_configuration_is_applied_as_far_as_it_can_be_and_a_bad_one_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("broker.toml");
    let more = folder.path().join("conf.d/limits.toml");
    std::fs::create_dir(folder.path().join("conf.d")).expect("made");
    let write = |limits: &str| std::fs::write(&more, limits).expect("writes");
    let main = "include = 'conf.d'\nlisten = ['127.0.0.1:0']\nshards = 2\nsys_interval_s = 0\n";
    std::fs::write(&config, main).expect("writes");
    write("[limits]\nsubscriptions_per_session_max = 1\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(["broker", "--management-socket", "none", "--config"]).arg(&config);
    command.env("TACHO_BROKER__LIMITS__CLIENT_ID_BYTES_MAX", "30");
    command.env("TACHO_BROKER__LOG__LEVEL", "info");
    let mut broker = Broker::start_command(command);
    let mut client = Client::open(broker.address, Version::V5);
    client.connect(&connect("first", Version::V5));
    let granted = ReasonCode::GRANTED_QOS_1;
    assert_eq!(client.subscribe("a", QoS::AtLeastOnce), granted);
    assert_eq!(client.subscribe("b", QoS::AtLeastOnce), ReasonCode::QUOTA_EXCEEDED);
    let long = "x".repeat(31);
    let refused =
        |address| Client::open(address, Version::V5).connect(&connect(&long, Version::V5)).1;
    assert_eq!(refused(broker.address), ReasonCode::CLIENT_IDENTIFIER_NOT_VALID);

    write("[limits]\nsubscriptions_per_session_max = 2\nturn_us_max = 900\n");
    broker.signal(Signal::HUP);
    let line = broker.line_with("SIGHUP: ");
    let applied = "applied: limits.subscriptions_per_session_max 1 -> 2";
    assert!(line.contains(applied), "{line}");
    assert!(line.contains("at the next start: limits.turn_us_max 1000 -> 900"), "{line}");
    assert_eq!(client.subscribe("b", QoS::AtLeastOnce), granted);

    // All or nothing.
    for (wrong, words) in [
        ("[limits]\nsubscriptions_per_session_max = 9\nsessions = 1\n", "line 3"),
        ("[limits]\nsubscriptions_per_session_max = 9\nsessions_max = 0\n", "limits.sessions_max"),
    ] {
        write(wrong);
        broker.signal(Signal::HUP);
        let line = broker.line_with("SIGHUP: ");
        assert!(line.contains("nothing has changed") && line.contains(words), "{line}");
    }
    assert_eq!(client.subscribe("c", QoS::AtLeastOnce), ReasonCode::QUOTA_EXCEEDED);
    broker.stop();
}

#[test]
fn a_variable_that_names_no_key_is_refused_and_a_flag_comes_first() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.env("XDG_RUNTIME_DIR", runtime_folder());
    command.args(["broker", "--listen", "0"]).env("TACHO_BROKER__LIMITS__NONE", "hunter2");
    let output = command.stdin(Stdio::null()).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(104), "{said}");
    assert!(said.contains("TACHO_BROKER__LIMITS__NONE") && !said.contains("hunter2"), "{said}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(["broker", "--check-config", "--inflight-max", "5", "--shards", "1"]);
    command.env("TACHO_BROKER__LIMITS__INFLIGHT_MAX", "7").env("TACHO_BROKER__SHARDS", "2");
    command.env("TACHO_BROKER__LIMITS__RECEIVE_MAXIMUM", "9");
    let output = command.stdin(Stdio::null()).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for line in ["inflight_max = 5\n", "shards = 1\n", "receive_maximum = 9\n"] {
        assert!(said.contains(line), "{line}{said}");
    }
}

#[test]
fn listeners_are_added_changed_and_removed_and_clients_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("broker.toml");
    let free = || {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
        socket.local_addr().expect("has one")
    };
    let (second, third) = (free(), free());
    let write = |listeners: &str| {
        let text = format!("shards = 3\nsys_interval_s = 0\nlisten = ['127.0.0.1:0']\n{listeners}");
        std::fs::write(&config, text).expect("writes");
    };
    write("");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(["broker", "--management-socket", "none", "--config"]).arg(&config);
    let mut broker = Broker::start_command(command);
    let connected = |address, name: &str| {
        let mut client = Client::open(address, Version::V5);
        client.connect(&connect(name, Version::V5));
        client
    };
    let mut first = connected(broker.address, "first");
    let reload = |broker: &mut Broker| {
        broker.signal(Signal::HUP);
        broker.line_with("SIGHUP: ")
    };
    write(&format!("[[listeners]]\naddress = '{second}'\n"));
    let line = reload(&mut broker);
    assert!(line.contains("applied: ") && line.contains(&second.to_string()), "{line}");
    // On whichever shard: each takes connections, and sessions move.
    let mut clients: Vec<Client> =
        (0..12).map(|number| connected(second, &format!("c{number}"))).collect();

    write(&format!("[[listeners]]\naddress = '{second}'\nconnections_max = 1\n"));
    let line = reload(&mut broker);
    assert!(line.contains("connections_max unset -> 1"), "{line}");
    clients.iter_mut().for_each(Client::ping);
    let mut only = connected(second, "only");
    let mut more = Client::open(second, Version::V5);
    // A CONNECT of 5.0 with the identifier `x`.
    more.send_carelessly(b"\x10\x0e\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x01x");
    more.expect_closed();
    only.ping();

    // One that cannot be used changes nothing.
    let taken = std::net::TcpListener::bind(third).expect("binds");
    write(&format!(
        "[[listeners]]\naddress = '{third}'\n[limits]\nsubscriptions_per_session_max = 1\n"
    ));
    let line = reload(&mut broker);
    assert!(line.contains("nothing has changed: cannot listen on"), "{line}");
    connected(broker.address, "there").disconnect();
    clients.iter_mut().for_each(Client::ping);
    drop(taken);
    let line = reload(&mut broker);
    assert!(line.contains("limits.subscriptions_per_session_max 1000 -> 1"), "{line}");
    assert!(std::net::TcpStream::connect(second).is_err(), "the listener is closed");
    connected(third, "third").disconnect();
    clients.iter_mut().for_each(Client::ping);
    first.ping();
    // What needs more than a socket waits.
    let users = folder.path().join("users");
    std::fs::write(&users, "").expect("writes");
    write(&format!("[[listeners]]\naddress = '{second}'\npassword_file = {users:?}\n"));
    let line = reload(&mut broker);
    assert!(line.contains("at the next start: ") && line.contains("password_file"), "{line}");
    connected(third, "fourth").disconnect();
    broker.stop();
}
