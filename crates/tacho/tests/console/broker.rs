//! A broker whose management API is given to the console: its pages ask for it there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tacho_codec::{QoS, ReasonCode};
use tacho_testkit::{BrokerProgram, line_with};

use crate::client::{Console, next_event, until};
use crate::folder;

const VIEWER: &str = "0123456789abcdef";

/// A broker with its socket in a folder, and the socket.
fn broker(place: &Path, more: &[&str]) -> (BrokerProgram, PathBuf) {
    let socket = place.join("m.sock");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(["broker", "--listen", "0", "--sys-interval-s", "0", "--shards", "1"]);
    command.arg("--management-socket").arg(&socket).args(more).stdin(Stdio::null());
    (BrokerProgram::start(&mut command), socket)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("is UTF-8")
}

/// A console for viewers and operators of a broker.
fn console(place: &Path, manage: &[&str]) -> Console {
    let tokens = place.join("tokens");
    fs::write(&tokens, format!("viewer {VIEWER}\n")).expect("writes");
    let runs = place.join("runs");
    fs::create_dir_all(&runs).expect("creates");
    let more = [&["--token-file", text(&tokens)][..], manage].concat();
    Console::start_with(&runs, &more, None)
}

#[test]
fn a_broker_is_looked_into_and_operated_through_the_console() {
    let place = folder();
    let (broker, socket) = broker(place.path(), &[]);
    let console = console(place.path(), &["--manage", text(&socket)]);
    assert_eq!(console.read("/broker")["place"], text(&socket));
    assert_eq!(console.read("/machine")["broker"], text(&socket));
    assert_eq!(console.read("/broker/status")["healthy"], true);
    assert_eq!(console.read("/broker/session")["role"], "administrator");
    let mut client = broker.connected("meter 7/ä");
    client.subscribe("a/+", QoS::AtLeastOnce);
    let clients = console.read("/broker/clients?prefix=meter");
    assert_eq!(clients["clients"][0]["client_id"], "meter 7/ä");
    let path = "/broker/clients/meter%207%2F%C3%A4";
    assert_eq!(console.read(path)["subscriptions"], 1);
    let receivers = console.read("/broker/receivers?topic=a/b");
    assert_eq!(receivers["subscribers"][0]["filter"], "a/+");
    let published = json!({"topic": "a/b", "payload": "hello", "qos": 1});
    assert_eq!(console.post("/broker/publish", &published).json()["payload_bytes"], 5);
    assert_eq!(client.receive_and_ack().payload, b"hello");
    let mut trace = console.events("/broker/trace?topic=a/%2B&payload=text");
    next_event(&mut trace, "ready");
    assert_eq!(console.post("/broker/publish", &published).status, 200);
    assert!(next_event(&mut trace, "\"out\"").contains("hello"));
    assert_eq!(client.receive_and_ack().payload, b"hello");
    drop(trace);

    let mut events = console.events("/broker/events?events=disconnected");
    next_event(&mut events, "ready");
    let kicked = console.send("DELETE", path, &Value::Null);
    assert_eq!((kicked.status, &kicked.json()["was_connected"]), (200, &json!(true)));
    assert_eq!(client.expect_disconnect(), ReasonCode::ADMINISTRATIVE_ACTION);
    assert!(next_event(&mut events, "disconnected").contains("meter 7/ä"));

    // What the broker refuses is said as it says it, and in Chinese.
    let refused = console.get("/broker/clients/none");
    let error = &refused.json()["error"];
    assert_eq!((refused.status, &error["code"]), (404, &json!("manage.no_session")));
    assert_eq!(error["message_zh"], "没有客户端“none”的会话");
    let refused = console.get("/broker/clients?limit=0");
    assert_eq!((refused.status, &refused.json()["error"]["field"]), (400, &json!("limit")));

    drop(broker);
    let gone = console.get("/broker/status");
    assert_eq!((gone.status, &gone.json()["error"]["code"]), (502, &json!("manage.unreachable")));
    assert_eq!(console.get("/queue").status, 200, "all else goes on");
}

#[test]
fn viewers_of_the_console_only_look_and_keys_stay_where_they_are() {
    let place = folder();
    let (broker, socket) = broker(place.path(), &[]);
    let console = console(place.path(), &["--manage", text(&socket)]);
    let as_viewer = |line: &str| {
        let headers = format!("Authorization: Bearer {VIEWER}\nContent-Type: application/json");
        console.raw(line, &headers, b"{\"topic\": \"a\", \"client_id\": \"c\"}").status
    };
    let _client = broker.connected("c");
    assert_eq!(as_viewer("GET /api/v1/broker/clients/c"), 200);
    for line in [
        "GET /api/v1/broker/trace?client_id=c",
        "POST /api/v1/broker/bridges/cloud",
        "POST /api/v1/broker/publish",
        "POST /api/v1/broker/bans",
        "POST /api/v1/broker/reload",
        "POST /api/v1/broker/drain",
        "DELETE /api/v1/broker/drain",
        "POST /api/v1/broker/backup",
        "POST /api/v1/broker/bridges",
        "POST /api/v1/broker/bridge-test",
        "DELETE /api/v1/broker/bridges/cloud",
        "DELETE /api/v1/broker/clients/c",
        "DELETE /api/v1/broker/retained?topic=a",
    ] {
        assert_eq!(as_viewer(line), 403, "{line}");
    }
    assert_eq!(console.get("/broker/keys").status, 403);
    let key = json!({"name": "k", "role": "administrator"});
    assert_eq!(console.post("/broker/keys", &key).status, 403);
    let without = folder();
    let other = Console::start(without.path());
    assert_eq!(other.read("/broker")["place"], Value::Null);
    let refused = other.get("/broker/status");
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (404, &json!("manage.none")));
}

#[test]
fn bridges_are_made_and_tested_and_the_broker_backed_up_and_drained_through_the_console() {
    let place = folder();
    let (remote, _) = broker(place.path(), &[]);
    let own = place.path().join("own");
    fs::create_dir(&own).expect("creates");
    let data = own.join("data");
    let store = own.join("store");
    let flags = ["--data-dir", text(&data), "--management-store", text(&store)];
    let (broker, socket) = broker(&own, &flags);
    let console = console(place.path(), &["--manage", text(&socket)]);

    let address = format!("mqtt://{}", remote.address);
    let bridge = json!({"name": "site", "address": address, "egress": [{"filter": "out/#"}]});
    let trial = console.post("/broker/bridge-test", &bridge).json();
    assert_eq!((&trial["accepted"], &trial["problem"]), (&json!(true), &Value::Null));
    let made = console.post("/broker/bridges", &bridge);
    assert_eq!((made.status, &made.json()["lasting"]), (201, &json!(true)));
    let mut far = remote.connected("far");
    far.subscribe("out/#", QoS::AtLeastOnce);
    until("the bridge is up", || {
        let bridges = console.read("/broker/bridges");
        (bridges["bridges"][0]["state"] == "up").then_some(())
    });
    let message = json!({"topic": "out/1", "payload": "over there", "qos": 1});
    assert_eq!(console.post("/broker/publish", &message).status, 200);
    assert_eq!(far.receive_and_ack().payload, b"over there");
    let tested = console.post("/broker/bridges/site/test", &json!({})).json();
    assert_eq!(tested["accepted"], true);
    let removed = console.send("DELETE", "/broker/bridges/site?discard=true", &Value::Null);
    assert_eq!(removed.status, 204);
    let wrong = json!({"name": "site", "address": address, "nothing": 1});
    let refused = console.post("/broker/bridges", &wrong);
    assert_eq!((refused.status, &refused.json()["error"]["field"]), (400, &json!("bridge")));

    let directory = place.path().join("backup");
    let begun = console.post("/broker/backup", &json!({"directory": directory}));
    assert_eq!((begun.status, &begun.json()["phase"]), (200, &json!("running")));
    let done = until("the backup is done", || {
        let status = console.read("/broker/backup");
        (status["phase"] != "running").then_some(status)
    });
    assert_eq!((&done["phase"], &done["directory"]), (&json!("done"), &json!(directory)));
    assert!(directory.is_dir());
    let refused = console.post("/broker/backup", &json!({"directory": "here"}));
    let error = &refused.json()["error"];
    assert_eq!((refused.status, &error["field"]), (400, &json!("directory")));
    assert_eq!(error["code"], "manage.backup_directory");

    let mut client = broker.connected("c");
    let late = json!({"wait_s": 9, "deadline_s": 9});
    let refused = console.post("/broker/drain", &late);
    let error = &refused.json()["error"];
    assert_eq!((refused.status, &error["code"]), (400, &json!("manage.drain_wait")));
    let drain = json!({"wait_s": 0, "keep": true, "server_reference": "b.example:8883"});
    assert_eq!(console.post("/broker/drain", &drain).status, 200);
    assert_eq!(client.expect_disconnect(), ReasonCode::USE_ANOTHER_SERVER);
    until("it is drained", || (console.read("/broker/drain")["phase"] == "drained").then_some(()));
    let ended = console.send("DELETE", "/broker/drain", &Value::Null);
    assert_eq!((ended.status, &ended.json()["phase"]), (200, &json!("off")));
    broker.connected("again");
}

#[test]
fn one_page_alone_may_open_web_sockets() {
    let place = folder();
    let console = Console::start(place.path());
    for (path, may) in [("/broker/websocket", true), ("/broker", false), ("/broker/trace", false)] {
        let page = console.raw(&format!("GET {path}"), &console.with_token(), b"");
        assert_eq!(page.status, 200, "{path}");
        assert_eq!(
            page.head.contains("connect-src 'self' ws: wss:;"),
            may,
            "{path}: {}",
            page.head
        );
        assert_eq!(page.head.matches("script-src 'self';").count(), 1, "{path}: {}", page.head);
    }
}

/// A key of a viewer, made at the broker.
fn new_key(socket: &Path) -> String {
    let ctl = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["ctl", "--socket", text(socket), "keys", "add", "console"])
        .args(["--role", "viewer"])
        .output()
        .expect("starts");
    let key = String::from_utf8(ctl.stdout).expect("is UTF-8").trim().to_owned();
    assert!(key.starts_with("tacho_"), "{key}");
    key
}

#[test]
fn an_encrypted_management_api_is_asked_once_its_certificate_is_trusted() {
    let place = folder();
    // Each leaves a CA and a certificate for this machine.
    let [made, others] = ["made", "others"].map(|name| {
        let folder = place.path().join(name);
        let flags = ["--listen", "tls://0", "--self-signed", text(&folder)];
        drop(self::broker(place.path(), &flags));
        folder
    });
    let [ca, other_ca] = [&made, &others].map(|folder| folder.join("ca.pem"));
    let (cert, key) = (made.join("server.pem"), made.join("server.key"));
    let config = place.path().join("broker.toml");
    let toml = format!("[management]\ncert = {cert:?}\nkey = {key:?}\n");
    fs::write(&config, toml).expect("writes");
    let store = place.path().join("store");
    let flags = ["--config", text(&config), "--management-listen", "127.0.0.1:0"];
    let flags = [&flags[..], &["--management-store", text(&store)]].concat();
    let (mut broker, socket) = broker(place.path(), &flags);
    let line = line_with(&mut broker.log, "management API at https://");
    let port = line.rsplit(':').next().expect("has a port").split('/').next().expect("is there");
    let file = place.path().join("key");
    fs::write(&file, new_key(&socket)).expect("writes");
    let url = format!("https://localhost:{port}");
    let manage = ["--manage", url.as_str(), "--manage-key-file", text(&file)];
    let trusting = [&manage[..], &["--manage-ca", text(&ca)]].concat();
    let with_ca = console(place.path(), &trusting);
    assert_eq!(with_ca.read("/broker")["place"], url.as_str());
    assert_eq!(with_ca.read("/broker/session")["role"], "viewer");
    drop(with_ca);
    let wrong = [&manage[..], &["--manage-ca", text(&other_ca)]].concat();
    let distrusting = console(place.path(), &wrong);
    let refused = distrusting.get("/broker/session");
    assert_eq!(refused.status, 502);
    assert!(refused.body.contains("certificate"), "{}", refused.body);
}

#[test]
fn a_ca_without_an_encrypted_management_api_is_refused() {
    let place = folder();
    let key = place.path().join("key");
    fs::write(&key, "tacho_00ff").expect("writes");
    for (manage, ca, told) in [
        ("http://127.0.0.1:1", "ca.pem", "--manage-ca has no use"),
        ("https://127.0.0.1:1", "none.pem", "none.pem"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
            .args(["serve", "--listen", "0", "--dir", text(place.path()), "--manage", manage])
            .args(["--manage-key-file", text(&key), "--manage-ca", ca])
            .output()
            .expect("starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(104), "{said}");
        assert!(said.contains(told), "{said}");
    }
}

#[test]
fn a_key_opens_the_way_by_http_and_its_role_is_that_of_all() {
    let place = folder();
    let store = place.path().join("store");
    let flags = ["--management-listen", "127.0.0.1:0", "--management-store", text(&store)];
    let (mut broker, socket) = broker(place.path(), &flags);
    let line = line_with(&mut broker.log, "management API at ");
    let url = line.split("management API at ").nth(1).expect("is told");
    let url = url.trim().trim_end_matches("/api/v1").to_owned();
    let key = new_key(&socket);
    let file = place.path().join("key");
    fs::write(&file, &key).expect("writes");
    let manage = ["--manage", url.as_str(), "--manage-key-file", text(&file)];
    let console = console(place.path(), &manage);
    assert_eq!(console.read("/broker/session")["role"], "viewer");
    for path in ["/broker", "/broker/session", "/broker/config", "/machine"] {
        assert!(!console.get(path).body.contains(&key), "{path}");
    }
    let refused = console.post("/broker/publish", &json!({"topic": "a"}));
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (403, &json!("manage.role")));
    // A key that is no more is no fault of the page.
    Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["ctl", "--socket", text(&socket), "keys", "remove", "console"])
        .output()
        .expect("starts");
    let refused = console.get("/broker/status");
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (502, &json!("manage.key")));
}
