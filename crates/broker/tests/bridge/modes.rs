//! Bridges that an operator pauses, drains, stops and runs again.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use tacho_broker::bridge::{BridgeMode, State};
use tacho_codec::{QoS, Version};
use tacho_testkit::{PATIENCE, TestBroker, wait_until};
use tempfile::TempDir;

use crate::{OUT, bridge, status, wait_empty, wait_up};

/// A broker with a bridge, and its management socket.
struct Operated {
    broker: TestBroker,
    socket: PathBuf,
    _folder: TempDir,
}

impl Operated {
    fn start(shards: usize, there: &TestBroker, keys: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("m.sock");
        let toml = format!(
            "shards = {shards}\n{}[management]\nsocket = {socket:?}\n",
            bridge(there.address, &format!("{keys}{OUT}"))
        );
        let broker = TestBroker::configured(&toml);
        wait_up(&broker);
        Self { broker, socket, _folder: folder }
    }

    /// The status of the answer to a wish.
    fn want(&self, name: &str, mode: &str) -> u16 {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = format!("{{\"mode\": \"{mode}\"}}");
        let request = format!(
            "POST /api/v1/bridges/{name} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn waiting(&self) -> u64 {
        status(&self.broker).figures.buffered_messages
    }

    fn problem(&self) -> String {
        status(&self.broker).links[0].problem.clone().unwrap_or_default()
    }
}

#[test]
fn a_paused_bridge_keeps_messages_until_it_runs_again() {
    for (shards, connections) in [(1, 1), (3, 4)] {
        let there = TestBroker::start(1);
        let here = Operated::start(shards, &there, &format!("connections = {connections}\n"));
        let mut subscriber = there.connected("s", Version::V5);
        subscriber.subscribe("from/#", QoS::AtLeastOnce);
        let mut publisher = here.broker.connected("p", Version::V5);
        publisher.publish("out/1", b"", QoS::AtLeastOnce, false);
        assert_eq!(subscriber.receive_and_ack().topic, "from/out/1");
        assert_eq!(here.want("b", "paused"), 200);
        let paused = status(&here.broker);
        assert_eq!((paused.mode, paused.state), (BridgeMode::Paused, State::Down));
        assert!(here.problem().contains("an operator has paused the bridge"));
        for qos in [QoS::AtMostOnce, QoS::AtLeastOnce] {
            publisher.publish("out/1", &[qos as u8], qos, false);
        }
        wait_until("both wait", || here.waiting() == 2);
        subscriber.expect_nothing();
        // It is not tried again meanwhile.
        assert_eq!(status(&here.broker).connected, 0);
        assert_eq!(here.want("b", "running"), 200);
        assert_eq!(subscriber.receive_and_ack().payload, [0]);
        assert_eq!(subscriber.receive_and_ack().payload, [1]);
        wait_up(&here.broker);
    }
}

#[test]
fn a_drained_bridge_delivers_what_waits_and_takes_nothing_new() {
    let there = TestBroker::start(1);
    let here = Operated::start(2, &there, "");
    let mut subscriber = there.connected("s", Version::V5);
    subscriber.subscribe("from/#", QoS::AtLeastOnce);
    let mut publisher = here.broker.connected("p", Version::V5);
    assert_eq!(here.want("b", "paused"), 200);
    for number in 0..20 {
        publisher.publish("out/1", &[number], QoS::AtLeastOnce, false);
    }
    wait_until("all wait", || here.waiting() == 20);
    assert_eq!(here.want("b", "draining"), 200);
    publisher.publish("out/1", b"new", QoS::AtLeastOnce, false);
    publisher.publish("out/2", b"new", QoS::AtLeastOnce, false);
    for number in 0..20 {
        assert_eq!(subscriber.receive_and_ack().payload, [number]);
    }
    wait_until("it rests", || {
        let now = status(&here.broker);
        now.connected == 0 && now.figures.inflight == 0
    });
    assert!(here.problem().contains("nothing of it waits"), "{}", here.problem());
    subscriber.expect_nothing();
    assert_eq!(here.want("b", "running"), 200);
    wait_up(&here.broker);
    publisher.publish("out/1", b"again", QoS::AtLeastOnce, false);
    assert_eq!(subscriber.receive_and_ack().payload, b"again");
    wait_empty(&here.broker);
}

#[test]
fn a_stopped_bridge_has_no_connection_and_unknown_ones_are_told() {
    let there = TestBroker::start(1);
    let here = Operated::start(1, &there, "");
    let mut publisher = here.broker.connected("p", Version::V5);
    publisher.publish("out/1", b"", QoS::AtLeastOnce, false);
    wait_empty(&here.broker);
    assert_eq!(here.want("b", "stopped"), 200);
    publisher.publish("out/1", b"", QoS::AtLeastOnce, false);
    let stopped = status(&here.broker);
    assert_eq!((stopped.mode, stopped.connected, here.waiting()), (BridgeMode::Stopped, 0, 0));
    assert_eq!(here.want("c", "paused"), 404);
    assert_eq!(here.want("b", "asleep"), 400);
}

#[test]
fn a_bridge_that_is_not_enabled_waits_until_it_is_wanted() {
    let there = TestBroker::start(1);
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("m.sock");
    let toml = format!(
        "shards = 2\n{}[management]\nsocket = {socket:?}\n",
        bridge(there.address, &format!("enabled = false\n{OUT}"))
    );
    let broker = TestBroker::configured(&toml);
    let here = Operated { broker, socket, _folder: folder };
    let mut subscriber = there.connected("s", Version::V5);
    subscriber.subscribe("from/#", QoS::AtLeastOnce);
    let mut publisher = here.broker.connected("p", Version::V5);
    publisher.publish("out/1", b"not this", QoS::AtLeastOnce, false);
    assert_eq!(status(&here.broker).mode, BridgeMode::Stopped);
    assert_eq!(here.want("b", "running"), 200);
    wait_up(&here.broker);
    publisher.publish("out/1", b"this", QoS::AtLeastOnce, false);
    assert_eq!(subscriber.receive_and_ack().payload, b"this");
}
