//! Drains: no client is taken, those that are here are sent away, and all of it can be undone.

use std::net::TcpStream;

use serde_json::{Value, json};
use tacho_codec::{Connect, Packet, QoS, ReasonCode, Version, Will};
use tacho_testkit::{Client, PATIENCE, connect, wait_until, will};

use super::{Managed, exchange};

const REFERENCE: &str = "b.example:8883 c.example";

fn drain(managed: &Managed, request: &Value) -> Value {
    managed.ask("POST", "/drain", &request.to_string()).json()
}

/// The status and the body of an answer of the endpoints for probes.
fn probe(managed: &Managed, path: &str) -> (u16, String) {
    let stream = TcpStream::connect(managed.broker.metrics_address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let answer = exchange(stream, &format!("GET {path} HTTP/1.1\r\n"), "");
    (answer.status, answer.body)
}

fn is_drained(managed: &Managed) -> bool {
    managed.get("/drain")["phase"] == "drained"
}

/// The reason and the server reference of the DISCONNECT that must come, then the close.
fn sent_away(client: &mut Client) -> (ReasonCode, Option<String>) {
    let told = client.expect(|packet| match packet {
        Packet::Disconnect(d) => (d.reason, d.server_reference.map(str::to_owned)),
        other => panic!("expected DISCONNECT, got {other:?}"),
    });
    client.expect_closed();
    told
}

// [MQTT-3.1.2-8], [MQTT-3.14.4-1], [MQTT-3.14.4-2]
#[test]
fn clients_are_sent_to_another_server_with_their_wills_published_and_sessions_kept() {
    let managed = Managed::start("shards = 3\nmetrics = '127.0.0.1:0'");
    let broker = &managed.broker;
    let mut clients: Vec<Client> =
        (0..20).map(|i| broker.connected(&format!("c{i}"), Version::V5)).collect();
    let mut old = broker.client(Version::V311);
    let retained = |topic, payload| Will { retain: true, ..will(topic, payload) };
    let with_will = |id, version, topic| Connect {
        will: Some(retained(topic, b"gone")),
        ..connect(id, version)
    };
    old.connect(&with_will("old", Version::V311, "will/old"));
    let mut new = broker.client(Version::V5);
    new.connect(&with_will("new", Version::V5, "will/new"));
    let mut durable = broker.durable("durable", Version::V5, None);
    durable.subscribe("a", QoS::AtLeastOnce);
    // A delayed will is due later, as when a connection breaks.
    let mut later = retained("will/later", b"gone");
    later.properties.delay_s = Some(3_600);
    let mut patient = broker.client(Version::V5);
    let request = Connect { will: Some(later), clean_start: false, ..connect("p", Version::V5) };
    let mut properties = request.properties.clone();
    properties.session_expiry_s = Some(7_200);
    patient.connect(&Connect { properties, ..request });
    assert_eq!(probe(&managed, "/healthz").0, 200);

    let request = json!({"wait_s": 0, "keep": true, "server_reference": REFERENCE});
    assert_eq!(drain(&managed, &request)["ends"], false);
    assert!(TcpStream::connect(broker.address).is_err(), "the listener is closed");
    let (status, why) = probe(&managed, "/healthz");
    assert!(status == 503 && why.contains("drained"), "{status} {why}");
    assert_eq!(probe(&managed, "/livez").0, 200, "it works all the same");
    for client in clients.iter_mut().chain([&mut new, &mut durable, &mut patient]) {
        let told = (ReasonCode::USE_ANOTHER_SERVER, Some(REFERENCE.to_owned()));
        assert_eq!(sent_away(client), told);
    }
    old.expect_closed();
    wait_until("it is drained", || is_drained(&managed));
    let status = managed.get("/drain");
    assert_eq!((&status["clients_left"], &status["disconnected"]), (&0.into(), &24.into()));
    assert_eq!(managed.get("/status")["drain"], "drained");
    let metrics = managed.ask("GET", "/metrics", "").body;
    assert!(metrics.contains("\ntacho_drain_phase 3\n"));
    for topic in ["will/old", "will/new"] {
        let message = managed.get(&format!("/retained/message?topic={topic}"));
        assert_eq!(message["payload"], "gone");
    }
    managed.refused("/retained/message?topic=will/later", 404);
    let last = managed.get("/clients/durable")["last_connection"]["reason"].clone();
    assert!(last.as_str().unwrap().contains("drained"), "{last}");

    assert_eq!(managed.ask("DELETE", "/drain", "").json()["phase"], "off");
    assert_eq!(probe(&managed, "/healthz").0, 200);
    let mut again = broker.client(Version::V5);
    let request = Connect { clean_start: false, ..connect("durable", Version::V5) };
    assert_eq!(again.connect(&request), (true, ReasonCode::SUCCESS), "the session is there");
}

#[test]
fn clients_that_connect_during_a_drain_are_refused() {
    let managed = Managed::start("shards = 2");
    let address = managed.broker.address;
    let open = |version| Client::open(address, version);
    let (mut new, mut old, mut small) = (open(Version::V5), open(Version::V311), open(Version::V5));
    let accepted = || managed.broker.counter("accepted_total") == 3;
    wait_until("they are accepted", accepted);
    drain(&managed, &json!({"wait_s": 3_000, "deadline_s": 3_600, "server_reference": REFERENCE}));
    let refusal = new.connect_with(&connect("new", Version::V5), |connack| {
        (connack.reason, connack.properties.server_reference.map(str::to_owned))
    });
    assert_eq!(refusal, (ReasonCode::USE_ANOTHER_SERVER, Some(REFERENCE.to_owned())));
    new.expect_closed();
    assert_eq!(old.connect(&connect("old", Version::V311)).1, ReasonCode::SERVER_UNAVAILABLE);
    // [MQTT-3.1.2-24]: a reference that the client cannot take is left out.
    let mut request = connect("small", Version::V5);
    request.properties.packet_size_max = Some(10);
    let refusal =
        small.connect_with(&request, |c| (c.reason, c.properties.server_reference.is_some()));
    assert_eq!(refusal, (ReasonCode::USE_ANOTHER_SERVER, false));
    let status = managed.get("/drain");
    assert_eq!((&status["phase"], &status["disconnected"]), (&"waiting".into(), &0.into()));
}

#[test]
fn a_drain_goes_at_its_rate_and_can_be_ended_in_its_middle() {
    let managed = Managed::start("shards = 2");
    let broker = &managed.broker;
    let mut clients: Vec<Client> =
        (0..50).map(|i| broker.connected(&format!("c{i}"), Version::V5)).collect();
    drain(&managed, &json!({"wait_s": 0, "rate_per_s": 1, "deadline_s": 86_400}));
    managed.ask("POST", "/drain", "{}").error(409);
    wait_until("the first is gone", || managed.get("/drain")["disconnected"] != 0);
    let status = managed.get("/drain");
    assert_eq!((&status["phase"], &status["ends"]), (&"disconnecting".into(), &true.into()));
    assert!(status["clients_left"].as_u64().unwrap() > 0, "{status}");
    managed.ask("DELETE", "/drain", "").json();
    managed.ask("DELETE", "/drain", "").error(409);
    let gone = broker.counter("disconnects_out_total");
    let closed = |client: &mut Client| {
        client.send_carelessly(&[0xc0, 0]);
        let answer = client.frame().unwrap();
        match answer[0] >> 4 {
            14 => true,
            13 => false,
            other => panic!("packet {other}"),
        }
    };
    let sent_away = clients.iter_mut().map(closed).filter(|&is_closed| is_closed).count();
    assert_eq!(sent_away as u64, gone, "the others are served");
    broker.connected("later", Version::V5);
}

#[test]
fn without_another_server_the_shutdown_is_told_and_the_deadline_raises_the_rate() {
    let managed = Managed::start("shards = 2");
    let broker = &managed.broker;
    let mut clients: Vec<Client> =
        (0..100).map(|i| broker.connected(&format!("c{i}"), Version::V5)).collect();
    // At this rate alone it would take more than a minute and a half.
    drain(&managed, &json!({"wait_s": 0, "rate_per_s": 1, "deadline_s": 1}));
    for client in &mut clients {
        assert_eq!(sent_away(client), (ReasonCode::SERVER_SHUTTING_DOWN, None));
    }
    wait_until("the broker has ended", || {
        std::os::unix::net::UnixStream::connect(managed.socket()).is_err()
            || managed.ask("GET", "/status", "").body.contains("has ended")
    });
}

#[test]
fn drains_that_make_no_sense_are_refused_and_those_that_do_are_audited() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    let mut managed = Managed::start(&format!("shards = 1\n[access]\naudit_file = {audit:?}\n"));
    for (request, field) in [
        (json!({"rate_per_s": 0}), "rate_per_s"),
        (json!({"rate_per_s": 100_001}), "rate_per_s"),
        (json!({"deadline_s": 0}), "deadline_s"),
        (json!({"deadline_s": 100_000}), "deadline_s"),
        (json!({"deadline_s": 10, "wait_s": 10}), "wait_s"),
        (json!({"server_reference": " "}), "server_reference"),
        (json!({"server_reference": "a\nb"}), "server_reference"),
        (json!({"server_reference": "x".repeat(1_025)}), "server_reference"),
        (json!({"speed": 1}), "speed"),
    ] {
        let answer = managed.ask("POST", "/drain", &request.to_string());
        assert_eq!(answer.error(400).0, field, "{request}");
    }
    managed.broker.connected("c", Version::V5);
    drain(&managed, &json!({"keep": true, "server_reference": "b"}));
    managed.ask("DELETE", "/drain", "").json();
    managed.broker.stop();
    let text = std::fs::read_to_string(&audit).unwrap();
    assert!(text.contains("\"action\":\"drain\"") && text.contains("server reference b"), "{text}");
    assert!(text.contains("\"action\":\"undrain\""), "{text}");
}
