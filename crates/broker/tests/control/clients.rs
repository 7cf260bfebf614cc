//! Lists of connected clients and of slow ones.

use serde_json::Value;
use tacho_codec::{QoS, Version};

use crate::http::get;
use crate::metrics::scrape;
use tacho_testkit::{Client, TestBroker, connect, wait_until};

fn json(broker: &TestBroker, target: &str) -> Value {
    let answer = get(broker.metrics_address(), target);
    assert_eq!(answer.status, 200, "{target}: {}", answer.body);
    assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
    serde_json::from_str(&answer.body).unwrap()
}

#[test]
fn pages_show_every_session_once() {
    let broker = TestBroker::with_metrics("shards = 3");
    let mut clients: Vec<Client> =
        (0..30).map(|i| broker.connected(&format!("client-{i}"), Version::V5)).collect();
    clients[7].subscribe("a/#", QoS::AtLeastOnce);
    // One of them is away, and its session stays.
    let mut request = connect("away", Version::V311);
    request.clean_start = false;
    let mut away = broker.client(Version::V311);
    away.connect(&request);
    away.disconnect();
    let mut seen: Vec<Value> = Vec::new();
    let mut target = "/clients?limit=7".to_owned();
    loop {
        let page = json(&broker, &target);
        let rows = page["clients"].as_array().unwrap();
        assert!(rows.len() <= 7);
        seen.extend(rows.iter().cloned());
        let Some(next) = page["next"].as_str() else { break };
        target = format!("/clients?limit=7&after={next}");
    }
    let mut names: Vec<_> = seen.iter().map(|row| row["client_id"].as_str().unwrap()).collect();
    names.sort_unstable();
    let mut expected: Vec<String> = (0..30).map(|i| format!("client-{i}")).collect();
    expected.push("away".to_owned());
    expected.sort_unstable();
    assert_eq!(names, expected);
    let row = |name: &str| seen.iter().find(|row| row["client_id"] == name).unwrap();
    let subscribed = row("client-7");
    assert_eq!(subscribed["subscriptions"], 1);
    assert_eq!(subscribed["connected"], true);
    assert_eq!(subscribed["version"], "5.0");
    let address = clients[7].stream.local_addr().unwrap().to_string();
    assert_eq!(subscribed["address"], address.as_str());
    let away = row("away");
    assert_eq!(away["connected"], false);
    assert_eq!(away["address"], Value::Null);
    assert_eq!(away["version"], "3.1.1");
    assert!(json(&broker, "/clients")["next"].is_null(), "31 fit into the usual page");
}

#[test]
fn a_client_behind_a_proxy_is_listed_with_its_own_address() {
    let broker = TestBroker::with_metrics(
        "[[listeners]]\naddress = '127.0.0.1:0'\nallow_anonymous = true\nproxy_protocol = true\n",
    );
    let mut client = Client::open(broker.addresses()[1], Version::V5);
    client.send_raw(b"PROXY TCP6 2001:db8::7 2001:db8::1 40000 1883\r\n");
    client.connect(&connect("c", Version::V5));
    assert_eq!(json(&broker, "/clients")["clients"][0]["address"], "[2001:db8::7]:40000");
}

#[test]
fn a_client_that_does_not_read_is_listed_as_slow_among_others() {
    let broker = TestBroker::with_metrics("shards = 2\n[limits]\noutput_bytes_max = 65536");
    let mut deaf = broker.connected("deaf \"and\" dumb", Version::V5);
    deaf.subscribe("flood", QoS::AtLeastOnce);
    let _idle: Vec<Client> =
        (0..20).map(|i| broker.connected(&format!("idle-{i}"), Version::V5)).collect();
    assert_eq!(json(&broker, "/clients/slowest")["clients"].as_array().unwrap().len(), 0);
    let mut publisher = broker.connected("publisher", Version::V5);
    let waiting = || {
        let slowest = json(&broker, "/clients/slowest?n=3");
        assert_eq!(slowest["complete"], true);
        let rows = slowest["clients"].as_array().unwrap();
        rows.first().map_or(0, |row| {
            assert_eq!(row["client_id"], "deaf \"and\" dumb");
            row["queue_bytes"].as_u64().unwrap() + row["output_bytes"].as_u64().unwrap()
        })
    };
    // The kernel takes a few megabytes first.
    wait_until("bytes wait for it", || {
        for _ in 0..16 {
            publisher.publish("flood", &[0; 65_000], QoS::AtLeastOnce, false);
        }
        waiting() > 200_000
    });
    // The first look of a scrape is done behind its back.
    wait_until("it is among the metrics", || {
        scrape(&broker).iter().any(|(left, value)| {
            left.starts_with("tacho_slow_client_bytes{")
                && left.contains("client=\"deaf \\\"and\\\" dumb\"")
                && *value > 200_000.0
        })
    });
}
