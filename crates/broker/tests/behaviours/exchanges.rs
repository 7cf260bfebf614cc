//! The handshakes of QoS 1 and 2 where they are repeated, refused or late.

use std::collections::BTreeSet;
use std::time::Duration;

use tacho_codec::{Ack, Packet, PacketId, Publish, PublishProperties, QoS, ReasonCode, Version};

use tacho_testkit::{TestBroker, VERSIONS, each_broker, wait_until};

fn publish(qos: QoS, topic: &str, id: u16) -> Publish<'_> {
    Publish { qos, topic, packet_id: PacketId::new(id), payload: b"x", ..Publish::default() }
}

fn ok(id: PacketId) -> Ack<'static> {
    Ack::new(id, ReasonCode::SUCCESS)
}

// 26
// [MQTT-4.3.2-5] [MQTT-4.3.2-4] [MQTT-3.1.1: 4.3.2-2]
#[test]
fn qos_1_after_its_puback_is_a_new_message_whatever_its_dup() {
    each_broker(|broker| {
        for version in VERSIONS {
            let mut client = broker.connected("c", version);
            client.subscribe("t", QoS::AtMostOnce);
            for dup in [false, true, true] {
                let publish = Publish { dup, ..publish(QoS::AtLeastOnce, "t", 7) };
                client.send(&Packet::Publish(publish));
                // The delivery and PUBACK, in whichever order.
                let frames = [client.frame().unwrap(), client.frame().unwrap()];
                assert!(frames.iter().any(|frame| frame[..] == [0x40, 2, 0, 7]), "{frames:02x?}");
                assert!(frames.iter().any(|frame| frame[0] == 0x30), "{frames:02x?}");
            }
        }
    });
}

// 26, 33
// [MQTT-4.3.3-9] [MQTT-3.5.2-1]
#[test]
fn a_refused_qos_2_publish_leaves_its_identifier_free() {
    each_broker(|broker| {
        let mut subscriber = broker.connected("sub", Version::V5);
        subscriber.subscribe("t", QoS::AtMostOnce);
        let mut client = broker.connected("c", Version::V5);
        for _ in 0..2 {
            client.send(&Packet::Publish(publish(QoS::ExactlyOnce, "$SYS/x", 9)));
            assert_eq!(client.frame().unwrap(), [0x50, 3, 0, 9, 0x87]);
        }
        client.publish_packet(&publish(QoS::ExactlyOnce, "t", 9));
        assert_eq!(subscriber.receive().payload, b"x");
        subscriber.ping();
    });
}

// 26, 38
// [MQTT-4.3.3-13]
#[test]
fn the_handshake_goes_on_when_its_message_has_expired() {
    each_broker(|broker| {
        let mut subscriber = broker.durable("sub", Version::V5, Some(10));
        subscriber.subscribe("t", QoS::ExactlyOnce);
        subscriber.disconnect();
        let mut client = broker.connected("c", Version::V5);
        let properties = PublishProperties { message_expiry_s: Some(1), ..Default::default() };
        let mortal = Publish { properties, ..publish(QoS::ExactlyOnce, "t", 3) };
        client.send(&Packet::Publish(mortal));
        client.expect_ack(0x50);
        // Past its expiry interval. Nothing tells of it before it would be delivered.
        std::thread::sleep(Duration::from_millis(1050));
        client.send(&Packet::PubRel(ok(mortal.packet_id.unwrap())));
        assert_eq!(client.frame().unwrap(), [0x70, 2, 0, 3]);
        let mut subscriber = broker.durable("sub", Version::V5, Some(10));
        subscriber.ping();
        assert_eq!(broker.counter("dropped_expired_total"), 1);
    });
}

// 28, 38
// [MQTT-4.3.3-7] [MQTT-3.3.2-5]
#[test]
fn queued_messages_expire_and_sent_ones_do_not() {
    each_broker(|broker| {
        for qos in [QoS::AtLeastOnce, QoS::ExactlyOnce] {
            let mut subscriber = broker.durable("sub", Version::V5, Some(1));
            subscriber.subscribe("t", qos);
            let mut client = broker.connected("c", Version::V5);
            let properties = PublishProperties { message_expiry_s: Some(1), ..Default::default() };
            for _ in 0..3 {
                let packet_id = Some(client.id());
                client.publish_packet(&Publish { properties, packet_id, ..publish(qos, "t", 1) });
            }
            let sent = subscriber.receive();
            drop(subscriber);
            let expired = broker.counter("dropped_expired_total");
            // Past their expiry interval. Nothing tells of it before they would be delivered.
            std::thread::sleep(Duration::from_millis(1050));
            client.publish("t", b"young", qos, false);
            let mut subscriber = broker.durable("sub", Version::V5, Some(1));
            let again = subscriber.receive_and_ack();
            assert_eq!((again.packet_id, again.dup), (sent.packet_id, true));
            assert_eq!(subscriber.receive_and_ack().payload, b"young");
            subscriber.ping();
            assert_eq!(broker.counter("dropped_expired_total") - expired, 2);
            subscriber.unsubscribe("t");
            subscriber.disconnect();
        }
    });
}

// 28, 31
// [MQTT-2.2.1-4] [MQTT-4.3.2-1] [MQTT-4.3.3-1] [MQTT-3.1.1: 2.3.1-4]
#[test]
fn identifiers_in_flight_are_never_given_out_again() {
    let broker = TestBroker::start(1);
    for version in VERSIONS {
        let mut subscriber = broker.connected("sub", version);
        subscriber.subscribe("t", QoS::AtLeastOnce);
        let mut publisher = broker.connected("pub", version);
        let mut held = BTreeSet::new();
        for i in 0..200_u16 {
            publisher.publish("t", &i.to_be_bytes(), QoS::AtLeastOnce, false);
            let packet_id = subscriber.receive().packet_id.unwrap();
            assert!(held.insert(packet_id.get()), "{packet_id:?} is still in flight");
            if i % 3 > 0 {
                // Not the oldest one, so that the front of the window stays.
                let packet_id = held.iter().nth(held.len() / 2).copied().unwrap();
                held.remove(&packet_id);
                subscriber.send(&Packet::PubAck(ok(PacketId::new(packet_id).unwrap())));
            }
        }
    }
}

// 31
// [MQTT-3.3.4-10] [MQTT-4.9.0-3] [MQTT-3.3.4-8]
#[test]
fn a_full_window_delays_nothing_but_publishes_of_qos_1_and_2() {
    each_broker(|broker| {
        let mut client = broker.durable("c", Version::V5, Some(1));
        client.subscribe("t", QoS::ExactlyOnce);
        let mut publisher = broker.connected("pub", Version::V5);
        for _ in 0..3 {
            publisher.publish("t", b"x", QoS::ExactlyOnce, false);
        }
        let first = client.receive();
        client.subscribe("other", QoS::AtMostOnce);
        for qos in [QoS::AtLeastOnce, QoS::ExactlyOnce] {
            client.publish("unread", b"", qos, false);
        }
        publisher.publish("other", b"now", QoS::AtMostOnce, false);
        assert_eq!(client.receive().payload, b"now");
        client.unsubscribe("other");
        client.ping();
        client.send(&Packet::PubRec(ok(first.packet_id.unwrap())));
        assert_eq!(Some(client.expect_ack(0x62)), first.packet_id);
    });
}

// 27, 28
// [MQTT-4.4.0-2]
#[test]
fn a_puback_with_an_error_ends_the_exchange_too() {
    each_broker(|broker| {
        let mut client = broker.durable("c", Version::V5, Some(1));
        client.subscribe("t", QoS::AtLeastOnce);
        let mut publisher = broker.connected("pub", Version::V5);
        for payload in [b"1", b"2"] {
            publisher.publish("t", payload, QoS::AtLeastOnce, false);
        }
        let refused = client.receive().packet_id.unwrap();
        client.send(&Packet::PubAck(Ack::new(refused, ReasonCode::QUOTA_EXCEEDED)));
        let second = client.receive();
        assert_eq!(second.payload, b"2");
        drop(client);
        let mut client = broker.durable("c", Version::V5, Some(1));
        assert_eq!(client.receive_and_ack().packet_id, second.packet_id);
        client.ping();
        client.unsubscribe("t");
    });
}

// 27, 45
// [MQTT-4.8.2-6]
#[test]
fn a_message_refused_by_a_member_goes_to_no_other_member() {
    each_broker(|broker| {
        for qos in [QoS::AtLeastOnce, QoS::ExactlyOnce] {
            let mut client = broker.connected("refuses", Version::V5);
            client.subscribe("$share/g/t", qos);
            let mut publisher = broker.connected("pub", Version::V5);
            publisher.publish("t", b"x", qos, false);
            let packet_id = client.receive().packet_id.unwrap();
            let mut other = broker.connected("other", Version::V5);
            other.subscribe("$share/g/t", qos);
            let refused = Ack::new(packet_id, ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR);
            client.send(&if qos == QoS::AtLeastOnce {
                Packet::PubAck(refused)
            } else {
                Packet::PubRec(refused)
            });
            client.ping();
            client.disconnect();
            wait_until("the session is gone", || broker.counter("sessions") == 2);
            other.expect_nothing();
            other.disconnect();
        }
    });
}
