//! Clients that connect and leave again and again.

use std::fs;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use tacho_codec::{ReasonCode, Version};
use tacho_testkit::{Client, TestBroker, connect, wait_until};
use tempfile::TempDir;

use super::{broker_with, bytes_of, client_on, connack, from, open, tested};

/// A client from an address of this machine, and the answer to its CONNECT.
fn comes(broker: &TestBroker, host: u8, id: &str, version: Version) -> (Client, ReasonCode) {
    let mut client = Client::over(from(host, tested(broker)), version);
    client.send_raw(&bytes_of(&connect(id, version)));
    let reason = connack(&mut client);
    (client, reason)
}

fn answer(broker: &TestBroker, host: u8, id: &str) -> ReasonCode {
    comes(broker, host, id, Version::V5).1
}

#[test]
fn an_address_that_connects_and_leaves_is_banned_whatever_its_identifiers() {
    let folder = TempDir::new().unwrap();
    let audit = folder.path().join("audit");
    let section =
        format!("[access]\nflapping_address_max = 6\nflapping_ban_s = 3\naudit_file = {audit:?}\n");
    let broker = broker_with(3, &section, "");
    let mut stays = comes(&broker, 2, "stays", Version::V5).0;
    for number in 0..6 {
        let (client, reason) = comes(&broker, 2, &format!("random{number}"), Version::V5);
        assert_eq!(reason, ReasonCode::SUCCESS);
        match number % 3 {
            0 => client.disconnect(),
            1 => drop(client),
            // With a reset the system forgets the address.
            _ => set_socket_linger(&client.stream, Some(Duration::ZERO)).unwrap(),
        }
    }
    wait_until("the ban", || answer(&broker, 2, "other") == ReasonCode::BANNED);
    let old = comes(&broker, 2, "old", Version::V311).1;
    assert_eq!(old, ReasonCode::NOT_AUTHORIZED);
    assert_eq!(answer(&broker, 3, "random1"), ReasonCode::SUCCESS);
    // Who is connected stays.
    stays.ping();
    wait_until("a line", || {
        let text = fs::read_to_string(&audit).unwrap();
        text.lines().any(|line| {
            line.contains("address_banned")
                && line.contains("127.0.0.2:")
                && line.contains("6 connections that ended, banned for 3 s")
        }) && text.contains("connects and leaves too often")
    });
    wait_until("the end of the ban", || answer(&broker, 2, "again") == ReasonCode::SUCCESS);
}

#[test]
fn a_client_identifier_is_banned_from_every_address_and_others_are_not() {
    let section = "[access]\nflapping_client_id_max = 4\n";
    let broker = broker_with(2, section, "");
    for host in 2..6 {
        let (client, reason) = comes(&broker, host, "flaps", Version::V311);
        assert_eq!(reason, ReasonCode::SUCCESS);
        drop(client);
    }
    wait_until("the ban", || answer(&broker, 7, "flaps") == ReasonCode::BANNED);
    assert_eq!(answer(&broker, 2, "other"), ReasonCode::SUCCESS);
    assert!(broker.counter("refused_banned_total") > 0);
}

#[test]
fn two_clients_that_take_over_from_each_other_are_banned() {
    let broker = broker_with(2, "[access]\nflapping_client_id_max = 3\n", "");
    let mut clients: Vec<Client> =
        (2..6).map(|host| comes(&broker, host, "both", Version::V5).0).collect();
    assert_eq!(answer(&broker, 7, "both"), ReasonCode::BANNED);
    // The last one is not disturbed any more.
    clients.remove(3).ping();
    assert_eq!(broker.counter("takeovers_total"), 3);
}

#[test]
fn connections_that_stay_or_are_refused_are_no_flaps_and_silent_ones_are() {
    let section = "limits = { sessions_max = 2 }\n[access]\nflapping_address_max = 2\n";
    let broker = broker_with(1, section, "");
    let clients: Vec<Client> = ["a", "b"]
        .map(|id| comes(&broker, 2, id, Version::V5))
        .into_iter()
        .map(|(client, reason)| {
            assert_eq!(reason, ReasonCode::SUCCESS);
            client
        })
        .collect();
    for _ in 0..5 {
        assert_eq!(answer(&broker, 2, "c"), ReasonCode::QUOTA_EXCEEDED);
    }
    for _ in 0..2 {
        drop(from(2, tested(&broker)));
    }
    wait_until("the ban", || answer(&broker, 2, "c") == ReasonCode::BANNED);
    drop(clients);
}

#[test]
fn a_proxy_that_looks_whether_the_broker_is_there_is_not_banned() {
    let section = "[access]\nflapping_address_max = 2\n";
    let broker = broker_with(1, section, "proxy_protocol = true");
    for looks in 1..=5 {
        drop(open(tested(&broker)));
        wait_until("it is gone", || {
            broker.counter("accepted_total") == looks && broker.counter("connections") == 0
        });
    }
    let via = |header: &str| {
        let mut client = client_on(open(tested(&broker)));
        let hello = bytes_of(&connect("c", Version::V5));
        client.send_raw(&[header.as_bytes(), &hello].concat());
        connack(&mut client)
    };
    assert_eq!(via("PROXY UNKNOWN\r\n"), ReasonCode::SUCCESS);
    let client = "PROXY TCP4 198.51.100.7 10.0.0.1 40000 1883\r\n";
    wait_until("the ban of the client", || via(client) == ReasonCode::BANNED);
    assert_eq!(via("PROXY UNKNOWN\r\n"), ReasonCode::SUCCESS);
}
