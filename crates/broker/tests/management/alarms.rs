//! Alarms begin, are told everywhere, and end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use serde_json::Value;
use tacho_codec::{QoS, Version};
use tacho_testkit::net::certificates::Authority;
use tacho_testkit::{TestBroker, wait_until};

use super::Managed;

const QUICK: &str = "[alarms]\ncheck_s = 1\nclear_s = 0\nbridge_down_s = 1\n";

/// The alarms of a kind in one of the lists.
fn of_kind(managed: &Managed, list: &str, kind: &str) -> Vec<Value> {
    let answer = managed.get("/alarms");
    let rows = answer[list].as_array().unwrap().iter();
    rows.filter(|row| row["alarm"] == kind).cloned().collect()
}

/// The text of an event of this kind in a stream.
fn event(lines: &mut impl Iterator<Item = std::io::Result<String>>, kind: &str) -> Value {
    lines
        .by_ref()
        .map(Result::unwrap)
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
        .find(|event| event["event"] == kind)
        .unwrap()
}

#[test]
fn a_bridge_that_is_down_is_an_alarm_until_it_is_up() {
    let place = TcpListener::bind("127.0.0.1:0").unwrap();
    let remote = place.local_addr().unwrap();
    drop(place);
    let managed = Managed::start(&format!(
        "shards = 1\nsys_interval_s = 1\n[[bridges]]\nname = 'north'\naddress = 'mqtt://{remote}'\n\
         [[bridges.egress]]\nfilter = 'a/#'\n{QUICK}"
    ));
    let mut stream = managed.stream();
    let request = "GET /api/v1/events?events=alarm_raised,alarm_ended HTTP/1.1\r\nHost: a\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut events = BufReader::new(&stream).lines();
    wait_until("it is an alarm", || !of_kind(&managed, "active", "bridge").is_empty());
    let row = of_kind(&managed, "active", "bridge").remove(0);
    assert_eq!(row["subject"], "north");
    assert!(row["text"].as_str().unwrap().contains("0 of 1 connections are up: "), "{row}");
    let metrics = managed.ask("GET", "/metrics", "").body;
    assert!(metrics.contains("tacho_alarms{alarm=\"bridge\"} 1"), "{metrics}");
    assert!(metrics.contains("tacho_alarms{alarm=\"disk\"} 0"), "{metrics}");
    let mut client = managed.broker.connected("watcher", Version::V5);
    client.subscribe("$SYS/broker/alarms/bridge", QoS::AtMostOnce);
    wait_until("it is a topic", || client.receive().payload == b"1");
    let _remote =
        TestBroker::configured(&format!("shards = 1\n[[listeners]]\naddress = '{remote}'\n"));
    wait_until("it has ended", || !of_kind(&managed, "past", "bridge").is_empty());
    assert!(of_kind(&managed, "active", "bridge").is_empty());
    let row = of_kind(&managed, "past", "bridge").remove(0);
    assert!(row["ended_ms"].as_u64() >= row["since_ms"].as_u64(), "{row}");
    let raised = event(&mut events, "alarm_raised");
    assert_eq!(raised["alarm"], "bridge");
    assert!(raised["reason"].as_str().unwrap().starts_with("north: "), "{raised}");
    assert_eq!(event(&mut events, "alarm_ended")["alarm"], "bridge");
}

#[test]
fn a_certificate_that_ends_soon_is_an_alarm_until_it_is_renewed() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let own = authority.issue_for_hours("server", -1..50);
    let managed = Managed::start(&format!(
        "shards = 1\n[tls]\ncert = {:?}\nkey = {:?}\n[[listeners]]\naddress = '127.0.0.1:0'\n\
         transport = 'tls'\n{QUICK}",
        own.cert, own.key
    ));
    wait_until("it is an alarm", || !of_kind(&managed, "active", "certificate").is_empty());
    let row = of_kind(&managed, "active", "certificate").remove(0);
    assert_eq!(row["text"], "the certificate expires in 2 days");
    assert_eq!(row["subject"], own.cert.display().to_string().as_str());
    authority.issue_for_hours("server", -1..24 * 300);
    managed.broker.reload_certificates();
    wait_until("it has ended", || !of_kind(&managed, "past", "certificate").is_empty());
    assert!(of_kind(&managed, "active", "certificate").is_empty());
}

#[test]
fn a_certificate_of_a_bridge_that_ends_soon_is_an_alarm_until_the_bridge_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let own = authority.issue_for_hours("link", -1..20);
    let managed = Managed::start(&format!("shards = 1\n{QUICK}"));
    let bridge = format!(
        "{{\"name\": \"north\", \"address\": \"mqtts://127.0.0.1:1\", \
         \"tls\": {{\"cert\": {:?}, \"key\": {:?}, \"insecure\": true}}, \
         \"egress\": [{{\"filter\": \"a\"}}]}}",
        own.cert, own.key
    );
    managed.ask("POST", "/bridges", &bridge).json();
    wait_until("it is an alarm", || !of_kind(&managed, "active", "certificate").is_empty());
    let row = of_kind(&managed, "active", "certificate").remove(0);
    assert_eq!(row["text"], "the certificate expires within a day");
    let subject = format!("bridge north: {}", own.cert.display());
    assert_eq!(row["subject"], subject.as_str());
    assert_eq!(managed.ask("DELETE", "/bridges/north", "").status, 204);
    wait_until("it has ended", || of_kind(&managed, "active", "certificate").is_empty());
}

#[test]
fn a_broker_that_sheds_load_raises_an_alarm_unless_that_is_turned_off() {
    let shedding = "shards = 1\n[overload]\nwindow_ms = 10\nlag_slow_accepts_ms = 0\n";
    let managed = Managed::start(&format!("{shedding}{QUICK}"));
    let quiet = Managed::start(&format!("{shedding}{QUICK}overload_level = 0\n"));
    let _client = managed.broker.connected("c", Version::V5);
    let _other = quiet.broker.connected("c", Version::V5);
    wait_until("it is an alarm", || !of_kind(&managed, "active", "overload").is_empty());
    let row = of_kind(&managed, "active", "overload").remove(0);
    assert!(row["text"].as_str().unwrap().starts_with("shard 0 sheds load, level "), "{row}");
    let without = Managed::start("shards = 1\n[alarms]\ncheck_s = 0\n");
    for other in [&quiet, &without] {
        assert!(of_kind(other, "active", "overload").is_empty());
    }
}
