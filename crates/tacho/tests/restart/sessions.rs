//! Sessions and their subscriptions.

use std::time::Duration;

use tacho_codec::{
    Connect, ConnectProperties, Disconnect, Packet, Publish, QoS, ReasonCode, RetainHandling,
    SubscribeOptions, Version,
};

use crate::process::Process;
use tacho_testkit::connect;

// 57
#[test]
fn subscriptions_keep_their_options_and_identifiers() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Process::on(directory.path(), &["--shards", "2"]);
    let (mut client, present) = broker.lasting("client", 600);
    assert!(!present);
    let options = |qos, no_local, retain_as_published| SubscribeOptions {
        qos,
        no_local,
        retain_as_published,
        retain_handling: RetainHandling::Never,
    };
    client.subscribe_with("own/#", options(QoS::AtLeastOnce, true, false), Some(7));
    client.subscribe_with("kept/+", options(QoS::AtMostOnce, false, true), Some(268_435_455));
    client.subscribe_with("kept/a", options(QoS::ExactlyOnce, false, false), Some(1));
    client.subscribe("gone", QoS::AtLeastOnce);
    assert_eq!(client.unsubscribe("gone"), Some(ReasonCode::SUCCESS));
    broker.kill();
    let broker = Process::on(directory.path(), &["--shards", "3"]);
    let (mut client, present) = broker.lasting("client", 600);
    assert!(present);
    let mut other = broker.connected("other");
    for topic in ["own/a", "gone", "kept/a"] {
        other.publish(topic, b"other", QoS::ExactlyOnce, topic == "kept/a");
        let publish = Publish { topic, payload: b"mine", ..Publish::default() };
        client.send(&Packet::Publish(publish));
    }
    let mut got = Vec::new();
    for _ in 0..3 {
        let message = client.receive_and_ack();
        let mut ids = message.subscription_ids;
        ids.sort_unstable();
        got.push((message.topic, message.payload, message.qos, message.retain, ids));
    }
    got.sort();
    let all = vec![1, 268_435_455];
    let expected = |topic: &str, payload: &[u8], qos, retain, ids: &[u32]| {
        (topic.to_owned(), payload.to_vec(), qos, retain, ids.to_vec())
    };
    assert_eq!(
        got,
        [
            expected("kept/a", b"mine", QoS::AtMostOnce, false, &all),
            expected("kept/a", b"other", QoS::ExactlyOnce, true, &all),
            expected("own/a", b"other", QoS::AtLeastOnce, false, &[7]),
        ]
    );
    client.expect_nothing();
}

#[test]
fn a_clean_start_a_disconnect_and_clean_sessions_leave_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Process::on(directory.path(), &["--shards", "2"]);
    let (mut renewed, _) = broker.lasting("renewed", 600);
    renewed.subscribe("a", QoS::AtLeastOnce);
    renewed.disconnect();
    let mut renewed = broker.client(Version::V5);
    let properties = ConnectProperties { session_expiry_s: Some(600), ..Default::default() };
    renewed.connect(&Connect { properties, ..connect("renewed", Version::V5) });
    renewed.subscribe("b", QoS::AtLeastOnce);
    let (mut ended, _) = broker.lasting("ended", 600);
    ended.subscribe("a", QoS::AtLeastOnce);
    let disconnect = Disconnect {
        session_expiry_s: Some(0),
        ..Disconnect::new(ReasonCode::NORMAL_DISCONNECTION)
    };
    ended.send(&Packet::Disconnect(disconnect));
    ended.expect_closed();
    let mut clean = broker.connected("clean");
    clean.subscribe("a", QoS::AtLeastOnce);
    let mut old = broker.client(Version::V311);
    old.connect(&Connect { clean_start: false, ..connect("old", Version::V311) });
    old.subscribe("a", QoS::AtLeastOnce);
    let mut publisher = broker.connected("publisher");
    publisher.publish("a", b"x", QoS::AtLeastOnce, false);
    publisher.publish("b", b"y", QoS::AtLeastOnce, false);
    broker.stop();
    let broker = Process::on(directory.path(), &[]);
    for client_id in ["ended", "clean"] {
        let (mut client, present) = broker.lasting(client_id, 0);
        assert!(!present, "{client_id}");
        client.expect_nothing();
    }
    let (mut renewed, present) = broker.lasting("renewed", 600);
    assert!(present);
    assert_eq!(renewed.receive_and_ack().payload, b"y");
    renewed.expect_nothing();
    let mut old = broker.client(Version::V311);
    let resumed = Connect { clean_start: false, ..connect("old", Version::V311) };
    assert_eq!(old.connect(&resumed), (true, ReasonCode::SUCCESS));
    assert_eq!(old.receive_and_ack().payload, b"x");
}

// 56, 57
#[test]
fn sessions_end_in_time_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Process::on(directory.path(), &[]);
    let (short, _) = broker.lasting("short", 1);
    let (long, _) = broker.lasting("long", 600);
    short.disconnect();
    long.disconnect();
    // The wall clock goes on while there is no broker.
    broker.stop();
    std::thread::sleep(Duration::from_millis(1_200));
    let broker = Process::on(directory.path(), &[]);
    let (_, present) = broker.lasting("short", 600);
    assert!(!present);
    let (_, present) = broker.lasting("long", 600);
    assert!(present);
}
