//! `$SYS` topics.

use std::collections::BTreeMap;
use std::path::Path;

use tacho_codec::{Packet, Publish, QoS, ReasonCode, Version};

use tacho_testkit::{Client, Received, TestBroker, connect, wait_until, will};

/// How many there are; memory is known on Linux only.
const TOPICS: usize = if cfg!(target_os = "linux") { 61 } else { 59 };

/// What a new subscriber to all of them is sent at once: payloads by topic, without the prefix.
fn figures(broker: &TestBroker, client: &mut Client) -> BTreeMap<String, String> {
    wait_until("the first ones are kept", || broker.counter("retained") == TOPICS as u64);
    client.subscribe("$SYS/#", QoS::ExactlyOnce);
    let mut figures = BTreeMap::new();
    while figures.len() < TOPICS {
        let Received { topic, payload, qos, retain, .. } = client.receive();
        assert!(retain, "{topic} comes as a retained message");
        assert_eq!(qos, QoS::AtMostOnce, "{topic}");
        let name = topic.strip_prefix("$SYS/broker/").unwrap_or_else(|| panic!("{topic}"));
        figures.insert(name.to_owned(), String::from_utf8(payload).unwrap());
    }
    figures
}

// 43
#[test]
fn a_subscriber_gets_all_figures_at_once() {
    for shards in [1, 3] {
        // Far longer than the test takes: what comes is retained.
        let broker = TestBroker::configured(&format!("shards = {shards}\nsys_interval_s = 3600"));
        let mut client = broker.connected("watcher", Version::V5);
        let figures = figures(&broker, &mut client);
        client.expect_nothing();
        assert_eq!(figures["version"], format!("tacho version {}", env!("CARGO_PKG_VERSION")));
        assert_eq!(figures["uptime"], "0 seconds");
        assert_eq!(figures["clients/connected"], "0", "none when it was published");
        assert_eq!(figures["load/messages/received/1min"], "0.00");
        for (name, value) in &figures {
            if name != "version" && name != "uptime" {
                assert!(value.parse::<f64>().is_ok_and(|value| value >= 0.0), "{name}: {value}");
            }
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
        let text = std::fs::read_to_string(path).unwrap();
        for name in figures.keys() {
            let name = ["/1min", "/5min", "/15min"]
                .iter()
                .find_map(|span| name.strip_suffix(span))
                .map_or_else(|| name.clone(), |load| format!("{load}/1min"));
            assert!(text.contains(&format!("`{name}`")), "{name} is not in docs/operations.md");
        }
        // Filters that begin with a wildcard do not match them [MQTT-4.7.2-1].
        for filter in ["#", "+/broker/version"] {
            let mut other = broker.connected("other", Version::V5);
            other.subscribe(filter, QoS::AtMostOnce);
            other.expect_nothing();
        }
    }
}

#[test]
fn figures_follow_what_happens() {
    let broker = TestBroker::configured("shards = 2\nsys_interval_s = 1");
    let mut watcher = broker.connected("watcher", Version::V5);
    watcher.subscribe("$SYS/#", QoS::AtMostOnce);
    let mut publisher = broker.connected("publisher", Version::V311);
    publisher.publish("a", b"retained", QoS::AtLeastOnce, true);
    let mut last = BTreeMap::new();
    wait_until("the figures are up to date", || {
        let message = watcher.receive();
        last.insert(message.topic, String::from_utf8(message.payload).unwrap());
        let value = |name: &str| last.get(&format!("$SYS/broker/{name}")).map(String::as_str);
        let number = |name: &str| value(name).and_then(|text| text.parse().ok()).unwrap_or(0.0);
        value("clients/connected") == Some("2")
            && value("clients/maximum") == Some("2")
            && number("subscriptions/count") == 1.0
            && number("publish/messages/received") == 1.0
            && number("publish/messages/sent") > 10.0
            && number("retained messages/count") > 40.0
            && number("messages/received") >= 4.0
            && number("bytes/sent") > 100.0
            && value("uptime").is_some_and(|text| {
                text.strip_suffix(" seconds").unwrap().parse::<u64>().unwrap() > 0
            })
    });
}

#[test]
fn clients_cannot_publish_there() {
    let broker = TestBroker::configured("shards = 2\nsys_interval_s = 3600");
    let mut watcher = broker.connected("watcher", Version::V5);
    let before = figures(&broker, &mut watcher);
    let mut publisher = broker.connected("publisher", Version::V5);
    publisher.publish("$SYS/broker/uptime", b"forged", QoS::AtMostOnce, true);
    let packet_id = Some(publisher.id());
    publisher.send(&Packet::Publish(Publish {
        topic: "$SYS/broker/uptime",
        payload: b"forged",
        qos: QoS::AtLeastOnce,
        retain: true,
        packet_id,
        ..Publish::default()
    }));
    publisher.expect(|packet| match packet {
        Packet::PubAck(ack) => assert_eq!(ack.reason, ReasonCode::NOT_AUTHORIZED),
        other => panic!("{other:?}"),
    });
    // 3.1.1 cannot be told why.
    let mut old = broker.connected("old", Version::V311);
    old.publish("$SYS/broker/uptime", b"forged", QoS::ExactlyOnce, true);
    assert_eq!(broker.counter("refused_sys_publishes_total"), 3);
    // A will there is refused with its CONNECT.
    let mut mortal = broker.client(Version::V5);
    let mut request = connect("mortal", Version::V5);
    request.will = Some(will("$SYS/broker/uptime", b"forged"));
    assert_eq!(mortal.connect(&request).1, ReasonCode::NOT_AUTHORIZED);
    watcher.expect_nothing();
    assert_eq!(figures(&broker, &mut broker.connected("second", Version::V5)), before);
}

#[test]
fn an_interval_of_zero_publishes_nothing() {
    let broker = TestBroker::configured("shards = 2\nsys_interval_s = 0");
    let mut client = broker.connected("watcher", Version::V5);
    client.subscribe("$SYS/#", QoS::AtMostOnce);
    client.expect_nothing();
    assert_eq!(broker.counter("retained"), 0);
}
