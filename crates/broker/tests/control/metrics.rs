//! `/metrics`: well-formed, complete, and true.

use std::collections::BTreeMap;
use std::path::Path;

use tacho_broker::ShardStats;
use tacho_codec::{Packet, QoS, ReasonCode, Version};

use crate::http::get;
use tacho_testkit::{TestBroker, connect, wait_until};

/// Samples by their whole left side, as `name{label="value"}`.
pub(crate) type Samples = BTreeMap<String, f64>;

/// An answer taken apart by the rules of the format; panics where it breaks them.
struct Parsed {
    /// Kinds by family.
    kinds: BTreeMap<String, String>,
    samples: Samples,
}

fn parse(text: &str) -> Parsed {
    let (mut kinds, mut samples) = (BTreeMap::new(), Samples::new());
    let mut family = String::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(!kinds.contains_key(name), "{name} comes twice");
            assert!(help.ends_with('.'), "{line}");
            family = name.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, family, "its help stands before it");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            kinds.insert(name.to_owned(), kind.to_owned());
        } else {
            let (left, value) = line.rsplit_once(' ').unwrap();
            let name = left.split('{').next().unwrap();
            let suffixes: &[&str] = match kinds[&family].as_str() {
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            assert!(suffixes.iter().any(|suffix| name == format!("{family}{suffix}")), "{line}");
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert!(samples.insert(left.to_owned(), value).is_none(), "{left} comes twice");
        }
    }
    Parsed { kinds, samples }
}

pub(crate) fn scrape(broker: &TestBroker) -> Samples {
    let answer = get(broker.metrics_address(), "/metrics");
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
    parse(&answer.body).samples
}

/// The sum of all samples of a metric whose labels contain `label`.
fn sum(samples: &Samples, name: &str, label: &str) -> f64 {
    let wanted = |left: &str| left.split('{').next() == Some(name) && left.contains(label);
    samples.iter().filter(|(left, _)| wanted(left)).map(|(_, value)| value).sum()
}

/// A counter's name outside.
fn exported(name: &str) -> String {
    format!("tacho_{}", name.replace("_ns", "_seconds").replace("_us", "_seconds"))
}

#[test]
fn every_counter_is_there_for_every_shard() {
    let broker = TestBroker::with_metrics("shards = 3");
    let answer = get(broker.metrics_address(), "/metrics").body;
    let Parsed { kinds, samples } = parse(&answer);
    for (name, _) in ShardStats::PLAIN {
        let exported = exported(name);
        assert!(kinds.contains_key(&exported), "{exported}");
        for shard in 0..3 {
            let sample = format!("{exported}{{shard=\"{shard}\"}}");
            assert!(samples.contains_key(&sample), "{sample}");
        }
    }
    for name in ["tacho_uptime_seconds", "process_cpu_seconds_total", "process_max_fds"] {
        assert!(kinds.contains_key(name), "{name}");
    }
    assert_eq!(samples["tacho_shards"], 3.0);
}

#[test]
fn documented_metrics_exist_and_those_with_labels_are_documented() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let read = |name| std::fs::read_to_string(docs.join(name)).unwrap();
    let text = read("operations.md") + &read("bridging.md");
    let directory = tempfile::tempdir().expect("a folder");
    // No broker answers there: a bridge has its metrics nevertheless.
    let bridge = "[[bridges]]\nname = \"there\"\naddress = \"mqtt://127.0.0.1:1\"\n\
                  [[bridges.egress]]\nfilter = \"there/#\"";
    let config = format!("data_dir = '{}'\nshards = 1\n{bridge}", directory.path().display());
    let broker = TestBroker::with_metrics(&config);
    let kinds = parse(&get(broker.metrics_address(), "/metrics").body).kinds;
    // The plain ones tell what they are themselves.
    let plain: Vec<String> = ShardStats::PLAIN.iter().map(|(name, _)| exported(name)).collect();
    let special = kinds.keys().filter(|name| !plain.contains(name));
    let missing: Vec<_> = special.filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "in neither operations.md nor bridging.md: {missing:?}");
    all_exist("operations.md or bridging.md", &text, &kinds);
}

#[test]
fn the_dashboard_names_metrics_that_exist() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dashboards/prometheus/broker.json");
    let text = std::fs::read_to_string(path).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let broker = TestBroker::with_metrics("shards = 1");
    let kinds = parse(&get(broker.metrics_address(), "/metrics").body).kinds;
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() > 10);
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            assert!(all_exist(&panel["title"].to_string(), query, &kinds) > 0, "{query}");
        }
    }
}

/// Every word of `text` that looks like a metric is one, or the beginning of a pattern for some.
/// Returns how many there are.
fn all_exist(place: &str, text: &str, kinds: &BTreeMap<String, String>) -> usize {
    let words = text.split(|c: char| !c.is_ascii_lowercase() && c != '_');
    let metrics = words.filter(|word| word.starts_with("tacho_") || word.starts_with("process_"));
    let mut count = 0;
    for metric in metrics {
        let family = metric.strip_suffix("_bucket").unwrap_or(metric);
        let found = match metric.ends_with('_') {
            true => kinds.keys().any(|name| name.starts_with(metric)),
            false => kinds.contains_key(family),
        };
        assert!(found, "{place} names {metric}");
        count += 1;
    }
    count
}

#[test]
fn counters_tell_what_happened() {
    let broker = TestBroker::with_metrics("shards = 2");
    let before = scrape(&broker);
    let mut subscriber = broker.connected("subscriber", Version::V5);
    subscriber.subscribe("a/+", QoS::ExactlyOnce);
    subscriber.subscribe("$share/g/b", QoS::ExactlyOnce);
    let mut publisher = broker.connected("publisher", Version::V311);
    for (qos, payload_len) in
        [(QoS::AtMostOnce, 10), (QoS::AtLeastOnce, 100), (QoS::ExactlyOnce, 1000)]
    {
        publisher.publish("a/b", &vec![7; payload_len], qos, false);
        subscriber.expect(|packet| assert!(matches!(packet, Packet::Publish(_)), "{packet:?}"));
    }
    publisher.ping();
    // The same client again, and one that says goodbye.
    let again = broker.connected("publisher", Version::V311);
    publisher.expect_closed();
    again.disconnect();
    // One that is refused: 3.1.1 knows no assigned identifiers for kept sessions.
    let mut refused = broker.client(Version::V311);
    let mut request = connect("", Version::V311);
    request.clean_start = false;
    refused.connect(&request);
    refused.expect_closed();
    // The sockets' counters follow at the end of the turn.
    wait_until("all is written", || {
        scrape(&broker)["tacho_packets_in_total{shard=\"0\"}"]
            + scrape(&broker)["tacho_packets_in_total{shard=\"1\"}"]
            >= 12.0
            && sum(&scrape(&broker), "tacho_connections", "") == 1.0
    });
    let samples = scrape(&broker);
    let total = |name: &str, label: &str| sum(&samples, name, label);
    for (name, label, expected) in [
        ("tacho_sessions_connected", "", 1.0),
        ("tacho_sessions", "", 1.0),
        ("tacho_subscriptions", "", 2.0),
        ("tacho_shared_subscriptions", "", 1.0),
        ("tacho_connects_total", "", 3.0),
        ("tacho_takeovers_total", "", 1.0),
        ("tacho_refused_connects_total", "reason=\"client_identifier_not_valid\"", 1.0),
        ("tacho_disconnects_by_broker_total", "reason=\"session_taken_over\"", 1.0),
        ("tacho_disconnects_by_clients_total", "reason=\"normal\"", 1.0),
        ("tacho_publishes_in_total", "qos=\"0\"", 1.0),
        ("tacho_publishes_in_total", "qos=\"1\"", 1.0),
        ("tacho_publishes_in_total", "qos=\"2\"", 1.0),
        ("tacho_publishes_out_total", "", 3.0),
        ("tacho_subscribes_total", "", 2.0),
        ("tacho_pings_total", "", 1.0),
        ("tacho_payload_in_bytes_sum", "", 1110.0),
        ("tacho_payload_in_bytes_count", "", 3.0),
        ("tacho_payload_in_bytes_bucket", "le=\"16\"", 1.0),
        ("tacho_payload_in_bytes_bucket", "le=\"256\"", 2.0),
        ("tacho_payload_in_bytes_bucket", "le=\"+Inf\"", 3.0),
        ("tacho_payload_bytes_out_total", "", 1110.0),
        // PUBACK, PUBREC, PUBCOMP to the publisher; the subscriber has acknowledged nothing.
        ("tacho_acks_out_total", "", 3.0),
    ] {
        assert_eq!(total(name, label), expected, "{name} {label}");
    }
    assert!(total("tacho_bytes_in_total", "") > 1110.0);
    assert!(total("tacho_bytes_out_total", "") > 1110.0);
    assert!(total("tacho_turns_total", "") > 2.0);
    assert!(total("tacho_busy_seconds_total", "") > 0.0);
    let (count, turns) = (total("tacho_turn_seconds_count", ""), total("tacho_turns_total", ""));
    assert!(count > 0.0 && count <= turns, "{count} of {turns}");
    let cpu = "process_cpu_seconds_total";
    assert!(samples[cpu] >= before[cpu]);
    drop(subscriber);
    wait_until("the loss is counted", || {
        sum(&scrape(&broker), "tacho_connections_lost_total", "") == 1.0
    });
}

#[test]
fn a_refusal_has_its_reason() {
    let broker = TestBroker::with_metrics("shards = 1\n[limits]\nsessions_max = 1");
    let _first = broker.connected("first", Version::V5);
    let mut second = broker.client(Version::V5);
    let (_, reason) = second.connect(&connect("second", Version::V5));
    assert_eq!(reason, ReasonCode::QUOTA_EXCEEDED);
    let samples = scrape(&broker);
    let refused = "tacho_refused_connects_total{shard=\"0\",reason=\"quota_exceeded\"}";
    assert_eq!(samples[refused], 1.0);
}

#[test]
fn messages_that_wait_are_counted_with_their_bytes() {
    let broker = TestBroker::with_metrics("shards = 2");
    let mut request = connect("away", Version::V311);
    request.clean_start = false;
    let mut away = broker.client(Version::V311);
    away.connect(&request);
    away.subscribe("a", QoS::AtLeastOnce);
    away.disconnect();
    let mut publisher = broker.connected("publisher", Version::V5);
    for _ in 0..50 {
        publisher.publish("a", &[7; 1000], QoS::AtLeastOnce, false);
    }
    wait_until("all wait", || sum(&scrape(&broker), "tacho_waiting", "") == 50.0);
    wait_until("with their bytes", || sum(&scrape(&broker), "tacho_queues_bytes", "") >= 5000.0);
    let mut back = broker.client(Version::V311);
    back.connect(&request);
    for _ in 0..50 {
        back.receive_and_ack();
    }
    wait_until("none waits", || sum(&scrape(&broker), "tacho_waiting", "") == 0.0);
}

#[test]
fn a_journal_has_figures_and_without_one_there_are_none() {
    let directory = tempfile::tempdir().expect("a folder");
    let text = format!("data_dir = '{}'\nshards = 2", directory.path().display());
    let broker = TestBroker::with_metrics(&text);
    let mut client = broker.durable("client", Version::V5, None);
    client.subscribe("a", QoS::AtLeastOnce);
    broker.connected("other", Version::V5).publish("a", b"x", QoS::AtLeastOnce, true);
    client.receive_and_ack();
    let samples = scrape(&broker);
    for name in ["commits_total", "commit_records_total", "written_bytes_total", "segments"] {
        let value = samples[&format!("tacho_journal_{name}")];
        assert!(value > 0.0, "{name} is {value}");
    }
    assert_eq!(samples["tacho_journal_condition"], 0.0);
    let synced = samples["tacho_journal_sync_seconds_count"];
    assert!(synced > 0.0 && synced == samples["tacho_journal_sync_seconds_bucket{le=\"+Inf\"}"]);
    let samples = scrape(&TestBroker::with_metrics("shards = 1"));
    assert!(!samples.contains_key("tacho_journal_commits_total"));
}
