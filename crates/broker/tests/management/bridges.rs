//! Bridges that operators make and remove while the broker runs.

use std::path::Path;

use serde_json::Value;
use tacho_codec::{QoS, Version};
use tacho_testkit::{TestBroker, wait_until};

use super::{Managed, column};

fn managed(more: &str, store: &Path) -> Managed {
    Managed::start_with(&format!("shards = 2\n{more}"), &format!("store = {store:?}"))
}

fn body(name: &str, there: &TestBroker, more: &str) -> String {
    format!(
        "{{\"name\": \"{name}\", \"address\": \"mqtt://{}\", \"connections\": 3{more}, \
         \"egress\": [{{\"filter\": \"out/#\", \"topic\": \"from/${{topic}}\"}}]}}",
        there.address
    )
}

fn is_up(managed: &Managed, name: &str) -> bool {
    let answer = managed.get("/bridges");
    let rows = answer["bridges"].as_array().unwrap();
    rows.iter().any(|row| row["name"] == name && row["state"] == "up")
}

/// A field of a bridge.
fn field(managed: &Managed, name: &str, key: &str) -> Value {
    let answer = managed.get("/bridges");
    let rows = answer["bridges"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap()[key].clone()
}

#[test]
fn a_bridge_is_made_used_stored_and_removed() {
    for has_journal in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (store, data) = (folder.path().join("store"), folder.path().join("data"));
        let more = if has_journal { format!("data_dir = {data:?}\n") } else { String::new() };
        let there = TestBroker::start(1);
        let mut subscriber = there.connected("s", Version::V5);
        subscriber.subscribe("from/#", QoS::AtLeastOnce);
        let mut here = managed(&more, &store);
        let mut publisher = here.broker.connected("p", Version::V5);
        // A topic whose route is remembered.
        publisher.publish("out/1", b"before", QoS::AtLeastOnce, false);
        let made = here.ask("POST", "/bridges", &body("b", &there, "")).json();
        assert_eq!((&made["name"], &made["lasting"]), (&"b".into(), &true.into()));
        wait_until("it is up", || is_up(&here, "b"));
        for number in 0..20_u8 {
            publisher.publish(&format!("out/{number}"), &[number], QoS::AtLeastOnce, false);
        }
        let mut got: Vec<u8> = (0..20).map(|_| subscriber.receive_and_ack().payload[0]).collect();
        got.sort_unstable();
        assert_eq!(got, (0..20).collect::<Vec<u8>>());
        assert_eq!(
            (field(&here, "b", "source"), field(&here, "b", "mode")),
            ("api".into(), "running".into())
        );
        assert_eq!(here.get("/receivers?topic=out/1")["bridges"][0], "b");
        // It is there after a restart.
        here.broker.stop();
        drop(here);
        let here = managed(&more, &store);
        wait_until("it is up again", || is_up(&here, "b"));
        let mut publisher = here.broker.connected("p", Version::V5);
        publisher.publish("out/1", b"again", QoS::AtLeastOnce, false);
        assert_eq!(subscriber.receive_and_ack().payload, b"again");
        wait_until("it is acknowledged", || field(&here, "b", "inflight") == 0);
        assert_eq!(here.ask("DELETE", "/bridges/b", "").status, 204);
        publisher.publish("out/1", b"not this", QoS::AtLeastOnce, false);
        subscriber.expect_nothing();
        assert!(here.get("/bridges")["bridges"].as_array().unwrap().is_empty());
        // One of the same name begins anew.
        here.ask("POST", "/bridges", &body("b", &there, "")).json();
        wait_until("it is up", || is_up(&here, "b"));
        publisher.publish("out/1", b"new", QoS::AtLeastOnce, false);
        assert_eq!(subscriber.receive_and_ack().payload, b"new");
    }
}

#[test]
fn what_waits_is_not_dropped_unasked_and_bridges_of_the_file_stay() {
    let folder = tempfile::tempdir().unwrap();
    let there = TestBroker::start(1);
    let file = format!(
        "[[bridges]]\nname = 'fixed'\naddress = 'mqtt://{}'\n[[bridges.egress]]\nfilter = 'x'\n",
        there.address
    );
    let here = managed(&file, &folder.path().join("store"));
    let error = here.ask("DELETE", "/bridges/fixed", "").error(409).1;
    assert!(error.contains("is in the configuration"), "{error}");
    here.ask("POST", "/bridges", &body("b", &there, "")).json();
    let error = here.ask("POST", "/bridges", &body("b", &there, "")).error(409).1;
    assert!(error.contains("there is a bridge 'b' already"), "{error}");
    wait_until("it is up", || is_up(&here, "b"));
    here.ask("POST", "/bridges/b", "{\"mode\": \"paused\"}").json();
    let mut publisher = here.broker.connected("p", Version::V5);
    publisher.publish("out/1", b"waits", QoS::AtLeastOnce, false);
    wait_until("it waits", || field(&here, "b", "buffered_messages") == 1);
    for (method, target, text) in [
        ("DELETE", "/bridges/b", String::new()),
        ("POST", "/bridges?replace=true", body("b", &there, "")),
    ] {
        let error = here.ask(method, target, &text).error(409).1;
        assert!(error.contains("1 messages wait for bridge 'b'"), "{error}");
    }
    let replaced = body("b", &there, ", \"client_id\": \"other\"");
    here.ask("POST", "/bridges?replace=true&discard=true", &replaced).json();
    wait_until("the new one is up", || is_up(&here, "b"));
    assert_eq!(field(&here, "b", "buffered_messages"), 0);
    assert_eq!(column(&here.get("/bridges"), "bridges", "name"), ["b", "fixed"]);
    let clash = body("c", &there, ", \"client_id\": \"other\"");
    assert!(here.ask("POST", "/bridges", &clash).error(409).1.contains("`other-1`"));
    for (wrong, words) in [
        ("{\"name\": \"d\"}", "missing field `address`"),
        ("{\"name\": \"d\", \"address\": \"mqtt://a\"}", "it has no rules"),
        ("{\"name\": \"d\", \"address\": \"mqtt://a\", \"password\": 7}", "invalid type"),
    ] {
        let (field, message) = here.ask("POST", "/bridges", wrong).error(400);
        assert!(field == "bridge" && message.contains(words), "{message}");
    }
    here.ask("DELETE", "/bridges/none", "").error(404);
}

#[test]
fn a_bridge_is_tested_with_what_the_remote_broker_says_and_nothing_else_happens() {
    let folder = tempfile::tempdir().unwrap();
    let there = TestBroker::start(1);
    let mut subscriber = there.connected("s", Version::V5);
    subscriber.subscribe("from/#", QoS::AtLeastOnce);
    let here = managed("", &folder.path().join("store"));
    let made = here.ask("POST", "/bridges", &body("b", &there, "")).json();
    assert_eq!(made["name"], "b");
    wait_until("it is up", || is_up(&here, "b"));
    let sessions = there.counter("sessions");
    let trial = here.ask("POST", "/bridges/b/test", "").json();
    assert_eq!((&trial["accepted"], &trial["reason_code"]), (&true.into(), &0.into()));
    assert_eq!(trial["address"], there.address.to_string());
    assert!(trial["problem"].is_null() && trial["certificate_verified"].is_null());
    assert!(is_up(&here, "b"), "the running one is not disturbed");
    wait_until("no session is left", || there.counter("sessions") == sessions);
    // One that there is not.
    let trial = here.ask("POST", "/bridge-test", &body("later", &there, "")).json();
    assert_eq!((&trial["name"], &trial["accepted"]), (&"later".into(), &true.into()));
    assert_eq!(column(&here.get("/bridges"), "bridges", "name"), ["b"]);
    subscriber.expect_nothing();
}

#[test]
fn a_test_says_why_a_bridge_is_not_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let here = managed("", &folder.path().join("store"));
    let users = folder.path().join("users");
    std::fs::write(&users, "").unwrap();
    let there = TestBroker::configured(&format!("[access]\npassword_file = {users:?}\n"));
    let more = ", \"username\": \"u\", \"password\": \"hunter2\"";
    let trial = here.ask("POST", "/bridge-test", &body("b", &there, more)).json();
    assert_eq!((&trial["accepted"], &trial["reason_code"]), (&false.into(), &0x86.into()));
    assert!(trial["problem"].as_str().unwrap().starts_with("CONNECT is refused: "), "{trial}");
    assert!(!trial.to_string().contains("hunter2"));
    // One that takes connections and says nothing, and one that speaks something else.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let of = |address: std::net::SocketAddr, more: &str| {
        let body = format!(
            "{{\"name\": \"x\", \"address\": \"mqtt://{address}\"{more}, \
             \"egress\": [{{\"filter\": \"a\"}}]}}"
        );
        here.ask("POST", "/bridge-test", &body).json()["problem"].as_str().unwrap().to_owned()
    };
    let problem = of(silent.local_addr().unwrap(), ", \"connect_timeout_s\": 1");
    assert!(problem.ends_with("no answer came in time"), "{problem}");
    let closed = silent.local_addr().unwrap();
    drop(silent);
    let problem = of(closed, "");
    assert!(problem.starts_with("cannot connect to 127.0.0.1:"), "{problem}");
    let noise = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = noise.local_addr().unwrap();
    let speaks = std::thread::spawn(move || {
        use std::io::Write as _;
        let (mut stream, _) = noise.accept().unwrap();
        stream.write_all(&[0xff; 64]).unwrap();
        // Until it hangs up.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    assert!(of(address, "").contains("it does not speak MQTT"));
    speaks.join().unwrap();
    let (field, message) = here.ask("POST", "/bridge-test", "{\"name\": \"x\"}").error(400);
    assert!(field == "bridge" && message.contains("address"), "{field} {message}");
    assert!(here.ask("POST", "/bridges/none/test", "").error(404).1.contains("no bridge 'none'"));
}
