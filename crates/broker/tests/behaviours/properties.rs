//! Properties both ways: aliases, what is forwarded.

use std::num::NonZeroU16;

use tacho_codec::{Connect, ConnectProperties, Publish, PublishProperties, QoS, ReasonCode};
use tacho_codec::{UserPropertiesBuf, Version};

use tacho_testkit::{Client, TestBroker, connect, each_broker};

fn publish_alias(client: &mut Client, topic: &str, alias: u16, payload: &[u8]) {
    let topic_alias = NonZeroU16::new(alias);
    let properties = PublishProperties { topic_alias, ..Default::default() };
    client.publish_packet(&Publish { topic, payload, properties, ..Publish::default() });
}

// 46
// [MQTT-3.3.2-7] [MQTT-3.3.2-12]
#[test]
fn aliases_of_a_client_are_resolved_remapped_and_forgotten_with_the_connection() {
    each_broker(|broker| {
        let mut subscriber = broker.connected("sub", Version::V5);
        subscriber.subscribe("#", QoS::AtMostOnce);
        let keep = ConnectProperties { session_expiry_s: Some(60), ..Default::default() };
        let keep = Connect { clean_start: false, properties: keep, ..connect("pub", Version::V5) };
        let mut publisher = broker.client(Version::V5);
        publisher.connect(&keep);
        for (topic, alias, resolved) in [
            ("a", 1, "a"),
            ("b", 32, "b"),
            ("", 1, "a"),
            ("", 32, "b"),
            ("c", 1, "c"),
            ("", 1, "c"),
            ("a", 2, "a"),
        ] {
            publish_alias(&mut publisher, topic, alias, b"x");
            let message = subscriber.receive();
            assert_eq!((message.topic.as_str(), message.topic_alias), (resolved, None));
        }
        drop(publisher);
        let mut publisher = broker.client(Version::V5);
        publisher.connect(&keep);
        publish_alias(&mut publisher, "", 1, b"x");
        assert_eq!(publisher.expect_disconnect(), ReasonCode::PROTOCOL_ERROR);
        subscriber.ping();
    });
}

// 46
// [MQTT-3.3.2-9] [MQTT-3.2.2-17]
#[test]
fn alias_out_of_range_is_0x94() {
    let broker = TestBroker::start(1);
    let mut client = broker.connected("c", Version::V5);
    publish_alias(&mut client, "a", 33, b"x");
    assert_eq!(client.expect_disconnect(), ReasonCode::TOPIC_ALIAS_INVALID);
}

// 26, 46
#[test]
fn a_repeated_qos_2_publish_defines_its_alias() {
    each_broker(|broker| {
        let mut subscriber = broker.connected("sub", Version::V5);
        subscriber.subscribe("a", QoS::AtMostOnce);
        let keep = ConnectProperties { session_expiry_s: Some(60), ..Default::default() };
        let keep = Connect { clean_start: false, properties: keep, ..connect("pub", Version::V5) };
        let mut publisher = broker.client(Version::V5);
        publisher.connect(&keep);
        publisher.send_notation("34 | <a> 0001 [23 0001] 'once'");
        publisher.expect_ack(0x50);
        assert_eq!(subscriber.receive().payload, b"once");
        drop(publisher);
        let mut publisher = broker.client(Version::V5);
        publisher.connect(&keep);
        publisher.send_notation("3c | <a> 0001 [23 0001] 'once'");
        publisher.expect_ack(0x50);
        publish_alias(&mut publisher, "", 1, b"more");
        assert_eq!(subscriber.receive().payload, b"more");
    });
}

// 46
#[test]
fn retained_message_is_stored_under_the_resolved_topic() {
    each_broker(|broker| {
        let mut publisher = broker.connected("pub", Version::V5);
        publish_alias(&mut publisher, "a/b", 1, b"x");
        let properties =
            PublishProperties { topic_alias: NonZeroU16::new(1), ..Default::default() };
        let publish = Publish { retain: true, payload: b"kept", properties, ..Publish::default() };
        publisher.publish_packet(&publish);
        publisher.ping();
        let mut late = broker.connected("late", Version::V311);
        late.subscribe("a/b", QoS::AtMostOnce);
        assert_eq!(late.receive().payload, b"kept");
    });
}

// 47
// [MQTT-3.1.2-26] [MQTT-3.1.2-27] [MQTT-3.3.2-11]
#[test]
fn a_client_without_alias_maximum_gets_none_and_one_with_it_none_above() {
    each_broker(|broker| {
        let mut without = broker.connected("without", Version::V5);
        without.subscribe("#", QoS::AtMostOnce);
        let properties = ConnectProperties { topic_alias_maximum: Some(2), ..Default::default() };
        let mut with = broker.client(Version::V5);
        with.connect(&Connect { properties, ..connect("with", Version::V5) });
        with.subscribe("#", QoS::AtMostOnce);
        let mut publisher = broker.connected("pub", Version::V5);
        let mut known: [String; 3] = Default::default();
        for i in 0..40 {
            let topic = format!("topic/{}", i % 5);
            publisher.publish(&topic, b"x", QoS::AtMostOnce, false);
            let message = without.receive();
            assert_eq!((&message.topic, message.topic_alias), (&topic, None));
            let message = with.receive();
            let alias = usize::from(message.topic_alias.unwrap_or(0));
            if !message.topic.is_empty() {
                known[alias].clone_from(&message.topic);
            }
            assert_eq!(known[alias], topic, "{message:?}");
        }
    });
}

// 39, 50, 51
// [MQTT-3.3.2-4] [MQTT-3.3.2-15] [MQTT-3.3.2-16] [MQTT-3.3.2-17] [MQTT-3.3.2-18] [MQTT-3.3.2-20]
#[test]
fn publish_properties_are_forwarded_unaltered() {
    each_broker(|broker| {
        let mut user = UserPropertiesBuf::new();
        for (name, value) in [("k", "2"), ("k", "1"), ("", "")] {
            user.push(name, value).unwrap();
        }
        let properties = PublishProperties {
            payload_format_utf8: Some(true),
            message_expiry_s: Some(u32::MAX),
            response_topic: Some("answers/here"),
            correlation_data: Some(&[0, 1, 0xff]),
            content_type: Some("application/x"),
            user_properties: user.view(),
            ..Default::default()
        };
        let mut subscriber = broker.connected("sub", Version::V5);
        subscriber.subscribe("t", QoS::ExactlyOnce);
        let mut old = broker.connected("old", Version::V31);
        old.subscribe("t", QoS::ExactlyOnce);
        let mut publisher = broker.connected("pub", Version::V5);
        // The payload is not UTF-8, whatever the flag says: forwarded as it is.
        let payload = &[0xff, 0xfe];
        publisher.publish_packet(&Publish {
            topic: "t",
            payload,
            properties,
            ..Publish::default()
        });
        let message = subscriber.receive();
        assert_eq!(message.payload, payload);
        assert_eq!(message.payload_format_utf8, Some(true));
        assert!(message.message_expiry_s.is_some_and(|s| s >= u32::MAX - 10));
        assert_eq!(message.response_topic.as_deref(), Some("answers/here"));
        assert_eq!(message.correlation_data.as_deref(), Some(&[0, 1, 0xff][..]));
        assert_eq!(message.content_type.as_deref(), Some("application/x"));
        let pairs: Vec<_> =
            message.user_properties.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(pairs, [("k", "2"), ("k", "1"), ("", "")]);
        assert_eq!(old.receive().payload, payload);
    });
}

// 49
// [MQTT-3.1.2-29] [MQTT-3.1.2-28]
#[test]
fn no_reason_strings_or_user_properties_are_sent_unasked() {
    let broker = TestBroker::start(1);
    let properties = ConnectProperties {
        request_problem_information: Some(false),
        request_response_information: Some(true),
        ..Default::default()
    };
    let mut client = broker.client(Version::V5);
    client.connect(&Connect { properties, ..connect("c", Version::V5) });
    let deep = format!("{}#", "+/".repeat(256));
    client.send_subscribe(&deep, QoS::AtMostOnce);
    assert_eq!(client.frame().unwrap()[4..], [0, 0x97]);
    client.send_notation("32 | <unread> 0001 []");
    let puback = client.frame().unwrap();
    assert!(puback.len() <= 5, "{puback:02x?}");
}
