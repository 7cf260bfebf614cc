//! From here to another broker.

use std::collections::HashMap;

use tacho_broker::bridge::State;
use tacho_broker::self_signed;
use tacho_codec::{ConnAckProperties, QoS, ReasonCode, Version};

use crate::other::Other;
use crate::{OUT, bridge, status, wait_empty, wait_up};
use tacho_testkit::{ALL_QOS, TestBroker, wait_until};

#[test]
fn messages_of_every_qos_arrive_under_their_new_topic() {
    for (shards, connections, version) in [(1, 1, "5"), (3, 4, "3.1.1")] {
        let there = TestBroker::start(shards);
        let keys = format!("connections = {connections}\nversion = '{version}'\n");
        let toml = bridge(there.address, &format!("{keys}{OUT}"));
        let here = TestBroker::configured(&format!("shards = {shards}\n{toml}"));
        wait_up(&here);
        let mut subscriber = there.connected("s", Version::V5);
        subscriber.subscribe("#", QoS::ExactlyOnce);
        let mut publisher = here.connected("p", Version::V5);
        for qos in ALL_QOS {
            publisher.publish("out/a", &[qos as u8], qos, false);
            publisher.publish("elsewhere", b"stays", qos, false);
            let got = subscriber.receive_and_ack();
            assert_eq!((&*got.topic, &*got.payload), ("from/out/a", &[qos as u8][..]));
            assert_eq!((got.qos, got.retain), (qos, false));
        }
        subscriber.expect_nothing();
        wait_empty(&here);
        let figures = status(&here).figures;
        assert_eq!((figures.sent, figures.acknowledged, figures.dropped()), (3, 2, 0));
    }
}

#[test]
fn rules_change_payload_qos_and_retain() {
    let there = TestBroker::start(1);
    let rules = "[[bridges.egress]]\nfilter = 'a'\ntopic = 'x/${qos}'\n\
                 payload = '{\"from\":\"${topic}\",\"p\":\"${payload}\"}'\nqos = 1\nretain = true\n\
                 [[bridges.egress]]\nfilter = 'b/+'\n";
    let here = TestBroker::configured(&bridge(there.address, rules));
    wait_up(&here);
    let mut subscriber = there.connected("s", Version::V5);
    subscriber.subscribe("#", QoS::ExactlyOnce);
    let mut publisher = here.connected("p", Version::V5);
    publisher.publish("a", b"1", QoS::AtMostOnce, false);
    let got = subscriber.receive_and_ack();
    assert_eq!((&*got.topic, got.qos), ("x/0", QoS::AtLeastOnce));
    assert_eq!(got.payload, br#"{"from":"a","p":"1"}"#);
    publisher.publish("b/c", &vec![7; 100_000], QoS::AtLeastOnce, true);
    let got = subscriber.receive_and_ack();
    assert_eq!((&*got.topic, got.payload.len()), ("b/c", 100_000));
    wait_empty(&here);
    // Both are retained there: one as the rule says, the other as it was published.
    let mut late = there.connected("late", Version::V5);
    late.subscribe("#", QoS::ExactlyOnce);
    let mut retained = [late.receive_and_ack(), late.receive_and_ack()];
    retained.sort_by(|a, b| a.topic.cmp(&b.topic));
    assert!(retained.iter().all(|message| message.retain));
    assert_eq!(retained.map(|message| message.topic), ["b/c", "x/0"]);
}

#[test]
fn sixty_four_connections_keep_the_order_of_every_topic() {
    const TOPICS: usize = 40;
    const EACH: usize = 25;
    let there = TestBroker::start(2);
    let keys = format!("connections = 64\ninflight = 4\n{OUT}");
    let toml = bridge(there.address, &keys);
    let here = TestBroker::configured(&format!("shards = 2\n{toml}"));
    wait_up(&here);
    let mut subscriber = there.connected("s", Version::V5);
    subscriber.subscribe("from/#", QoS::AtLeastOnce);
    let mut publisher = here.connected("p", Version::V5);
    for number in 0..EACH {
        for topic in 0..TOPICS {
            let qos = if topic % 2 == 0 { QoS::AtLeastOnce } else { QoS::ExactlyOnce };
            publisher.publish(&format!("out/{topic}"), &[number as u8], qos, false);
        }
    }
    let mut next: HashMap<String, u8> = HashMap::new();
    for _ in 0..TOPICS * EACH {
        let got = subscriber.receive_and_ack();
        let expected = next.entry(got.topic.clone()).or_default();
        assert_eq!(got.payload, [*expected], "{}", got.topic);
        *expected += 1;
    }
    wait_empty(&here);
    let status = status(&here);
    assert_eq!((status.connected, status.figures.sent), (64, (TOPICS * EACH) as u64));
    let busy = status.links.iter().filter(|link| link.figures.sent > 0).count();
    assert!(busy > 10, "{busy} connections carried something");
}

#[test]
fn remote_limits_hold_and_refusals_do_not_block_later_messages() {
    let other = Other::new();
    let here = TestBroker::configured(&bridge(other.address, OUT));
    let mut link = other.accepted_with(
        false,
        ConnAckProperties {
            receive_maximum: Some(2),
            packet_size_max: Some(100),
            retain_available: Some(false),
            ..ConnAckProperties::default()
        },
    );
    wait_up(&here);
    let mut publisher = here.connected("p", Version::V5);
    publisher.publish("out/1", b"1", QoS::AtLeastOnce, true);
    publisher.publish("out/large", &[b'l'; 200], QoS::AtLeastOnce, false);
    publisher.publish("out/2", b"2", QoS::ExactlyOnce, false);
    publisher.publish("out/3", b"3", QoS::AtLeastOnce, false);
    publisher.publish("out/4", b"4", QoS::ExactlyOnce, false);
    let first = link.publish();
    assert_eq!((&*first.payload, first.retain), ("1", false));
    let second = link.publish();
    assert_eq!((&*second.payload, second.qos), ("2", QoS::ExactlyOnce));
    link.expect_nothing();
    // Refused, it makes room as an accepted one does.
    link.puback(first.packet_id, ReasonCode::NOT_AUTHORIZED);
    let third = link.publish();
    assert_eq!(third.payload, "3");
    link.expect_nothing();
    link.pubrec(second.packet_id, ReasonCode::QUOTA_EXCEEDED);
    let fourth = link.publish();
    assert_eq!(fourth.payload, "4");
    link.puback(third.packet_id, ReasonCode::SUCCESS);
    link.pubrec(fourth.packet_id, ReasonCode::SUCCESS);
    let released = link.pubrel();
    link.pubcomp(released);
    wait_empty(&here);
    let figures = status(&here).figures;
    assert_eq!((figures.dropped_refused, figures.dropped_too_large), (2, 1));
    assert_eq!((figures.sent, figures.acknowledged), (4, 2));
}

#[test]
fn a_broker_without_qos_2_gets_qos_1() {
    let other = Other::new();
    let here = TestBroker::configured(&bridge(other.address, OUT));
    let mut publisher = here.connected("p", Version::V5);
    // Before the limits of the remote broker are known, and after.
    publisher.publish("out/1", b"1", QoS::ExactlyOnce, false);
    let limits = || ConnAckProperties {
        maximum_qos: Some(QoS::AtLeastOnce),
        ..ConnAckProperties::default()
    };
    let mut link = other.accepted_with(false, limits());
    wait_up(&here);
    publisher.publish("out/2", b"2", QoS::ExactlyOnce, false);
    for expected in ["1", "2"] {
        let came = link.publish();
        assert_eq!((&*came.payload, came.qos), (expected, QoS::AtLeastOnce));
        link.puback(came.packet_id, ReasonCode::SUCCESS);
    }
    wait_empty(&here);
}

#[test]
fn expired_and_overflowing_messages_are_dropped_and_counted() {
    // The remote broker does not answer.
    let other = Other::new();
    let keys = format!("buffer_bytes_max = 65536\nbuffer_ttl_s = 1\n{OUT}");
    let here = TestBroker::configured(&bridge(other.address, &keys));
    let (silent, _) = other.accept();
    let mut publisher = here.connected("p", Version::V5);
    for _ in 0..80 {
        publisher.publish("out/a", &[0; 1_000], QoS::AtLeastOnce, false);
    }
    let figures = status(&here).figures;
    assert!(figures.buffered_bytes <= 65_536, "{figures:?}");
    assert_eq!(figures.buffered_messages + figures.dropped_full + figures.dropped_expired, 80);
    assert!(figures.dropped_full > 0, "{figures:?}");
    let waiting = figures.buffered_messages;
    // Past their expiry interval. Nothing tells of it: they are dropped when they are next in turn.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    drop(silent);
    let mut link = other.accepted(false);
    wait_until("all have expired", || status(&here).figures.buffered_messages == 0);
    assert!(status(&here).figures.dropped_expired >= waiting);
    // And it goes on.
    publisher.publish("out/b", b"fresh", QoS::AtLeastOnce, false);
    assert_eq!(link.publish().payload, "fresh");
}

#[test]
fn a_broker_that_refuses_is_tried_again_and_its_reason_told() {
    let other = Other::new();
    let here = TestBroker::configured(&bridge(other.address, OUT));
    let (mut link, asked) = other.accept();
    assert_eq!(&*asked.client_id, "b");
    link.refuse(ReasonCode::NOT_AUTHORIZED);
    wait_until("the refusal is told", || {
        let problem = status(&here).links.remove(0).problem;
        problem.is_some_and(|problem| problem.contains("0x87"))
    });
    assert_eq!(status(&here).state, State::Down);
    let _link = other.accepted(false);
    wait_up(&here);
    assert_eq!(status(&here).links.remove(0).problem, None);
}

#[test]
fn no_client_can_be_a_bridge() {
    let broker = TestBroker::start(1);
    for version in [Version::V311, Version::V5] {
        let mut client = broker.client(version);
        let connect = tacho_testkit::connect("$bridge/b/0", version);
        let (_, reason) = client.connect(&connect);
        assert_eq!(reason, ReasonCode::CLIENT_IDENTIFIER_NOT_VALID);
        client.expect_closed();
    }
}

#[test]
fn a_tls_bridge_trusts_only_the_configured_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let files = self_signed(folder.path(), []).unwrap();
    let there = TestBroker::configured(&format!(
        "[[listeners]]\ntransport = 'tls'\naddress = '127.0.0.1:0'\n[tls]\ncert = '{}'\nkey = '{}'\n",
        files.cert.display(),
        files.key.display()
    ));
    let toml = |tls: &str| {
        let secure = bridge(there.addresses()[1], &format!("{tls}\n{OUT}"));
        secure.replace("mqtt://", "mqtts://")
    };
    let distrustful = folder.path().join("other");
    let other_ca = self_signed(&distrustful, []).unwrap().ca;
    let tls = |ca: &std::path::Path| format!("[bridges.tls]\nca = '{}'\n", ca.display());
    let here = TestBroker::configured(&toml(&tls(&files.ca)));
    wait_up(&here);
    let mut subscriber = there.connected("s", Version::V5);
    subscriber.subscribe("#", QoS::ExactlyOnce);
    here.connected("p", Version::V5).publish("out/a", &[7; 50_000], QoS::ExactlyOnce, false);
    assert_eq!(subscriber.receive_and_ack().payload.len(), 50_000);
    drop(here);
    let here = TestBroker::configured(&toml(&tls(&other_ca)));
    wait_until("the reason is told", || {
        let problem = status(&here).links.remove(0).problem;
        problem.is_some_and(|problem| problem.contains("not trusted"))
    });
}
