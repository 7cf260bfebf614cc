//! Replays of many retained messages: at the receiver's pace, complete, in order.

use std::collections::BTreeSet;

use tacho_codec::{QoS, RetainHandling, SubscribeOptions, Version};

use tacho_testkit::{Client, TestBroker, VERSIONS, wait_until};

/// Brokers of one shard and of several with these limits.
fn each_limited(limits: &str, test: impl Fn(&TestBroker)) {
    for shards in [1, 3] {
        test(&TestBroker::configured(&format!("shards = {shards}\n[limits]\n{limits}")));
    }
}

/// Retains this number of messages on `r/0`, `r/1`, and so on.
fn retain(broker: &TestBroker, count: usize, payload_len: usize) -> Client {
    let mut publisher = broker.connected("pub", Version::V5);
    for i in 0..count {
        publisher.publish(&format!("r/{i}"), &vec![7; payload_len], QoS::AtLeastOnce, true);
    }
    wait_until("all are kept", || broker.counter("retained") == count as u64);
    publisher
}

fn options(qos: QoS, retain_handling: RetainHandling) -> SubscribeOptions {
    SubscribeOptions { qos, retain_handling, ..Default::default() }
}

// 30, 37, 58
// [MQTT-3.3.1-9]
#[test]
fn a_large_burst_of_qos_0_waits_for_its_reader_and_leaves_room_for_live_messages() {
    each_limited("output_bytes_max = 262144", |broker| {
        let mut publisher = retain(broker, 300, 60_000);
        let mut client = broker.connected("c", Version::V5);
        client.subscribe("live", QoS::AtMostOnce);
        client.subscribe("r/+", QoS::AtMostOnce);
        // The client has not read anything of 18 MB yet, more than sockets hold.
        for _ in 0..5 {
            publisher.publish("live", b"now", QoS::AtMostOnce, false);
        }
        publisher.ping();
        let (mut topics, mut live) = (BTreeSet::new(), 0);
        while topics.len() < 300 || live < 5 {
            let message = client.receive();
            if message.topic == "live" {
                live += 1;
            } else {
                assert!(message.retain && message.payload.len() == 60_000);
                assert!(topics.insert(message.topic.clone()), "{} came twice", message.topic);
            }
        }
        client.ping();
        assert_eq!(broker.counter("dropped_output_full_total"), 0);
    });
}

// 31, 37, 58
// [MQTT-3.3.1-9] [MQTT-3.3.4-9]
#[test]
fn a_replay_never_overflows_a_short_queue() {
    each_limited("session_queue_len_max = 4", |broker| {
        retain(broker, 200, 10);
        for qos in [QoS::AtLeastOnce, QoS::ExactlyOnce] {
            let mut client = broker.durable(&format!("c-{qos:?}"), Version::V5, Some(1));
            client.subscribe("r/+", qos);
            let mut topics = BTreeSet::new();
            for _ in 0..200 {
                let message = client.receive_and_ack();
                assert!(topics.insert(message.topic.clone()), "{} came twice", message.topic);
            }
            client.ping();
        }
        assert_eq!(broker.counter("dropped_queue_full_total"), 0);
    });
}

// 28, 37
#[test]
fn a_replay_goes_on_after_a_reconnect() {
    each_limited("session_queue_len_max = 4", |broker| {
        retain(broker, 100, 10);
        let mut client = broker.durable("c", Version::V5, Some(2));
        client.subscribe("r/+", QoS::AtLeastOnce);
        let mut topics = BTreeSet::new();
        for _ in 0..30 {
            topics.insert(client.receive_and_ack().topic);
        }
        drop(client);
        let mut client = broker.durable("c", Version::V5, Some(2));
        while topics.len() < 100 {
            topics.insert(client.receive_and_ack().topic);
        }
        client.ping();
    });
}

// 37, 41
// [MQTT-3.8.4-3] [MQTT-3.8.4-4]
#[test]
fn a_replay_under_way_follows_the_subscriptions_new_options() {
    for retain_handling in [RetainHandling::IfNew, RetainHandling::Never] {
        each_limited("session_queue_len_max = 4", |broker| {
            retain(broker, 50, 10);
            let mut client = broker.durable("c", Version::V5, Some(1));
            let always = options(QoS::AtLeastOnce, RetainHandling::Always);
            client.subscribe_with("r/+", always, Some(1));
            let mut got = vec![client.receive()];
            client.subscribe_with("r/+", options(QoS::ExactlyOnce, retain_handling), Some(2));
            let first = got[0].packet_id.unwrap();
            let ack = tacho_codec::Ack::new(first, tacho_codec::ReasonCode::SUCCESS);
            client.send(&tacho_codec::Packet::PubAck(ack));
            got.extend((1..50).map(|_| client.receive_and_ack()));
            client.ping();
            let topics: BTreeSet<_> = got.iter().map(|message| &message.topic).collect();
            assert_eq!(topics.len(), 50, "nothing lost, nothing twice");
            let ids: Vec<_> = got.iter().map(|message| message.subscription_ids[0]).collect();
            assert!(ids.is_sorted() && ids[0] == 1, "{ids:?}");
            // In flight and in the queue were at most five.
            assert!(ids.iter().filter(|&&id| id == 1).count() <= 5, "{ids:?}");
            broker.connected("c", Version::V5).disconnect();
        });
    }
}

// 37, 44
// [MQTT-3.10.4-2]
#[test]
fn unsubscribing_ends_a_replay() {
    each_limited("session_queue_len_max = 4", |broker| {
        retain(broker, 100, 10);
        let mut client = broker.durable("c", Version::V5, Some(1));
        client.subscribe("r/+", QoS::AtLeastOnce);
        let mut message = client.receive();
        client.unsubscribe("r/+");
        // What had begun goes on: one in flight, a few in the queue.
        let mut got = 1;
        loop {
            let ack =
                tacho_codec::Ack::new(message.packet_id.unwrap(), tacho_codec::ReasonCode::SUCCESS);
            client.send(&tacho_codec::Packet::PubAck(ack));
            client.send(&tacho_codec::Packet::PingReq);
            let frame = client.frame().expect("open");
            if frame[0] == 0xd0 {
                break;
            }
            got += 1;
            assert!(got <= 5, "{got} of the replay came after UNSUBACK");
            let id_at = 4 + usize::from(frame[3]);
            let id = u16::from_be_bytes([frame[id_at], frame[id_at + 1]]);
            message.packet_id = tacho_codec::PacketId::new(id);
            assert_eq!(client.frame().expect("open")[0], 0xd0);
        }
    });
}

// 35, 42
// [MQTT-3.8.3-3]
#[test]
fn no_local_holds_for_retained_messages_and_later_sessions_of_the_client() {
    each_limited("", |broker| {
        let mut other = broker.connected("other", Version::V5);
        other.publish("r/other", b"x", QoS::AtLeastOnce, true);
        let mut client = broker.connected("c", Version::V5);
        client.publish("r/own", b"x", QoS::AtLeastOnce, true);
        client.disconnect();
        let mut client = broker.connected("c", Version::V5);
        let no_local = SubscribeOptions { no_local: true, ..Default::default() };
        client.subscribe_with("r/+", no_local, None);
        assert_eq!(client.receive().topic, "r/other");
        client.expect_nothing();
        other.subscribe_with("r/+", no_local, None);
        assert_eq!(other.receive().topic, "r/own");
        other.expect_nothing();
    });
}

// 36, 37
// [MQTT-3.3.1-8] [MQTT-3.1.1: 3.3.1-12]
#[test]
fn messages_without_the_flag_neither_store_nor_remove() {
    each_limited("", |broker| {
        retain(broker, 1, 3);
        for version in VERSIONS {
            let mut publisher = broker.connected("pub", version);
            for payload in [&b"not kept"[..], b""] {
                publisher.publish("r/0", payload, QoS::AtLeastOnce, false);
                publisher.publish("r/other", payload, QoS::AtLeastOnce, false);
            }
        }
        let mut client = broker.connected("c", Version::V5);
        client.subscribe("r/#", QoS::AtMostOnce);
        let message = client.receive();
        assert_eq!((message.topic.as_str(), message.payload.as_slice()), ("r/0", &[7; 3][..]));
        client.expect_nothing();
    });
}
