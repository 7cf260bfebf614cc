//! Topics: who gets their messages, what is retained, shared groups.

use std::collections::BTreeSet;

use serde_json::Value;
use tacho_codec::{QoS, Version};
use tacho_testkit::{Client, wait_until};

use super::{Managed, column};

/// All rows of a list, page by page.
fn all_rows(managed: &Managed, target: &str, list: &str) -> Vec<Value> {
    let (mut rows, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = managed.get(&format!("{target}&limit=3{cursor}"));
        let more = page[list].as_array().unwrap();
        assert!(more.len() <= 3, "{page}");
        rows.extend(more.iter().cloned());
        let Some(next) = page["next"].as_str() else { return rows };
        cursor = format!("&cursor={next}");
    }
}

#[test]
fn who_gets_a_topic_is_told_with_the_filter() {
    let managed = Managed::start("shards = 3");
    let broker = &managed.broker;
    let clients: Vec<(String, Client)> = (0..9)
        .map(|i| {
            let name = format!("c{i}");
            let mut client = broker.connected(&name, Version::V5);
            client.subscribe(["a/b", "a/+", "#"][i % 3], QoS::AtLeastOnce);
            (name, client)
        })
        .collect();
    let mut both = broker.connected("both", Version::V5);
    both.subscribe("a/b", QoS::AtMostOnce);
    both.subscribe("+/b", QoS::ExactlyOnce);
    let mut member = broker.connected("member", Version::V5);
    member.subscribe("$share/g/a/#", QoS::AtLeastOnce);
    let rows = all_rows(&managed, "/receivers?topic=a/b", "subscribers");
    let found: BTreeSet<(String, String)> = rows
        .iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            (text("client_id"), text("filter"))
        })
        .collect();
    assert_eq!(found.len(), rows.len(), "each is there once");
    let mut expected: BTreeSet<(String, String)> = clients
        .iter()
        .enumerate()
        .map(|(i, (name, _))| (name.clone(), ["a/b", "a/+", "#"][i % 3].to_owned()))
        .collect();
    expected.extend(["a/b", "+/b"].map(|filter| ("both".to_owned(), filter.to_owned())));
    assert_eq!(found, expected);
    let first = managed.get("/receivers?topic=a/b");
    assert_eq!(column(&first, "groups", "filter"), ["$share/g/a/#"]);
    assert_eq!(first["groups"][0]["connected"], 1);
    let none = managed.get("/receivers?topic=$SYS/x");
    assert!(none["subscribers"].as_array().unwrap().is_empty(), "wildcards do not get it");
    let exact = all_rows(&managed, "/subscribers?filter=a/b", "subscribers");
    assert_eq!(exact.len(), 4);
    for (target, field) in [
        ("/receivers?topic=a/%23", "topic"),
        ("/receivers?topic=", "topic"),
        ("/receivers?topic=a&cursor=1.2", "cursor"),
        ("/receivers", "query"),
        ("/subscribers?filter=a%23", "filter"),
        ("/subscribers?filter=$share/g/a", "filter"),
        ("/group?filter=a", "filter"),
    ] {
        assert_eq!(managed.refused(target, 400).0, field, "{target}");
    }
}

#[test]
fn shared_groups_have_members_and_a_backlog() {
    let managed = Managed::start("shards = 2");
    let broker = &managed.broker;
    let mut away = broker.durable("away", Version::V5, None);
    away.subscribe("$share/g/jobs", QoS::AtLeastOnce);
    let mut other = broker.connected("other", Version::V5);
    other.subscribe("$share/h/jobs/#", QoS::AtLeastOnce);
    let groups = all_rows(&managed, "/groups?", "groups");
    assert_eq!(groups.len(), 2);
    away.disconnect();
    wait_until("it is away", || managed.get("/group?filter=$share/g/jobs")["connected"] == 0);
    let mut publisher = broker.connected("publisher", Version::V5);
    for _ in 0..5 {
        publisher.publish("jobs", b"x", QoS::AtLeastOnce, false);
    }
    wait_until("messages wait", || managed.get("/group?filter=$share/g/jobs")["waiting"] == 5);
    let group = managed.get("/group?filter=$share/g/jobs");
    assert_eq!(column(&group, "member_list", "client_id"), ["away"]);
    assert_eq!((&group["members"], &group["cut"]), (&1.into(), &false.into()));
    managed.refused("/group?filter=$share/g/none", 404);
}

#[test]
fn retained_messages_are_listed_read_and_deleted() {
    let managed = Managed::start("shards = 3\nsys_interval_s = 60");
    let broker = &managed.broker;
    let mut publisher = broker.connected("publisher", Version::V5);
    for i in 0..20 {
        publisher.publish(&format!("r/{i}"), b"text", QoS::AtLeastOnce, true);
    }
    publisher.publish("r", b"\xff\x00", QoS::AtLeastOnce, true);
    let topics = |filter: &str| {
        let rows = all_rows(&managed, &format!("/retained?filter={filter}"), "retained");
        let topics: BTreeSet<String> =
            rows.iter().map(|row| row["topic"].as_str().unwrap().to_owned()).collect();
        assert_eq!(topics.len(), rows.len(), "each is there once");
        topics
    };
    wait_until("all are there", || topics("r/%23").len() == 21);
    assert_eq!(topics("%23").len(), 21, "$SYS is not among them");
    assert!(!topics("$SYS/%23").is_empty());
    assert_eq!(topics("r/7"), BTreeSet::from(["r/7".to_owned()]));
    assert_eq!(topics("none/%23").len(), 0);
    let text = managed.get("/retained/message?topic=r/7");
    assert_eq!((&text["payload"], &text["payload_base64"]), (&"text".into(), &"dGV4dA==".into()));
    let bytes = managed.get("/retained/message?topic=r");
    assert_eq!((&bytes["payload"], &bytes["payload_base64"]), (&Value::Null, &"/wA=".into()));
    managed.refused("/retained/message?topic=r/99", 404);
    // Deleting one tells no subscriber.
    let mut live = broker.connected("live", Version::V5);
    live.subscribe("r/7", QoS::AtLeastOnce);
    assert_eq!(live.receive_and_ack().payload, b"text");
    let deleted = managed.ask("DELETE", "/retained?topic=r/7", "").json();
    assert_eq!(deleted["deleted"], 1);
    managed.ask("DELETE", "/retained?topic=r/7", "").error(404);
    live.expect_nothing();
    let mut late = broker.connected("late", Version::V5);
    late.subscribe("r/7", QoS::AtLeastOnce);
    late.expect_nothing();
    // What is published afterwards is retained as ever.
    publisher.publish("r/7", b"new", QoS::AtLeastOnce, true);
    assert_eq!(managed.get("/retained/message?topic=r/7")["payload"], "new");
    let deleted = managed.ask("DELETE", "/retained?filter=r/%2B", "").json();
    assert_eq!(deleted["deleted"], 20);
    assert_eq!(topics("%23"), BTreeSet::from(["r".to_owned()]));
    assert_eq!(managed.ask("DELETE", "/retained", "").error(400).0, "topic");
    let own = managed.ask("DELETE", "/retained?filter=$SYS/%23", "").error(400);
    assert_eq!(own.0, "filter");
}
