//! What operators do: disconnect, publish, ban, reload; and the audit log of it.

use std::fs;

use serde_json::{Value, json};
use tacho_codec::{Connect, QoS, ReasonCode, Version};
use tacho_testkit::{connect, wait_until, will};

use super::{Managed, column};

#[test]
fn a_kicked_client_keeps_its_session_unless_that_is_to_end() {
    let managed = Managed::start("shards = 2");
    let broker = &managed.broker;
    let mut watcher = broker.connected("watcher", Version::V5);
    watcher.subscribe("will", QoS::AtLeastOnce);
    let mut client = broker.durable("c", Version::V5, None);
    client.subscribe("a", QoS::AtLeastOnce);
    let kicked = managed.ask("DELETE", "/clients/c", "").json();
    let expected = json!({"client_id": "c", "was_connected": true, "session_ended": false});
    assert_eq!(kicked, expected);
    assert_eq!(client.expect_disconnect(), ReasonCode::ADMINISTRATIVE_ACTION);
    client.expect_closed();
    let last = managed.get("/clients/c")["last_connection"]["reason"].clone();
    assert!(last.as_str().unwrap().contains("an operator has disconnected"), "{last}");
    assert_eq!(managed.get("/clients/c/subscriptions")["subscriptions"][0]["filter"], "a");
    // Without a connection there is nothing to end but the session.
    let again = managed.ask("DELETE", "/clients/c", "").json();
    assert_eq!((&again["was_connected"], &again["session_ended"]), (&false.into(), &false.into()));
    let ended = managed.ask("DELETE", "/clients/c?session=end", "").json();
    assert_eq!(ended["session_ended"], true);
    managed.refused("/clients/c", 404);
    managed.ask("DELETE", "/clients/c", "").error(404);
    assert_eq!(managed.ask("DELETE", "/clients/c?session=x", "").error(400).0, "query");
    // A will is published, as when the connection breaks; a delayed one at the latest then.
    let mut delayed = will("will", b"bye");
    delayed.properties.delay_s = Some(3_600);
    let request = Connect { will: Some(delayed), ..connect("d", Version::V5) };
    let mut properties = request.properties.clone();
    properties.session_expiry_s = Some(7_200);
    let mut client = broker.client(Version::V5);
    client.connect(&Connect { properties, ..request });
    managed.ask("DELETE", "/clients/d?session=end", "").json();
    assert_eq!(watcher.receive().payload, b"bye");
    // A session that ends with its connection ends anyway.
    let _clean = broker.connected("e", Version::V311);
    assert_eq!(managed.ask("DELETE", "/clients/e", "").json()["session_ended"], true);
}

#[test]
fn a_message_is_published_to_all_and_retained_if_wanted() {
    let managed = Managed::start("shards = 3\n[limits]\npacket_size_max = 70000");
    let broker = &managed.broker;
    let mut clients: Vec<_> = (0..4)
        .map(|i| {
            let mut client = broker.connected(&format!("c{i}"), Version::V5);
            client.subscribe("news/+", QoS::AtLeastOnce);
            client
        })
        .collect();
    let publish = |body: Value| managed.ask("POST", "/publish", &body.to_string());
    let body = json!({"topic": "news/1", "payload": "text", "qos": 1, "retain": true});
    assert_eq!(publish(body).json()["payload_bytes"], 4);
    for client in &mut clients {
        let received = client.receive_and_ack();
        assert_eq!((received.payload, received.qos), (b"text".to_vec(), QoS::AtLeastOnce));
    }
    let bytes = json!({"topic": "news/2", "payload_base64": "/wA=", "expiry_s": 60});
    publish(bytes).json();
    let received = clients[0].receive();
    assert_eq!((received.payload, received.qos), (vec![0xff, 0], QoS::AtMostOnce));
    assert_eq!(received.message_expiry_s, Some(60));
    let mut late = broker.connected("late", Version::V5);
    late.subscribe("#", QoS::AtMostOnce);
    assert_eq!(late.receive().topic, "news/1");
    for (body, field) in [
        (json!({"topic": ""}), "topic"),
        (json!({"topic": "a/#"}), "topic"),
        (json!({"topic": "$SYS/a"}), "topic"),
        (json!({"topic": "$share/a"}), "topic"),
        (json!({"topic": "a", "qos": 3}), "qos"),
        (json!({"topic": "a", "payload": "x", "payload_base64": "eA=="}), "payload"),
        (json!({"topic": "a", "payload_base64": "?"}), "payload_base64"),
        (json!({"topic": "a", "payload": "x".repeat(70_000)}), "payload"),
        (json!({"topic": "a", "color": "red"}), "color"),
    ] {
        assert_eq!(publish(body.clone()).error(400).0, field, "{body}");
    }
    assert_eq!(managed.ask("POST", "/publish", "{").status, 400);
    assert_eq!(managed.ask("POST", "/publish", &"x".repeat(300_000)).status, 413);
}

#[test]
fn bans_end_connections_and_outlive_the_broker() {
    let store = tempfile::tempdir().unwrap();
    let more = format!("store = {:?}", store.path());
    let managed = Managed::start_with("shards = 2", &more);
    let broker = &managed.broker;
    let mut client = broker.connected("pest", Version::V5);
    let ban = |body: Value| managed.ask("POST", "/bans", &body.to_string());
    assert_eq!(ban(json!({"client_id": "pest", "reason": "floods"})).status, 204);
    assert_eq!(client.expect_disconnect(), ReasonCode::ADMINISTRATIVE_ACTION);
    let answer = |broker: &tacho_testkit::TestBroker| {
        broker.client(Version::V5).connect(&connect("pest", Version::V5)).1
    };
    assert_eq!(answer(broker), ReasonCode::BANNED);
    assert_eq!(ban(json!({"address": "192.0.2.0/24", "for_s": 60})).status, 204);
    assert_eq!(ban(json!({"user": "eve", "until": "2999-01-01T00:00:00Z"})).status, 204);
    let list = managed.get("/bans");
    assert_eq!(column(&list, "bans", "source"), ["operator"; 3]);
    assert_eq!(list["lasting"], true);
    for body in [
        json!({}),
        json!({"client_id": "a", "user": "b"}),
        json!({"address": "here"}),
        json!({"user": "a", "until": "tomorrow"}),
        json!({"user": "a", "until": "2999-01-01T00:00:00Z", "for_s": 1}),
        json!({"user": "a", "reason": "two\nlines"}),
    ] {
        assert_eq!(ban(body.clone()).status, 400, "{body}");
    }
    // The next broker has them.
    drop(managed);
    let managed = Managed::start_with("shards = 1", &more);
    assert_eq!(answer(&managed.broker), ReasonCode::BANNED);
    assert_eq!(managed.ask("DELETE", "/bans?client_id=pest", "").status, 204);
    wait_until("it may connect", || answer(&managed.broker) == ReasonCode::SUCCESS);
    managed.ask("DELETE", "/bans?client_id=pest", "").error(404);
    managed.ask("DELETE", "/bans", "").error(400);
    assert_eq!(managed.get("/bans")["bans"].as_array().unwrap().len(), 2);
}

#[test]
fn bans_for_offences_are_listed_and_lifted() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    fs::write(&users, "").unwrap();
    let managed = Managed::start(&format!(
        "shards = 1\n[access]\npassword_file = {users:?}\nlogin_failures_max = 2\n"
    ));
    let guess =
        Connect { username: Some("ann"), password: Some(b"x"), ..connect("c", Version::V5) };
    let answer = || managed.broker.client(Version::V5).connect(&guess).1;
    wait_until("it is banned", || answer() == ReasonCode::BANNED);
    let list = managed.get("/bans");
    assert_eq!(column(&list, "bans", "source"), ["failed_logins"]);
    assert_eq!(list["bans"][0]["address"], "127.0.0.1");
    assert_eq!(managed.ask("DELETE", "/bans?address=127.0.0.1", "").status, 204);
    assert_eq!(answer(), ReasonCode::BAD_USER_NAME_OR_PASSWORD);
}

#[test]
fn every_change_is_in_the_audit_log_with_its_author() {
    let folder = tempfile::tempdir().unwrap();
    let (audit, rules) = (folder.path().join("audit"), folder.path().join("rules.toml"));
    fs::write(&rules, "[[rules]]\nallow = 'all'\ntopics = ['#']\n").unwrap();
    let mut managed = Managed::start_with(
        &format!("shards = 1\n[access]\naudit_file = {audit:?}\nrules_file = {rules:?}\n"),
        &format!("store = {:?}", folder.path().join("store")),
    );
    let _client = managed.broker.connected("c", Version::V5);
    let body = json!({"topic": "t", "payload": "secret", "retain": true}).to_string();
    managed.ask("POST", "/publish", &body).json();
    managed.ask("DELETE", "/retained?topic=t", "").json();
    managed.ask("DELETE", "/clients/c", "").json();
    managed.ask("POST", "/bans", "{\"user\": \"eve\", \"reason\": \"why not\"}");
    managed.ask("DELETE", "/bans?user=eve", "");
    let key = managed.ask("POST", "/keys", "{\"name\": \"ci\", \"role\": \"viewer\"}").json();
    managed.ask("DELETE", "/keys/ci", "");
    fs::write(&rules, "[[rules]]\nallow = 'all'\ntopics = ['a/#']\n").unwrap();
    let reloaded = managed.ask("POST", "/reload", "").json();
    assert_eq!(reloaded["access"], "users and access rules: reloaded");
    // Looking is no change.
    managed.get("/clients");
    managed.broker.stop();
    let text = fs::read_to_string(&audit).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let managed_lines = lines.iter().filter(|line| line["event"] == "managed");
    let actions: Vec<&str> = managed_lines
        .map(|line| {
            assert_eq!(line["by"], "socket", "{line}");
            line["action"].as_str().unwrap()
        })
        .collect();
    let expected =
        ["publish", "delete_retained", "kick", "ban", "unban", "add_key", "remove_key", "reload"];
    assert_eq!(actions, expected);
    assert!(!text.contains("secret") && !text.contains(key["key"].as_str().unwrap()), "{text}");
}
