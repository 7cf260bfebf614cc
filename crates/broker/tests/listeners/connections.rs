//! How many connections a listener and an address have.

use std::net::TcpStream;

use tacho_broker::{RawConfig, self_signed};
use tacho_codec::{ReasonCode, Version};
use tacho_testkit::{Client, TestBroker, connect, wait_until};
use tempfile::TempDir;

use super::{broker_with, bytes_of, client_on, connack, entry, from, open, tested};

/// A client that connects, and whether it may.
fn comes(stream: TcpStream, id: &str) -> Option<Client> {
    let mut client = client_on(stream);
    client.send_carelessly(&bytes_of(&connect(id, Version::V5)));
    let frame = client.frame()?;
    assert_eq!((frame[0], frame[3]), (0x20, 0), "a CONNACK that accepts");
    Some(client)
}

/// How often connections were refused for the listener, and for their address.
fn refused(broker: &TestBroker) -> (u64, u64) {
    let counter = |name| broker.counter(name);
    (counter("refused_listener_limits_total"), counter("refused_address_limits_total"))
}

#[test]
fn a_listener_has_so_many_connections_on_all_shards_together() {
    let broker = broker_with(3, "", "connections_max = 4");
    let mut clients: Vec<Client> = (0..4)
        .map(|number| comes(open(tested(&broker)), &format!("c{number}")).expect("has room"))
        .collect();
    assert!(comes(open(tested(&broker)), "more").is_none());
    assert_eq!(refused(&broker), (1, 0));
    // Other listeners have their own.
    let mut other = Client::open(broker.address, Version::V5);
    assert_eq!(other.connect(&connect("other", Version::V5)).1, ReasonCode::SUCCESS);
    clients.remove(1).disconnect();
    wait_until("room", || comes(open(tested(&broker)), "again").is_some());
}

#[test]
fn an_address_has_so_many_connections_and_others_are_not_concerned() {
    let broker = broker_with(2, "", "connections_per_address_max = 2");
    let first = comes(from(2, tested(&broker)), "a").unwrap();
    // A connection counts before its client is heard, too.
    let silent = from(2, tested(&broker));
    wait_until("it is accepted", || broker.counter("accepted_total") == 2);
    assert!(comes(from(2, tested(&broker)), "b").is_none());
    assert!(comes(from(3, tested(&broker)), "c").is_some());
    assert_eq!(refused(&broker), (0, 1));
    first.disconnect();
    wait_until("room", || comes(from(2, tested(&broker)), "b").is_some());
    drop(silent);
}

#[test]
fn new_connections_are_limited_per_second() {
    let broker = broker_with(1, "", "connections_per_s_max = 1");
    assert!(comes(open(tested(&broker)), "a").is_some());
    wait_until("a refusal", || {
        drop(comes(open(tested(&broker)), "b"));
        refused(&broker).0 > 0
    });
    wait_until("the next second", || comes(open(tested(&broker)), "c").is_some());

    let broker = broker_with(1, "", "connections_per_address_per_s_max = 1");
    assert!(comes(from(2, tested(&broker)), "a").is_some());
    wait_until("a refusal", || {
        drop(comes(from(2, tested(&broker)), "b"));
        refused(&broker).1 > 0
    });
    assert!(comes(from(3, tested(&broker)), "c").is_some());
    wait_until("the next second", || comes(from(2, tested(&broker)), "d").is_some());
    assert_eq!(refused(&broker).0, 0);
}

// Refused connections once counted for the listener, too: one address kept all others out.
#[test]
fn an_address_that_has_too_many_connections_leaves_others_their_share() {
    let keys = "connections_per_address_max = 1\nconnections_per_s_max = 3";
    let broker = broker_with(1, "", keys);
    let _first = comes(from(2, tested(&broker)), "a").unwrap();
    for _ in 0..5 {
        assert!(comes(from(2, tested(&broker)), "b").is_none());
    }
    assert!(comes(from(3, tested(&broker)), "c").is_some());
    assert_eq!(refused(&broker), (0, 5));
}

#[test]
fn an_excess_is_refused_before_its_tls_handshake() {
    let folder = TempDir::new().unwrap();
    let files = self_signed(folder.path(), []).unwrap();
    let keys = format!(
        "transport = 'tls'\ncert = {:?}\nkey = {:?}\nconnections_per_address_max = 1\n",
        files.cert, files.key
    );
    let broker = broker_with(1, "", &keys);
    let first = open(tested(&broker));
    wait_until("it is accepted", || broker.counter("accepted_total") == 1);
    client_on(open(tested(&broker))).expect_closed();
    assert_eq!((refused(&broker), broker.counter("failed_handshakes_total")), ((0, 1), 0));
    drop(first);
}

#[test]
fn behind_a_proxy_the_address_of_the_client_counts() {
    let keys = "proxy_protocol = true\nconnections_per_address_max = 1";
    let broker = broker_with(2, "", keys);
    let via = |address: &str, id: &str| {
        let mut client = client_on(open(tested(&broker)));
        let header = format!("PROXY TCP6 {address} ::1 40000 1883\r\n").into_bytes();
        client.send_carelessly(&[header, bytes_of(&connect(id, Version::V5))].concat());
        client
    };
    let mut first = via("2001:db8::1", "a");
    assert_eq!(connack(&mut first), ReasonCode::SUCCESS);
    via("2001:db8::2", "b").expect_closed();
    let mut other = via("2001:db8:0:1::2", "c");
    assert_eq!(connack(&mut other), ReasonCode::SUCCESS);
    assert_eq!(refused(&broker), (0, 1));
}

#[test]
fn limits_of_a_listener_are_checked_and_described() {
    let resolve = |text: &str| {
        let raw: RawConfig = toml::from_str(text).unwrap();
        raw.resolve().map_err(|error| error.to_string())
    };
    for key in [
        "connections_max",
        "connections_per_s_max",
        "connections_per_address_max",
        "connections_per_address_per_s_max",
    ] {
        let refused = resolve(&entry(&format!("{key} = 0"))).unwrap_err();
        assert!(refused.contains(key) && refused.contains("from 1"), "{refused}");
        let config = resolve(&entry(&format!("{key} = 7"))).unwrap();
        assert_eq!(resolve(&config.describe()).unwrap().listeners, config.listeners);
        assert!(config.describe().contains(&format!("{key} = 7")));
    }
}
