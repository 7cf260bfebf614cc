//! Clients: found by filters, looked at.

use std::collections::BTreeSet;

use serde_json::Value;
use tacho_codec::{Connect, QoS, Version};
use tacho_testkit::{Client, connect, wait_until, will};

use super::{Managed, column};

#[test]
fn pages_show_every_client_once_and_filters_hold() {
    let managed = Managed::start("shards = 3");
    let broker = &managed.broker;
    let _clients: Vec<Client> = (0..30)
        .map(|i| broker.connected(&format!("{}-{i}", ["a", "b"][i % 2]), Version::V5))
        .collect();
    broker.durable("a-away", Version::V5, None).disconnect();
    wait_until("it is away", || managed.get("/clients/a-away")["connected"] == false);
    let all = |filter: &str| {
        let (mut seen, mut cursor) = (BTreeSet::new(), String::new());
        loop {
            let page = managed.get(&format!("/clients?limit=7{filter}{cursor}"));
            for row in page["clients"].as_array().unwrap() {
                let name = row["client_id"].as_str().unwrap().to_owned();
                assert!(seen.insert(name.clone()), "{name} is there twice");
            }
            let Some(next) = page["next"].as_str() else { return seen };
            cursor = format!("&cursor={next}");
        }
    };
    assert_eq!(all("").len(), 31);
    let begins = all("&prefix=a-");
    assert_eq!(begins.len(), 16);
    assert!(begins.iter().all(|name| name.starts_with("a-")));
    assert_eq!(all("&state=away"), BTreeSet::from(["a-away".to_owned()]));
    assert_eq!(all("&state=connected&prefix=a-").len(), 15);
    assert_eq!(all("&address=127.0.0.0/8").len(), 30);
    assert_eq!(all("&address=192.0.2.7").len(), 0);
    assert_eq!(all("&user=ann").len(), 0);
    let exact = managed.get("/clients?client_id=b-7");
    assert_eq!(column(&exact, "clients", "client_id"), ["b-7"]);
    let none = managed.get("/clients?client_id=b-");
    assert!(none["clients"].as_array().unwrap().is_empty());
}

#[test]
fn requests_that_make_no_sense_are_refused_with_their_field() {
    let managed = Managed::start("shards = 1");
    for (target, field) in [
        ("/clients?limit=0", "limit"),
        ("/clients?limit=1001", "limit"),
        ("/clients?limit=x", "query"),
        ("/clients?cursor=x", "cursor"),
        ("/clients?address=here", "address"),
        ("/clients?state=asleep", "query"),
        ("/clients?name=a", "query"),
        ("/clients?client_id=a&prefix=a", "client_id"),
    ] {
        assert_eq!(managed.refused(target, 400).0, field, "{target}");
    }
    let (_, message) = managed.refused("/clients/none%2Fhere", 404);
    assert!(message.contains("'none/here'"), "{message}");
    assert!(managed.refused("/nothing", 404).1.contains("/api/v1/openapi.json"));
    assert_eq!(managed.ask("PUT", "/clients", "").status, 405);
}

#[test]
fn a_client_is_described_with_its_queue_its_will_and_its_last_disconnect() {
    let managed = Managed::start("shards = 2");
    let broker = &managed.broker;
    let mut client = broker.durable("odd name/\u{fc}", Version::V5, Some(7));
    client.subscribe("a/+", QoS::AtLeastOnce);
    let detail = || managed.get("/clients/odd%20name%2F%C3%BC");
    let first = detail();
    assert_eq!((&first["connected"], &first["version"]), (&true.into(), &"5.0".into()));
    assert_eq!((&first["session_expiry_s"], &first["inflight_max"]), (&60.into(), &7.into()));
    let address = client.stream.local_addr().unwrap().to_string();
    assert_eq!(first["address"], address.as_str());
    assert_eq!(first["subscriptions"], 1);
    assert!(first["last_connection"].is_null() && first["will"].is_null());
    client.disconnect();
    wait_until("it is away", || detail()["connected"] == false);
    let mut publisher = broker.connected("publisher", Version::V5);
    for _ in 0..3 {
        publisher.publish("a/b", b"12345", QoS::AtLeastOnce, false);
    }
    wait_until("messages wait", || detail()["queue_len"] == 3);
    let away = detail();
    assert!(away["queue_bytes"].as_u64().unwrap() >= 15);
    let reason = away["last_connection"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("DISCONNECT by the client: "), "{reason}");
    assert!(away["session_ends_in_s"].as_u64().is_some_and(|left_s| left_s <= 60));
    // A takeover is told to be one.
    let request =
        Connect { will: Some(will("last/words", b"bye")), ..connect("twin", Version::V311) };
    let request = Connect { clean_start: false, ..request };
    let mut first = broker.client(Version::V311);
    first.connect(&request);
    let detail = managed.get("/clients/twin");
    assert_eq!(detail["will"]["topic"], "last/words");
    assert_eq!((&detail["will"]["payload_bytes"], &detail["will"]["qos"]), (&3.into(), &0.into()));
    let mut second = broker.client(Version::V311);
    second.connect(&request);
    let last: Value = managed.get("/clients/twin")["last_connection"].clone();
    let reason = last["reason"].as_str().unwrap();
    assert!(reason.contains("by the broker") && reason.contains("taken over"), "{reason}");
}

#[test]
fn subscriptions_of_a_client_are_listed_shared_ones_included() {
    let managed = Managed::start("shards = 2\n[limits]\nsubscriptions_per_session_max = 2000");
    let mut client = managed.broker.connected("c", Version::V5);
    for i in 0..600 {
        client.send_subscribe(&format!("many/{i}"), QoS::AtMostOnce);
        client.frame().unwrap();
    }
    client.subscribe("$share/g/a/#", QoS::ExactlyOnce);
    let mut seen = BTreeSet::new();
    let mut cursor = String::new();
    loop {
        let page = managed.get(&format!("/clients/c/subscriptions{cursor}"));
        for row in page["subscriptions"].as_array().unwrap() {
            let filter = row["filter"].as_str().unwrap();
            let qos = if filter.starts_with("$share") { 2 } else { 0 };
            assert_eq!(row["qos"], qos, "{filter}");
            seen.insert(filter.to_owned());
        }
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("?cursor={next}");
    }
    assert_eq!(seen.len(), 601);
    assert!(seen.contains("$share/g/a/#"));
    managed.refused("/clients/d/subscriptions", 404);
    assert_eq!(managed.refused("/clients/c/subscriptions?cursor=x", 400).0, "cursor");
}
