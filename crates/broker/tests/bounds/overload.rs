//! Each step of shedding load, forced by tiny thresholds.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::slowest;
use tacho_codec::{ConnectProperties, Packet, PacketId, Publish, QoS, ReasonCode, Version};
use tacho_testkit::{Client, TestBroker, connect, wait_until};

/// Publishes as fast as it is let to a topic, until dropped. Answers are read and forgotten.
struct Flood {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    fn start(broker: &TestBroker, name: &str, topic: &'static str, qos: QoS) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let mut client = broker.connected(name, Version::V311);
        let thread = std::thread::spawn(move || {
            client.stream.set_nonblocking(true).unwrap();
            let mut waiting = Vec::new();
            let mut ids = (1..=u16::MAX).cycle();
            while !stopped.load(Ordering::Relaxed) {
                if waiting.is_empty() {
                    for _ in 0..50 {
                        let packet_id = PacketId::new(ids.next().unwrap());
                        let packet_id = packet_id.filter(|_| qos != QoS::AtMostOnce);
                        let payload = &[1; 1_000];
                        let publish =
                            Publish { topic, payload, qos, packet_id, ..Publish::default() };
                        Packet::Publish(publish).encode(Version::V311, &mut waiting).unwrap();
                    }
                }
                let mut idle = true;
                match client.stream.write(&waiting) {
                    Ok(written) => {
                        waiting.drain(..written);
                        idle = false;
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
                match client.stream.read(&mut [0; 65_536]) {
                    Ok(0) => return,
                    Ok(_) => idle = false,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
                if idle {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn subscriber(broker: &TestBroker, name: &str, qos: QoS) -> Client {
    let mut client = broker.connected(name, Version::V5);
    client.subscribe("flood", qos);
    client
}

/// The first steps are always on, the others never.
fn steps(on: usize) -> String {
    let keys = ["slow_accepts", "shed_qos0", "throttle", "refuse"];
    let lag = keys.iter().enumerate().map(|(step, key)| {
        let threshold = if step < on { 0 } else { u32::MAX };
        format!("lag_{key}_ms = {threshold}\nmemory_{key}_percent = 1000\n")
    });
    format!("[overload]\nwindow_ms = 10\n{}", lag.collect::<String>())
}

fn wait_for_level(broker: &TestBroker, level: u64) {
    wait_until("the level is reached", || broker.counter("overload_level") == level);
}

#[test]
fn accepting_is_slowed_and_no_client_is_refused() {
    let broker =
        TestBroker::configured(&format!("shards = 1\n{}slow_accepts_per_s = 50", steps(1)));
    let mut first = broker.connected("first", Version::V5);
    wait_for_level(&broker, 1);
    let begun = std::time::Instant::now();
    let mut clients: Vec<Client> = (0..30).map(|_| broker.client(Version::V5)).collect();
    for (i, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.connect(&connect(&i.to_string(), Version::V5)).1, ReasonCode::SUCCESS);
    }
    assert!(begun.elapsed() >= Duration::from_millis(500), "30 at 50 per second");
    first.ping();
    assert_eq!(broker.counter("overload_changes_total"), 1);
}

#[test]
fn slow_readers_get_no_qos_0_and_others_get_all() {
    let broker = TestBroker::with_metrics(&format!("shards = 1\n{}", steps(2)));
    let _deaf = subscriber(&broker, "deaf", QoS::AtMostOnce);
    wait_for_level(&broker, 2);
    let flood = Flood::start(&broker, "publisher", "flood", QoS::AtMostOnce);
    wait_until("something is shed", || broker.counter("dropped_overload_total") > 100);
    // Shed long before its own limit of 1 MiB.
    assert_eq!(broker.counter("dropped_output_full_total"), 0);
    drop(flood);
    let slow = &slowest(&broker, 1)[0];
    assert_eq!(slow["client_id"], "deaf");
    let of = |name: &str| slow[name].as_u64().unwrap();
    assert!(of("dropped") > 100 && of("output_bytes") < 200_000, "{slow}");
    let mut reader = broker.connected("reader", Version::V5);
    reader.subscribe("calm", QoS::AtMostOnce);
    let mut publisher = broker.connected("calm", Version::V5);
    for i in 0..100 {
        publisher.publish("calm", &[i], QoS::AtMostOnce, false);
        assert_eq!(reader.receive().payload, [i]);
    }
}

#[test]
fn the_heaviest_publishers_are_held_back_and_light_ones_are_not() {
    let broker = TestBroker::configured(&format!("shards = 1\n{}", steps(3)));
    let mut light = broker.connected("light", Version::V5);
    wait_for_level(&broker, 3);
    let _flood = Flood::start(&broker, "heavy", "unread", QoS::AtLeastOnce);
    wait_until("it is held back", || broker.counter("throttled_overload_total") >= 2);
    let before = broker.counter("publishes_in_total");
    for _ in 0..200 {
        light.publish("t", b"x", QoS::AtLeastOnce, false);
    }
    assert!(broker.counter("publishes_in_total") >= before + 200);
    // It goes on, a buffer now and then, and is not forgotten.
    let held = broker.counter("throttled_overload_total");
    wait_until("it is read again", || broker.counter("throttled_overload_total") > held + 1);
}

#[test]
fn new_connections_are_refused_and_those_inside_stay() {
    let broker = TestBroker::configured(&format!("shards = 1\n{}", steps(4)));
    let mut inside = broker.connected("inside", Version::V5);
    wait_for_level(&broker, 4);
    for (version, reason) in [
        (Version::V5, ReasonCode::CONNECTION_RATE_EXCEEDED),
        (Version::V311, ReasonCode::SERVER_UNAVAILABLE),
    ] {
        let mut outside = broker.client(version);
        assert_eq!(outside.connect(&connect("outside", version)), (false, reason));
        outside.expect_closed();
    }
    assert_eq!(broker.counter("refused_overload_total"), 2);
    inside.subscribe("t", QoS::AtLeastOnce);
    let mut publisher = inside;
    publisher.send(&Packet::PingReq);
    publisher.expect(|packet| assert!(matches!(packet, Packet::PingResp)));
}

#[test]
fn memory_of_buffers_climbs_the_ladder_and_all_is_well_when_it_is_free() {
    let broker = TestBroker::configured(
        "shards = 1\n[limits]\nbuffers_bytes_max = 2000000\ninflight_max = 65535\n\
         output_bytes_max = 1500000\n\
         [overload]\nwindow_ms = 20\ncalm_windows = 2\nmemory_slow_accepts_percent = 10\n\
         memory_shed_qos0_percent = 20\nmemory_throttle_percent = 30\n\
         memory_refuse_percent = 40",
    );
    let deaf = subscriber(&broker, "deaf", QoS::AtLeastOnce);
    let flood = Flood::start(&broker, "publisher", "flood", QoS::AtLeastOnce);
    wait_for_level(&broker, 4);
    let answer = broker.client(Version::V5).connect(&connect("outside", Version::V5));
    assert_eq!(answer, (false, ReasonCode::QUOTA_EXCEEDED));
    assert!(broker.counter("buffers_bytes") > 0);
    drop((flood, deaf));
    wait_for_level(&broker, 0);
    broker.connected("inside", Version::V5).ping();
    assert_eq!(broker.counter("buffers_bytes"), 0);
    assert_eq!(broker.counter("ended_slow_readers_total"), 0);
    assert!(broker.counter("overload_changes_total") >= 8);
}

#[test]
fn with_all_buffers_full_a_slow_reader_ends_and_loses_nothing() {
    let broker = TestBroker::configured(&format!(
        "shards = 1\n[limits]\nbuffers_bytes_max = 300000\ninflight_max = 65535\n{}",
        steps(0)
    ));
    let request = || {
        let mut request = connect("deaf", Version::V5);
        request.clean_start = false;
        let properties = ConnectProperties::default();
        request.properties = ConnectProperties { session_expiry_s: Some(600), ..properties };
        request
    };
    let mut deaf = broker.client(Version::V5);
    deaf.connect(&request());
    deaf.subscribe("flood", QoS::AtLeastOnce);
    let mut publisher = broker.connected("publisher", Version::V5);
    let mut sent = 0_u32;
    while broker.counter("ended_slow_readers_total") == 0 {
        let mut payload = vec![0; 3_000];
        payload[..4].copy_from_slice(&sent.to_be_bytes());
        publisher.publish("flood", &payload, QoS::AtLeastOnce, false);
        sent += 1;
        assert!(sent < 20_000, "it is never ended");
    }
    let mut back = broker.client(Version::V5);
    assert_eq!(back.connect(&request()), (true, ReasonCode::SUCCESS));
    for number in 0..sent {
        assert_eq!(back.receive_and_ack().payload[..4], number.to_be_bytes());
    }
}

#[test]
fn with_all_buffers_full_incomplete_packets_are_not_kept() {
    let broker = TestBroker::configured(&format!(
        "shards = 2\n[limits]\nbuffers_bytes_max = 1000000\n{}",
        steps(0)
    ));
    // A PUBLISH of 900,000 bytes that never ends, from each.
    let mut head = vec![0x30];
    head.extend([0xa0, 0xf7, 0x36, 0, 1, b't']);
    let mut clients: Vec<Client> = (0..8)
        .map(|i| {
            let mut client = broker.connected(&format!("client-{i}"), Version::V311);
            let _ = client.stream.write_all(&head);
            client
        })
        .collect();
    let piece = vec![0; 20_000];
    for _ in 0..30 {
        for client in &mut clients {
            let _ = client.stream.write_all(&piece);
        }
    }
    wait_until("some are ended", || broker.counter("ended_incomplete_total") > 0);
    let bytes = broker.counter("buffers_bytes");
    assert!(bytes < 2_000_000, "{bytes}");
    broker.connected("good", Version::V5).ping();
}
