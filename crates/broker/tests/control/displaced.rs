//! The data directory is moved, replaced or unlocked under a running broker.

use std::fs;
use std::path::Path;

use tacho_broker::{Broker, RawConfig};
use tacho_codec::{QoS, ReasonCode, Version};
use tacho_testkit::{TestBroker, wait_until};

use crate::metrics::scrape;

/// A broker with this data directory, and nothing that it needs not.
fn text(directory: &Path) -> String {
    format!("data_dir = '{}'\nshards = 2", directory.display())
}

#[test]
fn a_second_broker_is_refused_although_the_lock_file_was_removed() {
    let directory = tempfile::tempdir().expect("a folder");
    let broker = TestBroker::with_metrics(&text(directory.path()));
    fs::remove_file(directory.path().join("lock")).expect("removed");
    let mut raw: RawConfig = toml::from_str(&text(directory.path())).expect("a configuration");
    raw.listen = Some(vec!["127.0.0.1:0".parse().unwrap()]);
    let Err(error) = Broker::start(raw.resolve().unwrap()) else { panic!("a second broker runs") };
    assert!(error.to_string().contains("is in use by another broker"), "{error}");
    // The first one goes on, and puts the file back.
    let mut client = broker.durable("client", Version::V5, None);
    client.subscribe("a", QoS::AtLeastOnce);
    wait_until("the lock file is there again", || directory.path().join("lock").exists());
    let mut publisher = broker.connected("publisher", Version::V5);
    assert_eq!(publisher.try_publish("a", b"x", QoS::AtLeastOnce), ReasonCode::SUCCESS);
    client.receive_and_ack();
    assert_eq!(scrape(&broker)["tacho_journal_condition"], 0.0);
}

#[test]
fn a_replaced_data_directory_stops_durable_promises_and_nothing_else() {
    let outer = tempfile::tempdir().expect("a folder");
    let (path, away) = (outer.path().join("data"), outer.path().join("away"));
    let broker = TestBroker::with_metrics(&text(&path));
    let mut durable = broker.durable("durable", Version::V5, None);
    durable.subscribe("kept", QoS::AtLeastOnce);
    durable.disconnect();
    let mut passing = broker.connected("passing", Version::V5);
    passing.subscribe("passing", QoS::AtLeastOnce);
    let mut publisher = broker.connected("publisher", Version::V5);
    let mut publish = |topic| publisher.try_publish(topic, b"x", QoS::AtLeastOnce);
    assert_eq!(publish("kept"), ReasonCode::SUCCESS);
    fs::rename(&path, &away).expect("moved");
    fs::create_dir(&path).expect("made");
    let condition = || scrape(&broker)["tacho_journal_condition"];
    wait_until("it is noticed", || condition() == 4.0);
    assert_eq!(publish("kept"), ReasonCode::QUOTA_EXCEEDED);
    assert_eq!(publish("passing"), ReasonCode::SUCCESS);
    assert_eq!(passing.receive_and_ack().payload, b"x");
    assert_eq!(fs::read_dir(&path).expect("read").count(), 0, "it is not touched");
    fs::remove_dir(&path).expect("removed");
    fs::rename(&away, &path).expect("moved back");
    wait_until("it is back", || condition() == 0.0);
    assert_eq!(publish("kept"), ReasonCode::SUCCESS);
    let mut back = broker.durable("durable", Version::V5, None);
    back.receive_and_ack();
    back.receive_and_ack();
}
