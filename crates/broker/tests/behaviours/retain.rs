//! Retained messages.

use tacho_codec::{
    Publish, PublishProperties, QoS, RetainHandling, SubscribeOptions, UserPropertiesBuf, Version,
};

use tacho_testkit::{ALL_QOS, each_broker, wait_until};

fn handling(retain_handling: RetainHandling) -> SubscribeOptions {
    SubscribeOptions { qos: QoS::ExactlyOnce, retain_handling, ..SubscribeOptions::default() }
}

// 35
// [MQTT-3.3.1-6] [MQTT-3.3.1-7] [MQTT-3.1.1: 3.3.1-10] [MQTT-3.1.1: 3.3.1-11]
#[test]
fn empty_payload_deletes_and_is_delivered_live() {
    each_broker(|broker| {
        let mut publisher = broker.connected("pub", Version::V311);
        let mut live = broker.connected("live", Version::V311);
        live.subscribe("r", QoS::AtLeastOnce);
        for payload in [&b"kept"[..], b""] {
            publisher.publish("r", payload, QoS::AtLeastOnce, true);
            let message = live.receive_and_ack();
            assert_eq!((message.payload.as_slice(), message.retain), (payload, false));
        }
        let mut late = broker.connected("late", Version::V311);
        late.subscribe("r", QoS::AtLeastOnce);
        late.expect_nothing();
        wait_until("the store is empty", || broker.counter("retained") == 0);
        assert_eq!(broker.counter("retained_bytes"), 0);
    });
}

// 35, 36
// [MQTT-3.3.1-5] [MQTT-3.3.1-9] [MQTT-3.1.1: 3.3.1-5] [MQTT-3.1.1: 3.3.1-6] [MQTT-3.1.1: 3.3.1-7]
// [MQTT-3.1.1: 3.3.1-8]
#[test]
fn retained_qos_is_kept_and_the_last_message_counts() {
    each_broker(|broker| {
        let mut publisher = broker.connected("pub", Version::V5);
        for published in [QoS::ExactlyOnce, QoS::AtLeastOnce, QoS::AtMostOnce] {
            let payload = [published as u8];
            publisher.publish("r", &payload, published, true);
            publisher.ping();
            for subscribed in ALL_QOS {
                let mut late = broker.connected("late", Version::V5);
                late.subscribe("r", subscribed);
                let message = late.receive_and_ack();
                assert!(message.retain);
                assert_eq!(
                    (message.payload, message.qos),
                    (payload.into(), published.min(subscribed))
                );
                late.ping();
            }
        }
    });
}

// 36
// [MQTT-3.3.1-12] [MQTT-3.3.1-13] [MQTT-3.1.1: 3.3.1-9]
#[test]
fn live_messages_carry_the_flag_only_as_published() {
    each_broker(|broker| {
        let mut publisher = broker.connected("pub", Version::V5);
        let mut plain = broker.connected("plain", Version::V5);
        plain.subscribe("r", QoS::AtMostOnce);
        let mut published = broker.connected("as-published", Version::V5);
        let options = SubscribeOptions { retain_as_published: true, ..Default::default() };
        published.subscribe_with("r", options, None);
        for retain in [true, false] {
            publisher.publish("r", b"x", QoS::AtMostOnce, retain);
            assert!(!plain.receive().retain);
            assert_eq!(published.receive().retain, retain);
        }
    });
}

// 37
// [MQTT-3.3.1-9] [MQTT-3.3.1-10] [MQTT-3.3.1-11]
#[test]
fn retain_handling_decides_on_replay() {
    each_broker(|broker| {
        let mut publisher = broker.connected("pub", Version::V5);
        let mut client = broker.connected("c", Version::V5);
        publisher.publish("r", b"x", QoS::AtLeastOnce, true);
        client.subscribe_with("r", handling(RetainHandling::Never), None);
        client.expect_nothing();
        client.subscribe_with("r", handling(RetainHandling::IfNew), None);
        client.expect_nothing();
        client.unsubscribe("r");
        client.subscribe_with("r", handling(RetainHandling::IfNew), None);
        assert!(client.receive_and_ack().retain);
        client.subscribe_with("r", handling(RetainHandling::Always), None);
        assert!(client.receive_and_ack().retain);
        client.ping();
    });
}

// 37
// [MQTT-3.8.4-4] [MQTT-3.1.1: 3.8.4-3]
#[test]
fn subscribing_again_replays_also_what_came_live() {
    each_broker(|broker| {
        let mut publisher = broker.connected("pub", Version::V311);
        let mut client = broker.connected("c", Version::V311);
        for filter in ["r", "r/#"] {
            client.subscribe(filter, QoS::AtLeastOnce);
            publisher.publish("r", b"x", QoS::AtLeastOnce, true);
            assert!(!client.receive_and_ack().retain);
            for _ in 0..3 {
                client.subscribe(filter, QoS::AtLeastOnce);
                assert!(client.receive_and_ack().retain);
            }
            client.unsubscribe(filter);
            publisher.publish("r", b"", QoS::AtLeastOnce, true);
            client.ping();
        }
    });
}

// 35, 37. An acknowledgement once could overtake the message on its way to another shard.
#[test]
fn a_subscription_after_the_acknowledgement_replays_the_acknowledged_message() {
    each_broker(|broker| {
        // On every shard there are some of both.
        let mut publishers: Vec<_> =
            (0..4).map(|i| broker.connected(&format!("pub-{i}"), Version::V311)).collect();
        let mut clients: Vec<_> =
            (0..8).map(|i| broker.connected(&format!("c-{i}"), Version::V311)).collect();
        for round in 0..100_u32 {
            let topic = format!("r/{}", round % 5);
            let publisher = &mut publishers[round as usize % 4];
            publisher.publish(&topic, &round.to_be_bytes(), QoS::AtLeastOnce, true);
            for client in &mut clients {
                client.subscribe(&topic, QoS::AtMostOnce);
                let message = client.receive();
                assert_eq!((message.payload, message.retain), (round.to_be_bytes().into(), true));
                client.unsubscribe(&topic);
            }
        }
    });
}

// 37
#[test]
fn every_subscriber_of_one_filter_gets_its_replay() {
    each_broker(|broker| {
        let mut publisher = broker.connected("pub", Version::V311);
        let mut first = broker.connected("first", Version::V311);
        first.subscribe("r/+", QoS::AtMostOnce);
        publisher.publish("r/1", b"x", QoS::AtLeastOnce, true);
        assert!(!first.receive().retain);
        // On every shard there is one that shares the filter with an earlier subscriber.
        for i in 0..8 {
            let mut late = broker.connected(&format!("late-{i}"), Version::V311);
            late.subscribe("r/+", QoS::AtMostOnce);
            assert!(late.receive().retain);
            late.ping();
        }
    });
}

// 37
#[test]
fn shared_subscriptions_get_no_replay() {
    each_broker(|broker| {
        let mut publisher = broker.connected("pub", Version::V5);
        publisher.publish("r", b"x", QoS::AtLeastOnce, true);
        let mut client = broker.connected("c", Version::V5);
        client.subscribe("$share/g/r", QoS::AtLeastOnce);
        client.expect_nothing();
    });
}

// 30, 37
// [MQTT-4.6.0-5]
#[test]
fn replay_and_live_messages_of_a_topic_keep_their_order() {
    each_broker(|broker| {
        let mut publisher = broker.connected("pub", Version::V5);
        for topic in 0..100 {
            publisher.publish(&format!("r/{topic}"), &0_u32.to_be_bytes(), QoS::AtLeastOnce, true);
        }
        let writer = std::thread::spawn(move || {
            for value in 1..=20_u32 {
                for topic in 0..100 {
                    let topic = format!("r/{topic}");
                    publisher.publish(&topic, &value.to_be_bytes(), QoS::AtMostOnce, true);
                }
                publisher.ping();
            }
        });
        let mut last = std::collections::HashMap::new();
        let mut client = broker.connected("c", Version::V5);
        let options = SubscribeOptions { qos: QoS::AtLeastOnce, ..Default::default() };
        client.send(&tacho_codec::Packet::Subscribe(tacho_codec::Subscribe {
            packet_id: tacho_codec::PacketId::new(1).unwrap(),
            subscription_id: None,
            filters: vec![tacho_codec::SubscribeFilter { filter: "r/#", options }],
            user_properties: Default::default(),
        }));
        let mut suback = false;
        while !suback || last.len() < 100 || last.values().any(|&value| value != 20) {
            let bytes = client.frame().expect("open");
            if bytes[0] == 0x90 {
                suback = true;
                continue;
            }
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let start = text.find("r/").expect("a topic");
            let topic: String = text[start..].chars().take_while(|c| !c.is_control()).collect();
            let value = u32::from_be_bytes(bytes[bytes.len() - 4..].try_into().unwrap());
            let before = last.insert(topic.clone(), value);
            assert!(before.is_none_or(|before| before <= value), "{topic}: {before:?}, {value}");
            if bytes[0] & 0x06 != 0 {
                let id_at = start + topic.len();
                client.send_raw(&[0x40, 2, bytes[id_at], bytes[id_at + 1]]);
            }
        }
        writer.join().unwrap();
    });
}

// 38
// [MQTT-3.3.2-6] [MQTT-3.3.2-5]
#[test]
fn retained_messages_expire_and_tell_what_is_left() {
    each_broker(|broker| {
        let mut publisher = broker.connected("pub", Version::V5);
        for (topic, message_expiry_s) in
            [("r/short", Some(2)), ("r/long", Some(100)), ("r/no", None)]
        {
            let properties = PublishProperties { message_expiry_s, ..Default::default() };
            publisher.publish_packet(&Publish {
                topic,
                retain: true,
                payload: b"x",
                properties,
                ..Publish::default()
            });
        }
        let mut client = broker.connected("early", Version::V5);
        client.subscribe("r/short", QoS::AtMostOnce);
        assert!(matches!(client.receive().message_expiry_s, Some(1..=2)));
        // Past its expiry interval: it must not be sent, whether it is removed by now or not.
        std::thread::sleep(std::time::Duration::from_millis(2050));
        let mut client = broker.connected("late", Version::V5);
        client.subscribe("r/+", QoS::AtMostOnce);
        let mut got = [client.receive(), client.receive()];
        got.sort_by(|a, b| a.topic.cmp(&b.topic));
        assert!((1..100).contains(&got[0].message_expiry_s.unwrap()), "{got:?}");
        assert_eq!((got[1].topic.as_str(), got[1].message_expiry_s), ("r/no", None));
        client.ping();
    });
}

// 39
// [MQTT-3.3.2-4] [MQTT-3.3.2-15] [MQTT-3.3.2-16] [MQTT-3.3.2-17] [MQTT-3.3.2-18] [MQTT-3.3.2-20]
#[test]
fn retained_properties_are_replayed_unaltered_and_the_alias_is_not() {
    each_broker(|broker| {
        let mut user = UserPropertiesBuf::new();
        for (name, value) in [("b", "1"), ("a", "2"), ("b", "0")] {
            user.push(name, value).unwrap();
        }
        let properties = PublishProperties {
            payload_format_utf8: Some(true),
            topic_alias: std::num::NonZeroU16::new(1),
            response_topic: Some("answers"),
            correlation_data: Some(&[0, 255]),
            content_type: Some("text/plain"),
            user_properties: user.view(),
            ..Default::default()
        };
        let mut publisher = broker.connected("pub", Version::V5);
        let publish =
            Publish { topic: "r", retain: true, payload: b"x", properties, ..Publish::default() };
        publisher.publish_packet(&publish);
        publisher.ping();
        let mut client = broker.connected("c", Version::V5);
        client.subscribe("r", QoS::AtMostOnce);
        let message = client.receive();
        assert_eq!(message.payload_format_utf8, Some(true));
        assert_eq!(message.response_topic.as_deref(), Some("answers"));
        assert_eq!(message.correlation_data.as_deref(), Some(&[0, 255][..]));
        assert_eq!(message.content_type.as_deref(), Some("text/plain"));
        let pairs: Vec<_> =
            message.user_properties.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(pairs, [("b", "1"), ("a", "2"), ("b", "0")]);
        assert_eq!(message.topic_alias, None);
        // An older client gets the message without them.
        let mut old = broker.connected("old", Version::V311);
        old.subscribe("r", QoS::AtMostOnce);
        assert_eq!(old.receive().payload, b"x");
    });
}

// 58
#[test]
fn retained_messages_are_bounded_and_known_topics_stay_writable() {
    let broker = tacho_testkit::TestBroker::configured(
        "shards = 1\n[limits]\nretained_count_max = 2\nretained_bytes_max = 1000",
    );
    let mut client = broker.connected("c", Version::V5);
    for (topic, payload_len, retained) in
        [("a", 10, 1), ("b", 10, 2), ("c", 10, 2), ("b", 20, 2), ("a", 2000, 1), ("a", 0, 1)]
    {
        client.publish(topic, &vec![7; payload_len], QoS::AtLeastOnce, true);
        assert_eq!(broker.counter("retained"), retained, "{topic}, {payload_len}");
    }
    assert_eq!(broker.counter("retained_refused_total"), 2);
    client.subscribe("#", QoS::AtMostOnce);
    assert_eq!(client.receive().payload.len(), 20);
}

// 58
#[test]
fn retained_limits_are_those_of_the_broker_not_of_a_shard() {
    let broker =
        tacho_testkit::TestBroker::configured("shards = 3\n[limits]\nretained_count_max = 10");
    let mut client = broker.connected("c", Version::V5);
    for i in 0..40 {
        client.publish(&format!("t/{i}"), b"x", QoS::AtLeastOnce, true);
    }
    let counted = || (broker.counter("retained"), broker.counter("retained_refused_total"));
    wait_until("ten are retained", || counted() == (10, 30));
    for i in 0..40 {
        client.publish(&format!("t/{i}"), b"", QoS::AtLeastOnce, true);
    }
    wait_until("there is room again", || broker.counter("retained") == 0);
    for i in 0..10 {
        client.publish(&format!("u/{i}"), b"x", QoS::AtLeastOnce, true);
    }
    wait_until("ten others are retained", || counted() == (10, 30));
}

// 38
#[test]
fn expired_retained_messages_are_freed_without_a_request() {
    each_broker(|broker| {
        let mut publisher = broker.connected("pub", Version::V5);
        for i in 0..60 {
            let topic = &format!("t/{i}");
            let message_expiry_s = (i % 2 == 0).then_some(1);
            let properties = PublishProperties { message_expiry_s, ..Default::default() };
            let (retain, payload) = (true, b"x");
            let publish = Publish { topic, retain, payload, properties, ..Publish::default() };
            publisher.publish_packet(&publish);
        }
        publisher.ping();
        let counted = || (broker.counter("retained"), broker.counter("retained_expired_total"));
        wait_until("half of them have expired", || counted() == (30, 30));
        // The odd ones: topic and payload.
        let bytes = |i: usize| format!("t/{i}").len() as u64 + 1;
        let kept: u64 = (1..60).step_by(2).map(bytes).sum();
        assert_eq!(broker.counter("retained_bytes"), kept);
    });
}

// 35. A deletion once could be undone by an older message that came later from another shard.
// [MQTT-3.3.1-5] [MQTT-3.3.1-6] [MQTT-3.3.1-7]
#[test]
fn the_last_publisher_wins_on_whichever_shard() {
    each_broker(|broker| {
        let mut publishers: Vec<_> =
            (0..6).map(|i| broker.connected(&format!("pub-{i}"), Version::V311)).collect();
        let mut last = std::collections::BTreeMap::new();
        for round in 0..300_u32 {
            let topic = format!("t/{}", round % 7);
            let payload = if round % 3 == 0 { Vec::new() } else { round.to_be_bytes().to_vec() };
            // The one before may still be on its way from another shard, as QoS 0.
            let early = &mut publishers[(round as usize * 5) % 6];
            early.send_retained(&topic, b"early");
            early.ping();
            let late = &mut publishers[(round as usize * 5 + 1) % 6];
            late.publish(&topic, &payload, QoS::AtLeastOnce, true);
            last.insert(topic, payload);
        }
        last.retain(|_, payload| !payload.is_empty());
        let mut client = broker.connected("c", Version::V311);
        client.subscribe("t/#", QoS::AtMostOnce);
        for _ in 0..last.len() {
            let message = client.receive();
            assert_eq!(last.remove(&message.topic), Some(message.payload), "{}", message.topic);
        }
        client.ping();
    });
}
