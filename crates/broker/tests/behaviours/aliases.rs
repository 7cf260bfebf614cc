//! Topic aliases that the broker uses towards its clients.

use tacho_codec::{
    Ack, Connect, ConnectProperties, Direction, Packet, Publish, QoS, ReasonCode, Version,
    split_frame,
};

use tacho_testkit::{ALL_QOS, Client, TestBroker, VERSIONS, connect, each_broker, wait_until};

const LONG: &str = "building/7/floor/3/room/12/sensors/temperature/celsius";

/// A connected 5.0 client with this Topic Alias Maximum.
fn with_aliases(broker: &TestBroker, client_id: &str, topic_alias_maximum: u16) -> Client {
    let properties = ConnectProperties {
        topic_alias_maximum: Some(topic_alias_maximum),
        session_expiry_s: Some(60),
        ..Default::default()
    };
    let mut client = broker.client(Version::V5);
    client.connect(&Connect { clean_start: false, properties, ..connect(client_id, Version::V5) });
    client
}

/// The aliases as the client learnt them on its connection.
#[derive(Default)]
struct Known(std::collections::HashMap<u16, String>);

/// A message and the bytes it took.
struct Arrived {
    topic: String,
    payload: Vec<u8>,
    alias: Option<u16>,
    named: bool,
    packet_len: usize,
}

impl Known {
    /// Receives and acknowledges one message; its topic is what the client makes of it.
    fn receive(&mut self, client: &mut Client) -> Arrived {
        let bytes = client.frame().expect("the broker closed");
        let frame = split_frame(&bytes, u32::MAX).unwrap().unwrap();
        let packet = Packet::decode(&frame, client.version, Direction::ToClient).unwrap();
        let Packet::Publish(Publish { topic, qos, packet_id, payload, properties, .. }) = packet
        else {
            panic!("expected PUBLISH, got {packet:?}");
        };
        let alias = properties.topic_alias.map(u16::from);
        if let Some(alias) = alias.filter(|_| !topic.is_empty()) {
            self.0.insert(alias, topic.to_owned());
        }
        let named = !topic.is_empty();
        let topic = if named { topic.to_owned() } else { self.0[&alias.unwrap()].clone() };
        let (payload, packet_len) = (payload.to_vec(), bytes.len());
        if let Some(packet_id) = packet_id {
            // A PUBREC with an error ends the exchange at once.
            client.send(&if qos == QoS::AtLeastOnce {
                Packet::PubAck(Ack::new(packet_id, ReasonCode::SUCCESS))
            } else {
                Packet::PubRec(Ack::new(packet_id, ReasonCode::UNSPECIFIED_ERROR))
            });
        }
        Arrived { topic, payload, alias, named, packet_len }
    }
}

// 47
// [MQTT-3.1.2-27] [MQTT-3.3.2-11]
#[test]
fn a_repeated_topic_is_sent_once_and_saves_its_length_from_then_on() {
    each_broker(|broker| {
        let mut publisher = broker.connected("pub", Version::V5);
        for qos in ALL_QOS {
            let mut with = with_aliases(broker, &format!("with-{qos:?}"), 3);
            let mut without = broker.connected(&format!("without-{qos:?}"), Version::V5);
            with.subscribe(LONG, qos);
            without.subscribe(LONG, qos);
            let (mut known, mut none) = (Known::default(), Known::default());
            let before = broker.counter("publishes_aliased_out_total");
            let (mut short_len, mut long_len) = (0, 0);
            for i in 0..50 {
                publisher.publish(LONG, &[i], qos, false);
                let message = known.receive(&mut with);
                assert_eq!((&*message.topic, &message.payload), (LONG, &vec![i]));
                assert_eq!((message.alias, message.named), (Some(1), i == 0));
                short_len += message.packet_len;
                let message = none.receive(&mut without);
                assert_eq!((message.alias, message.named), (None, true));
                long_len += message.packet_len;
            }
            assert_eq!(long_len - short_len, 49 * (LONG.len() - 3) - 3);
            assert_eq!(broker.counter("publishes_aliased_out_total") - before, 49);
            with.unsubscribe(LONG);
        }
    });
}

// 47
#[test]
fn more_topics_than_aliases_are_never_mistaken_for_each_other() {
    each_broker(|broker| {
        let mut client = with_aliases(broker, "c", 4);
        client.subscribe("#", QoS::AtMostOnce);
        let mut publisher = broker.connected("pub", Version::V5);
        let (mut known, mut random) = (Known::default(), fastrand::Rng::with_seed(47));
        let (mut defined, mut used) = (0, 0);
        for i in 0..2_000_u32 {
            // A few topics are frequent, which ones drifts; others come once.
            let topic = match random.u32(..10) {
                0 => format!("once/in/a/lifetime/{i}"),
                1..4 => format!("now/and/then/{}", random.u32(..12)),
                _ => format!("most/of/the/time/{}", i / 500 * 2 + random.u32(..2)),
            };
            publisher.publish(&topic, &i.to_be_bytes(), QoS::AtMostOnce, false);
            let message = known.receive(&mut client);
            assert_eq!((message.topic, message.payload), (topic, i.to_be_bytes().to_vec()));
            assert!(message.alias.is_none_or(|alias| (1..=4).contains(&alias)));
            defined += usize::from(message.alias.is_some() && message.named);
            used += usize::from(!message.named);
        }
        assert!(defined > 8, "aliases are given on: {defined}");
        assert!(used > 5 * defined && used > 500, "they pay: {used} uses, {defined} definitions");
    });
}

// 47, 32
// [MQTT-3.1.2-24] [MQTT-3.1.2-25]
#[test]
fn a_message_dropped_for_its_size_defines_no_alias() {
    each_broker(|broker| {
        let properties = ConnectProperties {
            topic_alias_maximum: Some(5),
            packet_size_max: Some(100),
            ..Default::default()
        };
        let mut client = broker.client(Version::V5);
        client.connect(&Connect { properties, ..connect("c", Version::V5) });
        client.subscribe(LONG, QoS::ExactlyOnce);
        let mut publisher = broker.connected("pub", Version::V5);
        let mut known = Known::default();
        for qos in ALL_QOS {
            publisher.publish(LONG, &[0; 200], qos, false);
        }
        publisher.publish(LONG, b"fits", QoS::AtLeastOnce, false);
        let first = known.receive(&mut client);
        assert_eq!((first.alias, first.named, &first.payload[..]), (Some(1), true, &b"fits"[..]));
        publisher.publish(LONG, b"too", QoS::AtMostOnce, false);
        assert!(!known.receive(&mut client).named);
        assert_eq!(broker.counter("dropped_too_large_total"), 3);
    });
}

// 47, 32
// [MQTT-3.1.2-24]
#[test]
fn a_definition_must_fit_and_an_alias_makes_room() {
    each_broker(|broker| {
        // Header 2, topic 2 and its length, property length 1.
        let overhead = 5 + LONG.len();
        let packet_size_max = 120;
        let properties = ConnectProperties {
            topic_alias_maximum: Some(5),
            packet_size_max: Some(packet_size_max),
            ..Default::default()
        };
        let mut client = broker.client(Version::V5);
        client.connect(&Connect { properties, ..connect("c", Version::V5) });
        client.subscribe(LONG, QoS::AtMostOnce);
        let mut publisher = broker.connected("pub", Version::V5);
        let mut known = Known::default();
        let exact = packet_size_max as usize - overhead;
        for payload_len in [exact, exact - 2] {
            publisher.publish(LONG, &vec![1; payload_len], QoS::AtMostOnce, false);
            let message = known.receive(&mut client);
            assert_eq!((message.alias, message.named), (None, true), "no room for three bytes");
        }
        publisher.publish(LONG, &vec![1; exact - 3], QoS::AtMostOnce, false);
        let message = known.receive(&mut client);
        assert_eq!((message.alias, message.packet_len), (Some(1), 120));
        // Without its topic a larger message fits.
        publisher.publish(LONG, &vec![1; exact + LONG.len() - 3], QoS::AtMostOnce, false);
        let message = known.receive(&mut client);
        assert_eq!((message.named, message.packet_len), (false, 120));
        publisher.publish(LONG, &vec![1; exact + LONG.len() - 2], QoS::AtMostOnce, false);
        wait_until("it is dropped", || broker.counter("dropped_too_large_total") == 1);
        client.ping();
    });
}

// 47, 28
// [MQTT-3.3.2-7] [MQTT-4.4.0-1]
#[test]
fn retransmissions_carry_the_topic_on_the_new_connection() {
    each_broker(|broker| {
        for qos in [QoS::AtLeastOnce, QoS::ExactlyOnce] {
            let mut client = with_aliases(broker, "c", 5);
            client.subscribe(LONG, qos);
            let mut publisher = broker.connected("pub", Version::V5);
            for i in 0..3 {
                publisher.publish(LONG, &[i], qos, false);
            }
            let topics: Vec<_> = (0..3).map(|_| client.receive().topic).collect();
            assert_eq!(topics, [LONG, "", ""]);
            drop(client);
            let mut client = with_aliases(broker, "c", 5);
            let mut known = Known::default();
            for i in 0..3 {
                let message = known.receive(&mut client);
                assert_eq!((&*message.topic, &message.payload[..]), (LONG, &[i][..]));
                assert_eq!(message.named, i == 0);
            }
            drop(client);
            // A client that takes none any more gets none, whatever it took before.
            publisher.publish(LONG, b"x", qos, false);
            let mut client = with_aliases(broker, "c", 0);
            assert_eq!(Known::default().receive(&mut client).alias, None);
            client.unsubscribe(LONG);
            client.disconnect();
        }
    });
}

// 47
#[test]
fn the_brokers_own_limit_on_aliases_counts_too() {
    for (limit, expected) in [(0, 0), (1, 1), (100, 3)] {
        let broker = TestBroker::configured(&format!(
            "shards = 1\n[limits]\noutgoing_topic_aliases_max = {limit}"
        ));
        let mut client = with_aliases(&broker, "c", 3);
        client.subscribe("#", QoS::AtMostOnce);
        let mut publisher = broker.connected("pub", Version::V5);
        let mut known = Known::default();
        for i in 0..20 {
            publisher.publish(&format!("some/topic/{}", i % 4), b"", QoS::AtMostOnce, false);
            known.receive(&mut client);
        }
        assert_eq!(known.0.len(), expected);
        assert!(known.0.keys().all(|&alias| usize::from(alias) <= expected));
    }
}

// 47
#[test]
fn older_versions_know_no_aliases() {
    let broker = TestBroker::start(1);
    let mut publisher = broker.connected("pub", Version::V5);
    for version in &VERSIONS[..2] {
        let mut client = broker.connected("c", *version);
        client.subscribe(LONG, QoS::AtMostOnce);
        for _ in 0..2 {
            publisher.publish(LONG, b"x", QoS::AtMostOnce, false);
            assert_eq!(client.receive().topic, LONG);
        }
    }
}
