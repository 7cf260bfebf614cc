//! Limits on connections, and the broker's own end.

use tacho_codec::{Connect, ConnectProperties, Packet, QoS, ReasonCode, Version};

use tacho_testkit::{TestBroker, VERSIONS, connect, wait_until};

// 59
#[test]
fn stopping_tells_v5_clients_0x8b_and_closes_the_others() {
    for shards in [1, 3] {
        let mut broker = TestBroker::start(shards);
        let mut clients: Vec<_> = (0..9)
            .map(|i| broker.connected(&format!("c{i}"), VERSIONS[i % VERSIONS.len()]))
            .collect();
        let mut opening = broker.client(Version::V5);
        wait_until("it is accepted", || broker.counter("connections") == 10);
        broker.begin_stop();
        for client in &mut clients {
            if client.version == Version::V5 {
                assert_eq!(client.expect_disconnect(), ReasonCode::SERVER_SHUTTING_DOWN);
            } else {
                client.expect_closed();
            }
        }
        opening.expect_closed();
        drop((clients, opening));
        broker.stop();
    }
}

// 59
#[test]
fn stopping_does_not_wait_for_clients_that_do_not_read() {
    let mut broker = TestBroker::start(1);
    let mut deaf = broker.connected("deaf", Version::V5);
    deaf.subscribe("t", QoS::AtMostOnce);
    let mut publisher = broker.connected("pub", Version::V5);
    for _ in 0..100 {
        publisher.publish("t", &[0; 100_000], QoS::AtMostOnce, false);
    }
    publisher.ping();
    broker.stop();
}

// 59
// [MQTT-3.2.2-6] [MQTT-3.2.2-7]
// [MQTT-3.1.1: 3.2.2-4] [MQTT-3.1.1: 3.2.2-5]
#[test]
fn connections_above_the_limit_are_told_so_and_the_others_go_on() {
    for shards in [1, 3] {
        let broker =
            TestBroker::configured(&format!("shards = {shards}\n[limits]\nconnections_max = 5"));
        let mut inside: Vec<_> =
            (0..5).map(|i| broker.connected(&format!("in{i}"), Version::V5)).collect();
        for i in 0..20 {
            let (version, code) = [(Version::V5, 0x97), (Version::V311, 3)][i % 2];
            let mut outside = broker.client(version);
            let properties =
                ConnectProperties { session_expiry_s: None, ..ConnectProperties::default() };
            outside.send(&Packet::Connect(Connect { properties, ..connect("out", version) }));
            assert_eq!(outside.frame().unwrap()[3], code);
            outside.expect_closed();
        }
        for client in &mut inside {
            client.ping();
        }
        inside.pop();
        wait_until("a place is free", || broker.counter("connections") == 4);
        broker.connected("new", Version::V311).ping();
    }
}
