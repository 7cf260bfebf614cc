//! PUBLISH at every QoS: acknowledgements, order, limits, what goes through unaltered.

use tacho_codec::{Ack, Connect, ConnectProperties, Packet, PacketId, Publish, QoS, ReasonCode};
use tacho_codec::{SubscribeOptions, Version};

use tacho_testkit::{ALL_QOS, Client, TestBroker, VERSIONS, connect, each_broker};

fn packet_id(id: u16) -> PacketId {
    PacketId::new(id).unwrap()
}

fn ack(id: u16) -> Ack<'static> {
    Ack::new(packet_id(id), ReasonCode::SUCCESS)
}

// 25
// [MQTT-3.3.4-1] [MQTT-3.8.4-8] [MQTT-4.3.2-4] [MQTT-4.3.3-4] [MQTT-4.3.3-8] [MQTT-4.3.3-11]
// [MQTT-3.1.1: 3.3.4-1] [MQTT-3.1.1: 3.8.4-6] [MQTT-4.3.1-1] [MQTT-4.3.2-2] [MQTT-4.3.3-2]
// [MQTT-3.3.1-2] [MQTT-2.2.1-2]
#[test]
fn delivered_qos_is_the_lower_one_of_publish_and_subscription() {
    each_broker(|broker| {
        for version in VERSIONS {
            let mut publisher = broker.connected("pub", version);
            for subscribed in ALL_QOS {
                let mut subscriber = broker.connected("sub", version);
                subscriber.subscribe("t", subscribed);
                for published in ALL_QOS {
                    publisher.publish("t", b"x", published, false);
                    let message = subscriber.receive_and_ack();
                    assert_eq!((message.qos, message.dup), (published.min(subscribed), false));
                }
            }
        }
    });
}

// 25
// [MQTT-3.3.1-3] [MQTT-4.3.2-2] [MQTT-3.1.1: 3.3.1-3]
#[test]
fn dup_of_the_incoming_packet_is_not_passed_on() {
    let broker = TestBroker::start(1);
    let mut client = broker.connected("c", Version::V311);
    client.subscribe("t", QoS::AtLeastOnce);
    client.send_notation("3a | <t> 0007 'x'");
    let frames = [client.frame().unwrap(), client.frame().unwrap()];
    assert!(frames.iter().any(|f| f[..] == [0x40, 2, 0, 7]), "{frames:02x?}");
    assert!(frames.iter().any(|f| f[0] == 0x32), "{frames:02x?}");
}

// 26
// [MQTT-4.3.3-10] [MQTT-4.3.3-12] [MQTT-3.1.1: 4.3.3-2] [MQTT-4.3.3-8] [MQTT-4.3.3-11]
#[test]
fn qos_2_repeated_before_pubrel_is_one_message_also_after_a_reconnect() {
    each_broker(|broker| {
        let mut subscriber = broker.connected("sub", Version::V5);
        subscriber.subscribe("t", QoS::AtMostOnce);
        let publish = Publish {
            qos: QoS::ExactlyOnce,
            topic: "t",
            packet_id: Some(packet_id(9)),
            ..Publish::default()
        };
        let again = Publish { dup: true, ..publish };
        for version in VERSIONS {
            let mut publisher = broker.durable("pub", version, None);
            for packet in [publish, again] {
                publisher.send(&Packet::Publish(packet));
                assert_eq!(publisher.expect_ack(0x50), packet_id(9));
            }
            drop(publisher);
            let mut publisher = broker.durable("pub", version, None);
            publisher.send(&Packet::Publish(again));
            assert_eq!(publisher.expect_ack(0x50), packet_id(9));
            publisher.send(&Packet::PubRel(ack(9)));
            assert_eq!(publisher.expect_ack(0x70), packet_id(9));
            subscriber.receive();
            // Released: the same identifier is a new message.
            publisher.publish_packet(&publish);
            subscriber.receive();
        }
        subscriber.ping();
    });
}

// 26
// [MQTT-4.3.3-11] [MQTT-3.7.2-1]
#[test]
fn pubrel_for_an_unknown_identifier_is_answered() {
    let broker = TestBroker::start(1);
    let mut old = broker.connected("old", Version::V311);
    old.send(&Packet::PubRel(ack(5)));
    assert_eq!(old.frame().unwrap(), [0x70, 2, 0, 5]);
    let mut new = broker.connected("new", Version::V5);
    new.send(&Packet::PubRel(ack(5)));
    assert_eq!(new.frame().unwrap(), [0x70, 3, 0, 5, 0x92]);
    new.ping();
}

// 27
// [MQTT-4.4.0-2] [MQTT-4.9.0-2]
#[test]
fn pubrec_with_an_error_ends_the_exchange_and_returns_the_credit() {
    each_broker(|broker| {
        let mut subscriber = broker.client(Version::V5);
        let properties = ConnectProperties { receive_maximum: Some(1), ..Default::default() };
        subscriber.connect(&Connect { properties, ..connect("sub", Version::V5) });
        subscriber.subscribe("t", QoS::ExactlyOnce);
        let mut publisher = broker.connected("pub", Version::V5);
        for payload in [b"1", b"2"] {
            publisher.publish("t", payload, QoS::ExactlyOnce, false);
        }
        let first = subscriber.receive();
        let refused = Ack::new(first.packet_id.unwrap(), ReasonCode::UNSPECIFIED_ERROR);
        subscriber.send(&Packet::PubRec(refused));
        assert_eq!(subscriber.receive_and_ack().payload, b"2");
        subscriber.ping();
    });
}

// 28
// [MQTT-3.1.2-5] [MQTT-3.3.1-1] [MQTT-4.3.3-6] [MQTT-4.4.0-1] [MQTT-4.6.0-1] [MQTT-3.1.1: 3.1.2-4]
// [MQTT-3.1.1: 3.3.1-1] [MQTT-3.1.1: 4.4.0-1] [MQTT-3.1.1: 4.6.0-1] [MQTT-4.3.2-3] [MQTT-4.3.3-3]
// [MQTT-4.3.3-4] [MQTT-4.3.3-5]
#[test]
fn resume_sends_again_what_was_unacknowledged_in_order_with_dup() {
    each_broker(|broker| {
        for version in [Version::V311, Version::V5] {
            let mut subscriber = broker.durable("sub", version, None);
            subscriber.subscribe("t", QoS::ExactlyOnce);
            let mut publisher = broker.connected("pub", version);
            let levels = [QoS::ExactlyOnce, QoS::AtLeastOnce, QoS::ExactlyOnce, QoS::AtLeastOnce];
            for (i, qos) in levels.into_iter().enumerate() {
                publisher.publish("t", &[i as u8], qos, false);
            }
            let first: Vec<_> = (0..4).map(|_| subscriber.receive()).collect();
            let released = first[0].packet_id.unwrap();
            subscriber.send(&Packet::PubRec(Ack::new(released, ReasonCode::SUCCESS)));
            assert_eq!(subscriber.expect_ack(0x62), released);
            drop(subscriber);
            let mut subscriber = broker.durable("sub", version, None);
            assert_eq!(subscriber.expect_ack(0x62), released);
            for before in &first[1..] {
                let again = subscriber.receive();
                assert!(again.dup);
                assert_eq!((again.packet_id, &again.payload), (before.packet_id, &before.payload));
            }
            subscriber.ping();
            // Nothing is sent twice on a living connection.
            subscriber.expect_nothing();
            drop(subscriber);
            broker.connected("sub", version).disconnect();
        }
    });
}

// 29
// [MQTT-3.1.2-4]
#[test]
fn clean_start_forgets_what_was_in_flight_both_ways() {
    each_broker(|broker| {
        let mut subscriber = broker.durable("sub", Version::V5, None);
        subscriber.subscribe("t", QoS::ExactlyOnce);
        let mut publisher = broker.durable("pub", Version::V5, None);
        let publish = Publish {
            qos: QoS::ExactlyOnce,
            topic: "t",
            packet_id: Some(packet_id(1)),
            ..Publish::default()
        };
        publisher.send(&Packet::Publish(publish));
        publisher.expect_ack(0x50);
        subscriber.receive();
        drop(publisher);
        drop(subscriber);
        let mut subscriber = broker.connected("sub", Version::V5);
        subscriber.subscribe("t", QoS::ExactlyOnce);
        subscriber.ping();
        // The identifier is as good as new.
        let mut publisher = broker.connected("pub", Version::V5);
        publisher.publish_packet(&publish);
        subscriber.receive_and_ack();
        subscriber.ping();
    });
}

// 30
// [MQTT-4.5.0-1] [MQTT-4.6.0-5] [MQTT-4.6.0-6] [MQTT-3.1.1: 4.5.0-1] [MQTT-3.1.1: 4.6.0-5]
// [MQTT-3.1.1: 4.6.0-6]
#[test]
fn order_is_kept_across_window_queue_and_reconnects() {
    each_broker(|broker| {
        let properties = ConnectProperties {
            receive_maximum: Some(3),
            session_expiry_s: Some(60),
            ..Default::default()
        };
        let connect = Connect { clean_start: false, properties, ..connect("sub", Version::V5) };
        let mut subscriber = broker.client(Version::V5);
        subscriber.connect(&connect);
        subscriber.subscribe("t/+", QoS::AtLeastOnce);
        let mut publisher = broker.connected("pub", Version::V5);
        let mut publish = |i: u8| publisher.publish("t/1", &[i], QoS::AtLeastOnce, false);
        (0..10).for_each(&mut publish);
        let mut got = Vec::new();
        for _ in 0..5 {
            got.push(subscriber.receive_and_ack().payload[0]);
        }
        drop(subscriber);
        (10..20).for_each(&mut publish);
        let mut subscriber = broker.client(Version::V5);
        assert!(subscriber.connect(&connect).0);
        (20..30).for_each(&mut publish);
        while got.last() != Some(&29) {
            got.push(subscriber.receive_and_ack().payload[0]);
        }
        // At least once: a repetition is the only thing out of order.
        got.dedup();
        let mut firsts = Vec::new();
        for i in got {
            if !firsts.contains(&i) {
                firsts.push(i);
            }
        }
        assert_eq!(firsts, (0..30).collect::<Vec<_>>());
    });
}

// 31
// [MQTT-3.3.4-9] [MQTT-3.3.4-10] [MQTT-4.9.0-1] [MQTT-4.9.0-2] [MQTT-4.9.0-3]
#[test]
fn receive_maximum_of_the_client_is_kept_and_nothing_is_lost() {
    each_broker(|broker| {
        let properties = ConnectProperties { receive_maximum: Some(2), ..Default::default() };
        let mut subscriber = broker.client(Version::V5);
        subscriber.connect(&Connect { properties, ..connect("sub", Version::V5) });
        subscriber.subscribe("t", QoS::ExactlyOnce);
        subscriber.subscribe("zero", QoS::AtMostOnce);
        let mut publisher = broker.connected("pub", Version::V5);
        for i in 0..6_u8 {
            let qos = if i % 2 == 0 { QoS::ExactlyOnce } else { QoS::AtLeastOnce };
            publisher.publish("t", &[i], qos, false);
        }
        // QoS 0 is not limited.
        publisher.publish("zero", b"", QoS::AtMostOnce, false);
        let first = subscriber.receive();
        let second = subscriber.receive();
        assert_eq!(subscriber.receive().topic, "zero");
        subscriber.expect_nothing();
        // PUBREC alone returns nothing, PUBCOMP does.
        let id = first.packet_id.unwrap();
        subscriber.send(&Packet::PubRec(Ack::new(id, ReasonCode::SUCCESS)));
        assert_eq!(subscriber.expect_ack(0x62), id);
        subscriber.ping();
        subscriber.send(&Packet::PubComp(Ack::new(id, ReasonCode::SUCCESS)));
        let third = subscriber.receive();
        assert_eq!((second.payload[0], third.payload[0]), (1, 2));
        subscriber.ping();
        let id = second.packet_id.unwrap();
        subscriber.send(&Packet::PubAck(Ack::new(id, ReasonCode::SUCCESS)));
        assert_eq!(subscriber.receive().payload, [3]);
    });
}

// 31
// [MQTT-3.3.4-7]
#[test]
fn exceeding_the_brokers_receive_maximum_is_0x93() {
    let broker = TestBroker::configured("shards = 1\n[limits]\nreceive_maximum = 2");
    let mut client = broker.connected("c", Version::V5);
    for id in 1..=2 {
        client.send_notation(&format!("34 | <t> {id:04x} []"));
        client.expect_ack(0x50);
    }
    client.send_notation("34 | <t> 0003 []");
    assert_eq!(client.expect_disconnect(), ReasonCode::RECEIVE_MAXIMUM_EXCEEDED);
    // 3.1.1 knows no such limit.
    let mut old = broker.connected("old", Version::V311);
    for id in 1..=5 {
        old.send_notation(&format!("34 | <t> {id:04x}"));
        old.expect_ack(0x50);
    }
}

// 32
// [MQTT-3.1.2-24] [MQTT-3.1.2-25]
#[test]
fn messages_above_the_clients_packet_size_are_dropped_and_count_as_done() {
    each_broker(|broker| {
        let properties = ConnectProperties {
            packet_size_max: Some(64),
            receive_maximum: Some(1),
            ..Default::default()
        };
        let mut small = broker.client(Version::V5);
        small.connect(&Connect { properties, ..connect("small", Version::V5) });
        small.subscribe("t", QoS::ExactlyOnce);
        let mut large = broker.connected("large", Version::V5);
        large.subscribe("t", QoS::ExactlyOnce);
        let mut publisher = broker.connected("pub", Version::V5);
        for qos in ALL_QOS {
            publisher.publish("t", &[7; 100], qos, false);
            publisher.publish("t", b"fits", qos, false);
            assert_eq!(small.receive_and_ack().payload, b"fits");
            assert_eq!(large.receive_and_ack().payload, [7; 100]);
            assert_eq!(large.receive_and_ack().payload, b"fits");
        }
        assert_eq!(broker.counter("dropped_too_large_total"), 3);
    });
}

// 32
// [MQTT-3.2.2-15]
#[test]
fn packets_above_the_brokers_size_are_refused_by_their_header() {
    let broker = TestBroker::configured("shards = 1\n[limits]\npacket_size_max = 1000");
    let mut client = broker.connected("c", Version::V5);
    client.subscribe("t", QoS::AtMostOnce);
    // 1000 = 3 of header, 3 of topic, 1 of properties, 993 of payload.
    client.publish("t", &[1; 993], QoS::AtMostOnce, false);
    assert_eq!(client.receive().payload.len(), 993);
    client.send_notation("30 e6 07");
    assert_eq!(client.expect_disconnect(), ReasonCode::PACKET_TOO_LARGE);
}

// 33
// [MQTT-3.3.4-1] [MQTT-3.1.1: 3.3.4-1] [MQTT-4.3.2-4] [MQTT-2.2.1-5]
#[test]
fn publishes_without_subscribers_are_acknowledged() {
    each_broker(|broker| {
        for version in VERSIONS {
            let mut client = broker.connected("c", version);
            for qos in ALL_QOS {
                client.publish("unread/topic", b"x", qos, false);
            }
            client.ping();
        }
    });
}

// 33
// [MQTT-3.4.2-1] [MQTT-3.1.1: 3.3.5-2]
#[test]
fn publishes_to_the_brokers_own_topics_are_refused_but_acknowledged() {
    let broker = TestBroker::start(1);
    let mut client = broker.connected("c", Version::V5);
    client.subscribe("$SYS/#", QoS::AtMostOnce);
    client.send_notation("32 | <$SYS/x> 0001 [] 'x'");
    assert_eq!(client.frame().unwrap(), [0x40, 3, 0, 1, 0x87]);
    client.ping();
    // Older versions have no word for it.
    let mut old = broker.connected("old", Version::V311);
    old.publish("$SYS/x", b"x", QoS::ExactlyOnce, true);
    old.publish("$SYS/x", b"x", QoS::AtLeastOnce, true);
    client.ping();
    assert_eq!(broker.counter("retained"), 0);
}

// 34
// [MQTT-4.7.3-3] [MQTT-3.1.1: 4.7.3-3]
#[test]
fn empty_payload_longest_topic_and_two_hundred_levels_go_through() {
    each_broker(|broker| {
        let mut client = broker.connected("c", Version::V5);
        let longest = "x".repeat(65_535);
        let deep = "/".repeat(200);
        for filter in [&*longest, "/#"] {
            assert_eq!(client.subscribe(filter, QoS::AtMostOnce), ReasonCode::GRANTED_QOS_0);
        }
        for topic in [&longest, &deep] {
            client.publish(topic, b"", QoS::AtMostOnce, false);
            let message = client.receive();
            assert_eq!((&message.topic, message.payload.len()), (topic, 0));
        }
        let slashes = "/".repeat(65_535);
        client.publish(&slashes, b"", QoS::AtMostOnce, false);
        assert_eq!(client.receive().topic, slashes);
    });
}

// 60
#[test]
fn packets_may_share_segments_or_be_spread_over_many() {
    each_broker(|broker| {
        let mut subscriber = broker.connected("sub", Version::V311);
        subscriber.subscribe("t", QoS::AtLeastOnce);
        // CONNECT, a thousand PUBLISHes and DISCONNECT in one write.
        let mut bytes = Vec::new();
        let version = Version::V311;
        Packet::Connect(connect("pub", version)).encode(version, &mut bytes).unwrap();
        for i in 1..=1000_u16 {
            let payload = i.to_be_bytes();
            let publish = Publish {
                qos: QoS::AtLeastOnce,
                topic: "t",
                packet_id: Some(packet_id(i)),
                payload: &payload,
                ..Publish::default()
            };
            Packet::Publish(publish).encode(version, &mut bytes).unwrap();
        }
        broker.client(version).send_raw(&bytes);
        for i in 1..=1000_u16 {
            assert_eq!(subscriber.receive_and_ack().payload, i.to_be_bytes());
        }
        let mut slow = broker.client(version);
        for byte in &bytes[..60] {
            slow.send_raw(&[*byte]);
            std::thread::yield_now();
        }
        assert_eq!(subscriber.receive_and_ack().payload, 1_u16.to_be_bytes());
    });
}

// 60
#[test]
fn publish_then_close_in_one_segment_is_complete() {
    each_broker(|broker| {
        let mut subscriber = broker.connected("sub", Version::V311);
        subscriber.subscribe("t", QoS::ExactlyOnce);
        for end in ["", "e000"] {
            let mut client = broker.client(Version::V311);
            // One write, and the close right behind it.
            client.send_notation(&format!(
                "10 16 <MQTT> 04 02 0000 <last words> \
                 30 06 <t> 'abc' 32 06 <t> 0001 'd' 34 06 <t> 0002 'e' {end}"
            ));
            client.stream.shutdown(std::net::Shutdown::Write).unwrap();
            for expected in ["abc", "d", "e"] {
                assert_eq!(subscriber.receive_and_ack().payload, expected.as_bytes());
            }
        }
    });
}

// 60
// [MQTT-3.6.2-1]
#[test]
fn floods_of_acknowledgements_do_no_harm() {
    let broker = TestBroker::start(1);
    for version in [Version::V311, Version::V5] {
        let mut client = broker.connected("flood", version);
        let mut bytes = Vec::new();
        for id in 1..=5_000_u16 {
            for first in [0x40, 0x50, 0x70] {
                let [high, low] = id.to_be_bytes();
                bytes.extend([first, 2, high, low]);
            }
        }
        let mut reader = Client::over(client.stream.try_clone().unwrap(), version);
        let writer = std::thread::spawn(move || client.send_raw(&bytes));
        // Each PUBREC for nothing is answered with PUBREL, which 5.0 calls an error.
        for _ in 0..5_000 {
            let frame = reader.frame().unwrap();
            assert_eq!(frame[0], 0x62);
            assert_eq!(frame.get(4), (version == Version::V5).then_some(&0x92));
        }
        writer.join().unwrap();
        reader.ping();
    }
}

// 42
#[test]
fn own_messages_come_back_without_no_local() {
    let broker = TestBroker::start(1);
    let mut client = broker.connected("c", Version::V5);
    client.subscribe_with("t", SubscribeOptions::default(), None);
    client.publish("t", b"x", QoS::AtMostOnce, false);
    assert_eq!(client.receive().payload, b"x");
}
