//! Traces: packets both ways and decisions, without secrets, and bounded.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use serde_json::Value;
use tacho_access::{Scheme, StoredPassword, set_user};
use tacho_codec::{Connect, ConnectProperties, QoS, ReasonCode, Version};
use tacho_testkit::{connect, wait_until};

use super::Managed;

/// A trace that is read line by line.
struct Reader {
    lines: BufReader<UnixStream>,
    /// All that has been read.
    text: String,
}

impl Reader {
    /// From here on nothing is missed.
    fn open(managed: &Managed, query: &str) -> Self {
        let mut stream = managed.stream();
        let request = format!("GET /api/v1/trace?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reader = Self { lines: BufReader::new(stream), text: String::new() };
        assert_eq!(reader.next()["kind"], "ready");
        reader
    }

    fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the trace has ended");
            self.text.push_str(&line);
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).unwrap();
            }
        }
    }

    /// The next entry in short: kind, packet and text.
    fn short(&mut self) -> (String, String, String) {
        let entry = self.next();
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        (text("kind"), text("packet"), text("text"))
    }

    fn expect(&mut self, kind: &str, packet: &str, part: &str) {
        let entry = self.short();
        assert_eq!((&*entry.0, &*entry.1), (kind, packet), "{}", entry.2);
        assert!(entry.2.contains(part), "{}", entry.2);
    }

    /// Entries up to one of this kind.
    fn until(&mut self, kind: &str) -> Value {
        loop {
            let entry = self.next();
            if entry["kind"] == kind {
                return entry;
            }
        }
    }
}

#[test]
fn a_client_is_followed_both_ways_with_decisions() {
    let managed = Managed::start("shards = 2");
    let mut trace = Reader::open(&managed, "client_id=meter");
    let broker = &managed.broker;
    let mut other = broker.connected("other", Version::V5);
    other.subscribe("jobs", QoS::AtLeastOnce);
    let mut meter = broker.client(Version::V5);
    let request = Connect {
        username: Some("ann"),
        password: Some(b"hunter2"),
        properties: ConnectProperties {
            session_expiry_s: Some(60),
            ..ConnectProperties::default()
        },
        ..connect("meter", Version::V5)
    };
    assert_eq!(meter.connect(&request).1, ReasonCode::SUCCESS);
    trace.expect("in", "CONNECT", "username=\"ann\" password=(not shown)");
    trace.expect("auth", "", "accepted without a user");
    trace.expect("out", "CONNACK", "success (0x00)");
    meter.subscribe("state/+", QoS::AtLeastOnce);
    trace.expect("in", "SUBSCRIBE", "filter=\"state/+\" qos=1");
    trace.expect("out", "SUBACK", "(0x01)");
    meter.publish("jobs", b"secret", QoS::AtLeastOnce, false);
    trace.expect("in", "PUBLISH", "qos=1 id=");
    trace.expect("route", "", "to ");
    trace.expect("out", "PUBACK", "success");
    other.receive_and_ack();
    meter.publish("nothing", b"", QoS::AtMostOnce, false);
    trace.expect("in", "PUBLISH", "qos=0 0 bytes");
    trace.expect("route", "", "no subscription matches");
    other.publish("state/1", b"x", QoS::AtLeastOnce, false);
    meter.receive_and_ack();
    trace.expect("out", "PUBLISH", "qos=1 id=1 1 bytes");
    trace.expect("in", "PUBACK", "id=1 success");
    meter.disconnect();
    trace.expect("in", "DISCONNECT", "(0x00)");
    trace.expect("end", "", "DISCONNECT by the client");
    // Its session is still there.
    other.publish("state/2", b"x", QoS::AtLeastOnce, false);
    trace.expect("queue", "", "1 in the queue");
    for secret in ["hunter2", "secret", "other"] {
        assert!(!trace.text.contains(secret), "{}", trace.text);
    }
}

#[test]
fn a_topic_is_followed_from_publisher_to_receivers_with_payloads() {
    let managed = Managed::start("shards = 2");
    let broker = &managed.broker;
    let mut text = Reader::open(&managed, "topic=a/%2B&payload=text&payload_bytes=4");
    let mut hex = Reader::open(&managed, "topic=a/%2B&client_id=receiver&payload=hex");
    let mut receiver = broker.connected("receiver", Version::V5);
    receiver.subscribe("#", QoS::AtMostOnce);
    let mut publisher = broker.connected("publisher", Version::V5);
    publisher.publish("b", b"not this", QoS::AtMostOnce, false);
    publisher.publish("a/b", b"\x1b[2J!", QoS::AtMostOnce, false);
    let entry = text.next();
    assert_eq!((&entry["kind"], &entry["client_id"]), (&"in".into(), &"publisher".into()));
    assert_eq!((&entry["topic"], &entry["payload"]), (&"a/b".into(), &"\\u{1b}[2J".into()));
    assert_eq!(entry["payload_cut"], true);
    assert!(entry["time_us"].as_u64().unwrap() > 1_600_000_000_000_000);
    text.expect("route", "", "to ");
    let entry = text.next();
    assert_eq!((&entry["kind"], &entry["client_id"]), (&"out".into(), &"receiver".into()));
    let entry = hex.next();
    assert_eq!((&entry["kind"], &entry["payload"]), (&"out".into(), &"1b5b324a21".into()));
    // A client that is away misses messages of QoS 0.
    let mut away = broker.durable("away", Version::V5, None);
    away.subscribe("a/#", QoS::AtLeastOnce);
    away.disconnect();
    wait_until("it is away", || managed.get("/clients/away")["connected"] == false);
    publisher.publish("a/c", b"", QoS::AtMostOnce, false);
    let entry = text.until("drop");
    assert_eq!((&entry["client_id"], &entry["topic"]), (&"away".into(), &"a/c".into()));
    assert!(entry["text"].as_str().unwrap().contains("the client is away"), "{entry}");
}

#[test]
fn refusals_are_told_with_their_causes_and_without_passwords() {
    let folder = tempfile::tempdir().unwrap();
    let (users, rules) = (folder.path().join("users"), folder.path().join("rules.toml"));
    let stored = StoredPassword::make(b"right", Scheme::Sha512).unwrap();
    fs::write(&users, set_user("", "ann", &stored)).unwrap();
    fs::write(&rules, "[[rules]]\nallow = 'subscribe'\ntopics = ['open/#']\n").unwrap();
    let managed = Managed::start(&format!(
        "shards = 1\n[access]\npassword_file = {users:?}\nrules_file = {rules:?}\n"
    ));
    let broker = &managed.broker;
    let mut by_user = Reader::open(&managed, "user=ann");
    let mut by_address = Reader::open(&managed, "address=127.0.0.0/8");
    let request =
        Connect { username: Some("ann"), password: Some(b"guess"), ..connect("c", Version::V5) };
    let mut client = broker.client(Version::V5);
    assert_eq!(client.connect(&request).1, ReasonCode::BAD_USER_NAME_OR_PASSWORD);
    for trace in [&mut by_user, &mut by_address] {
        trace.expect("in", "CONNECT", "client_id=\"c\"");
        trace.expect("auth", "", "refused: unknown user or wrong password");
        trace.expect("out", "CONNACK", "(0x86)");
        assert!(!trace.text.contains("guess"), "{}", trace.text);
    }
    let mut client = broker.client(Version::V5);
    let request = Connect { password: Some(b"right"), ..request };
    assert_eq!(client.connect(&request).1, ReasonCode::SUCCESS);
    client.publish("closed", b"", QoS::AtMostOnce, false);
    let entry = by_user.until("auth");
    assert_eq!(
        (&entry["user"], &entry["text"]),
        (&"ann".into(), &"accepted as the user ann".into())
    );
    let entry = by_user.until("auth");
    assert_eq!(entry["topic"], "closed");
    let text = entry["text"].as_str().unwrap();
    assert!(text.contains("may not publish: no rule of the rules file allows it"), "{text}");
}

#[test]
fn traces_are_bounded_in_number_time_and_bytes() {
    let managed = Managed::start("shards = 2");
    let broker = &managed.broker;
    let mut short = Reader::open(&managed, "client_id=c&seconds=1");
    let mut small = Reader::open(&managed, "client_id=c&bytes=300");
    let mut client = broker.connected("c", Version::V5);
    client.subscribe("a", QoS::AtMostOnce);
    assert!(small.until("ended")["text"].as_str().unwrap().contains("as many bytes"));
    assert!(short.until("ended")["text"].as_str().unwrap().contains("its time is over"));
    let traces: Vec<Reader> = (0..8).map(|_| Reader::open(&managed, "client_id=c")).collect();
    let (_, message) = managed.refused("/trace?client_id=c", 503);
    assert!(message.contains("8 traces run already"), "{message}");
    drop(traces);
    // Their ends are noticed with the next entries.
    wait_until("there is a place", || {
        client.publish("a", b"", QoS::AtMostOnce, false);
        let mut stream = managed.stream();
        let request = "GET /api/v1/trace?client_id=c HTTP/1.1\r\nHost: a\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.contains(" 200 ")
    });
    for (query, field) in [
        ("", "client_id"),
        ("client_id=c&seconds=0", "seconds"),
        ("client_id=c&bytes=99999999999", "bytes"),
        ("client_id=c&payload_bytes=70000", "payload_bytes"),
        ("address=here", "address"),
        ("topic=a%23", "topic"),
        ("client_id=c&payload=all", "query"),
    ] {
        assert_eq!(managed.refused(&format!("/trace?{query}"), 400).0, field, "{query}");
    }
}

#[test]
fn only_operators_trace_and_the_audit_log_tells_it() {
    let folder = tempfile::tempdir().unwrap();
    let (store, audit) = (folder.path().join("s"), folder.path().join("audit"));
    let more = format!("listen = '127.0.0.1:0'\nstore = {store:?}");
    let managed =
        Managed::start_with(&format!("shards = 1\n[access]\naudit_file = {audit:?}\n"), &more);
    let body = "{\"name\": \"v\", \"role\": \"viewer\"}";
    let key = managed.ask("POST", "/keys", body).json()["key"].as_str().unwrap().to_owned();
    let refused = managed.ask_by_http("GET", "/trace?client_id=c", &key).error(403);
    assert!(refused.1.contains("only operators"), "{refused:?}");
    let _trace = Reader::open(&managed, "client_id=c&topic=a/%23");
    wait_until("it is in the audit log", || {
        let text = fs::read_to_string(&audit).unwrap_or_default();
        text.contains("\"action\":\"trace\"") && text.contains("\"topic_filter\":\"a/#\"")
    });
}
