//! Events, as they come.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use serde_json::Value;
use tacho_codec::{Connect, ReasonCode, Version};
use tacho_testkit::{connect, wait_until};

use super::Managed;

/// A stream of events.
struct Watcher(BufReader<UnixStream>);

impl Watcher {
    /// From here on nothing is missed.
    fn open(managed: &Managed, query: &str) -> Self {
        let mut stream = managed.stream();
        let request = format!("GET /api/v1/events{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut watcher = Self(BufReader::new(stream));
        assert_eq!(watcher.next()["event"], "ready");
        watcher
    }

    fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream has ended");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

#[test]
fn clients_that_come_go_and_are_refused_are_told() {
    let managed = Managed::start("shards = 2");
    let broker = &managed.broker;
    let mut all = Watcher::open(&managed, "");
    let mut of_one = Watcher::open(&managed, "?client_id=b&events=connected,disconnected");
    let client = broker.connected("a", Version::V5);
    let event = all.next();
    assert_eq!((&event["event"], &event["client_id"]), (&"connected".into(), &"a".into()));
    assert_eq!(event["address"], client.stream.local_addr().unwrap().to_string().as_str());
    assert!(event["time_ms"].as_u64().unwrap() > 1_600_000_000_000);
    let _second = broker.connected("a", Version::V5);
    let event = all.next();
    assert_eq!((&event["event"], &event["client_id"]), (&"taken_over".into(), &"a".into()));
    assert_eq!(all.next()["event"], "connected");
    managed.ask("DELETE", "/clients/a", "").json();
    let event = all.next();
    assert_eq!(event["event"], "disconnected");
    assert!(event["reason"].as_str().unwrap().contains("an operator"), "{event}");
    let mut refused = broker.client(Version::V311);
    let nameless = Connect { clean_start: false, ..connect("", Version::V311) };
    assert_ne!(refused.connect(&nameless).1, ReasonCode::SUCCESS);
    assert_eq!(all.next()["event"], "refused");
    broker.connected("b", Version::V5).disconnect();
    assert_eq!(of_one.next()["event"], "connected");
    let event = of_one.next();
    assert_eq!((&event["event"], &event["client_id"]), (&"disconnected".into(), &"b".into()));
}

#[test]
fn watchers_are_few_and_their_places_come_back() {
    let managed = Managed::start("shards = 1");
    let (field, message) = managed.refused("/events?events=connected,sleep", 400);
    assert!(field == "events" && message.contains("bridge_down"), "{message}");
    let mut watchers: Vec<Watcher> = (0..8).map(|_| Watcher::open(&managed, "")).collect();
    managed.refused("/events", 503);
    managed.get("/status");
    watchers.pop();
    // Its end is noticed with the next event.
    wait_until("there is a place", || {
        managed.broker.connected("c", Version::V5).disconnect();
        let mut stream = managed.stream();
        let request = "GET /api/v1/events HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.contains(" 200 ")
    });
}
