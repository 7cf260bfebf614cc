//! What takes most, what was slow, and messages of chosen filters.

use serde_json::Value;
use tacho_codec::{QoS, Version};
use tacho_testkit::wait_until;

use super::Managed;

#[test]
fn the_largest_queues_and_retained_messages_come_first() {
    let managed = Managed::start("shards = 2");
    let broker = &managed.broker;
    for name in ["small", "large", "none"] {
        let mut client = broker.durable(name, Version::V5, None);
        client.subscribe(&format!("to/{name}"), QoS::AtLeastOnce);
        client.disconnect();
    }
    let mut publisher = broker.connected("publisher", Version::V5);
    publisher.publish("to/small", b"x", QoS::AtLeastOnce, false);
    for _ in 0..3 {
        publisher.publish("to/large", &[0; 1_000], QoS::AtLeastOnce, false);
    }
    for (topic, bytes) in [("r/1", 10), ("r/2", 3_000), ("r/3", 200)] {
        publisher.publish(topic, &vec![0; bytes], QoS::AtLeastOnce, true);
    }
    let names = |answer: &Value, list: &str, key: &str| -> Vec<String> {
        let rows = answer[list].as_array().unwrap().iter();
        rows.map(|row| row[key].as_str().unwrap().to_owned()).collect()
    };
    let answer = managed.get("/top/queues");
    assert_eq!(names(&answer, "clients", "client_id"), ["large", "small"]);
    assert_eq!(
        (&answer["clients"][0]["queue_len"], &answer["complete"]),
        (&3.into(), &true.into())
    );
    let answer = managed.get("/top/retained?limit=2");
    assert_eq!(names(&answer, "retained", "topic"), ["r/2", "r/3"]);
    assert_eq!(answer["retained"][0]["payload_bytes"], 3_000);
    for path in ["/top/queues", "/top/retained", "/top/publishers", "/slow"] {
        assert_eq!(managed.refused(&format!("{path}?limit=0"), 400).0, "limit");
    }
}

#[test]
fn clients_that_publish_most_are_counted_for_a_while() {
    let managed = Managed::start("shards = 2");
    let broker = &managed.broker;
    let mut loud = broker.connected("loud", Version::V5);
    let mut quiet = broker.connected("quiet", Version::V5);
    // What came before does not count.
    quiet.publish("a", &[0; 1_000], QoS::AtLeastOnce, false);
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            loop {
                let answer = managed.ask("GET", "/top/publishers?seconds=2&limit=5", "");
                if answer.status == 200 {
                    return answer.json();
                }
            }
        });
        // Another request is told so meanwhile.
        wait_until("it is counted", || {
            managed.ask("GET", "/top/publishers?seconds=1", "").status == 503
        });
        while !asked.is_finished() {
            for _ in 0..3 {
                loud.publish("a", &[0; 10], QoS::AtLeastOnce, false);
            }
            quiet.publish("a", &[0; 7], QoS::AtLeastOnce, false);
        }
        asked.join().unwrap()
    });
    let rows = answer["clients"].as_array().unwrap();
    let of = |at: usize, key: &str| rows[at][key].as_u64().unwrap();
    assert_eq!((&rows[0]["client_id"], &rows[1]["client_id"]), (&"loud".into(), &"quiet".into()));
    assert!(of(0, "messages") > of(1, "messages") && of(1, "messages") > 0, "{answer}");
    assert_eq!((of(0, "bytes"), of(1, "bytes")), (10 * of(0, "messages"), 7 * of(1, "messages")));
    assert!(answer["counted_ms"].as_u64().unwrap() >= 2_000);
    assert_eq!(managed.refused("/top/publishers?seconds=31", 400).0, "seconds");
}

#[test]
fn messages_of_chosen_filters_are_counted_until_that_ends() {
    let managed = Managed::start("shards = 2");
    let broker = &managed.broker;
    let add = |filter: &str| {
        let body = format!("{{\"filter\": \"{filter}\"}}");
        managed.ask("POST", "/topic-metrics", &body)
    };
    let counted = |at: usize| managed.get("/topic-metrics")["topics"][at].clone();
    assert_eq!((add("a/#").status, add("a/+/c").status), (204, 204));
    assert!(add("a/#").error(409).1.contains("are counted already"));
    assert_eq!(add("a#").error(400).0, "filter");
    let mut receiver = broker.connected("receiver", Version::V5);
    receiver.subscribe("#", QoS::AtMostOnce);
    let mut away = broker.durable("away", Version::V5, None);
    away.subscribe("a/#", QoS::AtLeastOnce);
    away.disconnect();
    wait_until("it is away", || managed.get("/clients/away")["connected"] == false);
    let mut publisher = broker.connected("publisher", Version::V5);
    for (topic, payload) in [("a/b/c", &b"12345"[..]), ("a/b", b"12"), ("b", b"1")] {
        publisher.publish(topic, payload, QoS::AtMostOnce, false);
        receiver.receive();
    }
    wait_until("it has missed both", || counted(0)["dropped"] == 2);
    let (all, one) = (counted(0), counted(1));
    assert_eq!((&all["messages_in"], &all["bytes_in"]), (&2.into(), &7.into()));
    assert_eq!((&all["messages_out"], &all["bytes_out"]), (&2.into(), &7.into()));
    assert_eq!((&one["messages_in"], &one["messages_out"]), (&1.into(), &1.into()));
    assert_eq!(managed.ask("DELETE", "/topic-metrics?filter=a/%23", "").status, 204);
    managed.ask("DELETE", "/topic-metrics?filter=a/%23", "").error(404);
    assert_eq!(counted(0)["filter"], "a/+/c");
    for at in 0..15 {
        assert_eq!(add(&format!("x/{at}")).status, 204);
    }
    assert!(add("y").error(409).1.contains("16 filters"), "they are bounded");
}

#[test]
fn a_client_that_was_slow_is_remembered() {
    let managed = Managed::start("shards = 1\n[limits]\noutput_bytes_max = 65536\n");
    let broker = &managed.broker;
    let mut slow = broker.connected("slow", Version::V5);
    slow.subscribe("flood", QoS::AtMostOnce);
    let mut publisher = broker.connected("publisher", Version::V5);
    let payload = vec![0; 60_000];
    wait_until("its output is blocked for a while", || {
        publisher.publish("flood", &payload, QoS::AtMostOnce, false);
        let now = managed.get("/slow");
        let rows = now["now"].as_array().unwrap();
        rows.iter().any(|row| {
            row["client_id"] == "slow" && row["blocked_ms"].as_u64().is_some_and(|ms| ms >= 500)
        })
    });
    drop(slow);
    wait_until("it is remembered", || {
        let answer = managed.get("/slow");
        let past = answer["past"].as_array().unwrap();
        past.iter().any(|row| {
            row["client_id"] == "slow" && row["blocked_ms"].as_u64().is_some_and(|ms| ms >= 500)
        })
    });
    wait_until("so is what it has missed", || {
        let answer = managed.get("/slow");
        let past = answer["past"].as_array().unwrap();
        past.iter().any(|row| row["dropped"].as_u64().is_some_and(|dropped| dropped > 0))
    });
}
