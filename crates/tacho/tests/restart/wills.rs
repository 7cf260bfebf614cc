//! Wills of clients that the broker's end took by surprise.

use tacho_codec::{Connect, ConnectProperties, QoS, Version, Will, WillProperties};

use crate::process::Process;
use tacho_testkit::{connect, will};

fn with_will(broker: &Process, client_id: &str, delay_s: Option<u32>, payload: &[u8]) {
    let mut client = broker.client(Version::V5);
    let properties = ConnectProperties { session_expiry_s: Some(600), ..Default::default() };
    let will = Will {
        qos: QoS::AtLeastOnce,
        properties: WillProperties { delay_s, ..Default::default() },
        ..will("wills", payload)
    };
    client.connect(&Connect {
        clean_start: false,
        properties,
        will: Some(will),
        ..connect(client_id, Version::V5)
    });
    // Its connection stays as it is until the broker goes.
    std::mem::forget(client);
}

// 56
#[test]
fn wills_are_published_once_after_their_delay() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Process::on(directory.path(), &["--shards", "2"]);
    let (mut observer, _) = broker.lasting("observer", 600);
    observer.subscribe("wills", QoS::AtLeastOnce);
    observer.disconnect();
    with_will(&broker, "surprised", None, b"at once");
    with_will(&broker, "patient", Some(2), b"later");
    with_will(&broker, "returning", Some(600), b"never");
    broker.kill();
    let broker = Process::on(directory.path(), &["--shards", "3"]);
    let (returning, present) = broker.lasting("returning", 600);
    assert!(present);
    let (mut observer, _) = broker.lasting("observer", 600);
    assert_eq!(observer.receive_and_ack().payload, b"at once");
    assert_eq!(observer.receive_and_ack().payload, b"later");
    observer.ping();
    observer.disconnect();
    returning.disconnect();
    broker.stop();
    let broker = Process::on(directory.path(), &[]);
    let (mut observer, _) = broker.lasting("observer", 600);
    observer.expect_nothing();
}

// 56
#[test]
fn a_delayed_will_waits_over_a_stop() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Process::on(directory.path(), &["--shards", "2"]);
    let (mut observer, _) = broker.lasting("observer", 600);
    observer.subscribe("wills", QoS::AtLeastOnce);
    with_will(&broker, "client", Some(2), b"later");
    broker.stop();
    let broker = Process::on(directory.path(), &[]);
    let (mut observer, _) = broker.lasting("observer", 600);
    assert_eq!(observer.receive_and_ack().payload, b"later");
    observer.expect_nothing();
}
