//! Connections that have not sent their CONNECT.

use std::io::Write;

use tacho_codec::{Packet, ReasonCode, Version};
use tacho_testkit::{TestBroker, connect, wait_until};

#[test]
fn silent_connections_make_room_for_those_that_speak() {
    let broker = TestBroker::configured("shards = 2\n[limits]\nhandshakes_max = 50");
    let silent: Vec<_> = (0..200).map(|_| broker.client(Version::V5)).collect();
    for i in 0..50 {
        broker.connected(&format!("client-{i}"), Version::V5).ping();
    }
    wait_until("the broker has seen all", || broker.counter("accepted_total") >= 250);
    assert!(broker.counter("handshakes") <= 50 + 2, "{}", broker.counter("handshakes"));
    assert!(broker.counter("refused_handshakes_total") >= 148);
    assert_eq!(broker.counter("connect_timeouts_total"), 0);
    drop(silent);
    wait_until("they are gone", || broker.counter("handshakes") == 0);
}

#[test]
fn a_connect_larger_than_its_limit_is_not_kept() {
    let broker = TestBroker::configured("shards = 1\n[limits]\nconnect_size_max = 1000");
    // By its claim alone.
    let mut claims = broker.client(Version::V5);
    claims.send_raw(&[0x10, 0xff, 0xff, 0x03]);
    claims.expect_closed();
    let name = "x".repeat(1_000);
    let mut long = broker.client(Version::V5);
    long.send(&Packet::Connect(connect(&name, Version::V5)));
    long.expect_closed();
    // Afterwards packets may be larger.
    let mut client = broker.connected("fits", Version::V5);
    client.publish("t", &[0; 100_000], tacho_codec::QoS::AtLeastOnce, false);
}

#[test]
fn half_a_connect_times_out() {
    let broker = TestBroker::configured("shards = 2\n[limits]\nconnect_timeout_s = 1");
    let mut bytes = Vec::new();
    let packet = Packet::Connect(connect("slow", Version::V311));
    packet.encode(Version::V311, &mut bytes).unwrap();
    let mut half = broker.client(Version::V311);
    half.stream.write_all(&bytes[..bytes.len() - 1]).unwrap();
    half.expect_closed();
    assert_eq!(broker.counter("connect_timeouts_total"), 1);
    let mut whole = broker.client(Version::V311);
    assert_eq!(whole.connect(&connect("whole", Version::V311)).1, ReasonCode::SUCCESS);
}
