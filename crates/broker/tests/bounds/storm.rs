//! Many connect at once: all get in, and those inside go on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tacho_codec::{Packet, QoS, ReasonCode, Version};
use tacho_testkit::{Client, TestBroker, connect, wait_until};

const CLIENTS: usize = 2_000;
const THREADS: usize = 8;

/// Opens everything and says CONNECT before it looks at an answer.
fn storm(broker: &TestBroker, version: Version) -> Vec<Client> {
    let mut clients = std::thread::scope(|scope| {
        let part = |thread: usize| {
            move || {
                let mut clients: Vec<Client> =
                    (0..CLIENTS / THREADS).map(|_| broker.client(version)).collect();
                for (i, client) in clients.iter_mut().enumerate() {
                    let name = format!("client-{thread}-{i}");
                    client.send(&Packet::Connect(connect(&name, version)));
                }
                clients
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(part(thread))).collect();
        threads.into_iter().flat_map(|t| t.join().expect("opens its part")).collect::<Vec<_>>()
    });
    for client in &mut clients {
        client.expect(|packet| match packet {
            Packet::ConnAck(connack) => assert_eq!(connack.reason, ReasonCode::SUCCESS),
            other => panic!("expected CONNACK, got {other:?}"),
        });
    }
    clients
}

#[test]
fn two_thousand_connect_at_once_and_again_in_their_own_place() {
    for shards in [1, 2] {
        let broker = TestBroker::start(shards);
        let mut reader = broker.connected("reader", Version::V5);
        reader.subscribe("beat", QoS::AtLeastOnce);
        let mut publisher = broker.connected("publisher", Version::V5);
        let (over, beats) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    publisher.publish("beat", b"x", QoS::AtLeastOnce, false);
                    reader.receive_and_ack();
                    beats.fetch_add(1, Ordering::Relaxed);
                }
            });
            let mut first = storm(&broker, Version::V5);
            assert_eq!(broker.counter("takeovers_total"), 0);
            let before = beats.load(Ordering::Relaxed);
            // All of them come back at once while their old connections still stand.
            let mut second = storm(&broker, Version::V5);
            assert!(beats.load(Ordering::Relaxed) > before, "others go on meanwhile");
            assert_eq!(broker.counter("takeovers_total"), CLIENTS as u64);
            for client in &mut first {
                assert_eq!(client.expect_disconnect(), ReasonCode::SESSION_TAKEN_OVER);
            }
            second[CLIENTS / 2].ping();
            over.store(true, Ordering::Relaxed);
            drop((first, second));
        });
        for counter in ["refused_connections_total", "refused_handshakes_total"] {
            assert_eq!(broker.counter(counter), 0, "{counter}");
        }
        wait_until("all are gone", || broker.counter("connections") <= 2);
        assert_eq!(broker.counter("handshakes"), 0);
    }
}
