//! The client's Maximum Packet Size, for messages and answers.

use tacho_codec::{
    Ack, Connect, ConnectProperties, Packet, PacketId, QoS, ReasonCode, Subscribe, SubscribeFilter,
    SubscribeOptions, UnsubAck, Unsubscribe, Version,
};

use tacho_testkit::{ALL_QOS, Client, TestBroker, connect, each_broker, wait_until};

/// A 5.0 client with a session that outlives connections and these limits.
fn limited(
    broker: &TestBroker,
    client_id: &str,
    packet_size_max: Option<u32>,
    receive_maximum: u16,
) -> Client {
    let properties = ConnectProperties {
        packet_size_max,
        receive_maximum: Some(receive_maximum),
        session_expiry_s: Some(60),
        ..Default::default()
    };
    let mut client = broker.client(Version::V5);
    client.connect(&Connect { clean_start: false, properties, ..connect(client_id, Version::V5) });
    client
}

// 32
// [MQTT-3.1.2-24]
#[test]
fn a_message_of_exactly_the_maximum_passes_and_one_byte_more_does_not() {
    each_broker(|broker| {
        let mut publisher = broker.connected("pub", Version::V5);
        for (id, qos) in ALL_QOS.into_iter().enumerate() {
            for (subscription_id, id_len) in [(None, 0), (Some(1), 2), (Some(128), 3)] {
                let mut client = limited(broker, &format!("c{id}-{id_len}"), Some(64), 10);
                let options = SubscribeOptions { qos, ..Default::default() };
                client.subscribe_with("t", options, subscription_id);
                let dropped = broker.counter("dropped_too_large_total");
                let packet_id_len = if qos == QoS::AtMostOnce { 0 } else { 2 };
                let fits = 64 - 2 - 3 - packet_id_len - 1 - id_len;
                publisher.publish("t", &vec![0; fits + 1], qos, false);
                publisher.publish("t", &vec![1; fits], qos, false);
                assert_eq!(client.receive_and_ack().payload, vec![1; fits]);
                assert_eq!(broker.counter("dropped_too_large_total") - dropped, 1);
                client.unsubscribe("t");
            }
        }
    });
}

// 32, 31
// [MQTT-3.1.2-25] [MQTT-3.3.4-9]
#[test]
fn a_large_message_in_the_queue_or_in_flight_is_done_with_after_a_resume_with_less_room() {
    each_broker(|broker| {
        for qos in [QoS::AtLeastOnce, QoS::ExactlyOnce] {
            let mut client = limited(broker, "c", None, 2);
            client.subscribe("t", qos);
            let mut publisher = broker.connected("pub", Version::V5);
            // Two in flight, one of them large; the others wait.
            let large = [9; 200];
            for payload in [&large[..], b"1", &large, b"2", &large, &large, b"3", b"4"] {
                publisher.publish("t", payload, qos, false);
            }
            let first = client.receive();
            assert_eq!((first.payload.len(), client.receive().payload), (200, b"1".to_vec()));
            drop(client);
            let dropped = broker.counter("dropped_too_large_total");
            let mut client = limited(broker, "c", Some(100), 2);
            let message = client.receive();
            assert_eq!((&message.payload[..], message.dup), (&b"1"[..], true));
            // What was given up is unknown now; its late answer does no harm.
            if qos == QoS::AtLeastOnce {
                client
                    .send(&Packet::PubAck(Ack::new(first.packet_id.unwrap(), ReasonCode::SUCCESS)));
            }
            let second = client.receive();
            assert_eq!((&second.payload[..], second.dup), (&b"2"[..], false));
            client.ping();
            for packet_id in [message.packet_id.unwrap(), second.packet_id.unwrap()] {
                let refused = Ack::new(packet_id, ReasonCode::UNSPECIFIED_ERROR);
                client.send(&if qos == QoS::AtLeastOnce {
                    Packet::PubAck(refused)
                } else {
                    Packet::PubRec(refused)
                });
            }
            for expected in [b"3", b"4"] {
                assert_eq!(client.receive_and_ack().payload, expected);
            }
            client.ping();
            assert_eq!(broker.counter("dropped_too_large_total") - dropped, 4);
            client.unsubscribe("t");
            client.disconnect();
            broker.connected("c", Version::V5).disconnect();
        }
    });
}

// 32
#[test]
fn older_versions_have_no_such_limit() {
    let broker = TestBroker::start(1);
    limited(&broker, "c", Some(64), 10).disconnect();
    let mut old = broker.client(Version::V311);
    old.connect(&Connect { clean_start: false, ..connect("c", Version::V311) });
    old.subscribe("t", QoS::AtMostOnce);
    old.publish("t", &[0; 1000], QoS::AtMostOnce, false);
    assert_eq!(old.receive().payload.len(), 1000);
}

/// SUBSCRIBE with this number of filters that have too many levels.
fn subscribe_to_too_much(client: &mut Client, count: usize) {
    let deep = format!("{}#", "+/".repeat(256));
    let filter = SubscribeFilter { filter: &deep, options: SubscribeOptions::default() };
    client.send(&Packet::Subscribe(Subscribe {
        packet_id: PacketId::new(1).unwrap(),
        subscription_id: None,
        filters: vec![filter; count],
        user_properties: Default::default(),
    }));
}

// 32, 49
// [MQTT-3.9.2-1] [MQTT-3.1.2-29]
#[test]
fn suback_explains_if_it_may_and_if_there_is_room() {
    let broker = TestBroker::start(1);
    let reason_string = |client: &mut Client, count| {
        subscribe_to_too_much(client, count);
        client.expect(|packet| match packet {
            Packet::SubAck(suback) => {
                assert_eq!(suback.reasons, vec![ReasonCode::QUOTA_EXCEEDED; count]);
                suback.reason_string.map(str::to_owned)
            }
            other => panic!("{other:?}"),
        })
    };
    let mut client = broker.connected("c", Version::V5);
    assert!(reason_string(&mut client, 1).is_some_and(|text| text.contains("levels")));
    let properties =
        ConnectProperties { request_problem_information: Some(false), ..Default::default() };
    let mut silent = broker.client(Version::V5);
    silent.connect(&Connect { properties, ..connect("silent", Version::V5) });
    assert_eq!(reason_string(&mut silent, 1), None);
    // Room for 20 codes and no text: 2 of header, 2 of identifier, 1 of properties.
    let mut small = limited(&broker, "small", Some(25), 10);
    assert_eq!(reason_string(&mut small, 20), None);
    subscribe_to_too_much(&mut small, 21);
    assert_eq!(small.expect_disconnect(), ReasonCode::PACKET_TOO_LARGE);
}

// 32
// [MQTT-3.1.2-24]
#[test]
fn an_unsuback_that_does_not_fit_ends_the_connection() {
    each_broker(|broker| {
        let unsubscribe = |client: &mut Client, count| {
            client.send(&Packet::Unsubscribe(Unsubscribe {
                packet_id: PacketId::new(1).unwrap(),
                filters: vec!["never"; count],
                user_properties: Default::default(),
            }));
        };
        let mut small = limited(broker, "small", Some(25), 10);
        unsubscribe(&mut small, 20);
        small.expect(|packet| match packet {
            Packet::UnsubAck(UnsubAck { reasons, .. }) => assert_eq!(reasons.len(), 20),
            other => panic!("{other:?}"),
        });
        unsubscribe(&mut small, 21);
        assert_eq!(small.expect_disconnect(), ReasonCode::PACKET_TOO_LARGE);
    });
}

// 32, 39
#[test]
fn a_retained_message_too_large_for_a_client_leaves_room_for_the_others() {
    each_broker(|broker| {
        let mut publisher = broker.connected("pub", Version::V5);
        for (topic, payload_len) in [("r/1", 10), ("r/2", 500), ("r/3", 10)] {
            publisher.publish(topic, &vec![7; payload_len], QoS::AtLeastOnce, true);
        }
        let mut client = limited(broker, "c", Some(100), 1);
        client.subscribe("r/+", QoS::AtLeastOnce);
        for _ in 0..2 {
            assert_eq!(client.receive_and_ack().payload.len(), 10);
        }
        wait_until("one is dropped", || broker.counter("dropped_too_large_total") == 1);
        client.ping();
    });
}

// 32, 48
// [MQTT-3.1.2-24]
#[test]
fn a_client_too_small_for_connack_is_refused_and_ends_no_session() {
    each_broker(|broker| {
        let mut kept = limited(broker, "same", None, 10);
        let connect_with = |packet_size_max| {
            let properties =
                ConnectProperties { packet_size_max: Some(packet_size_max), ..Default::default() };
            let mut client = broker.client(Version::V5);
            client.send(&Packet::Connect(Connect { properties, ..connect("same", Version::V5) }));
            client
        };
        // A CONNACK with the broker's limits is larger than that; a refusal is not.
        for packet_size_max in [5, 10] {
            let mut client = connect_with(packet_size_max);
            assert_eq!(client.frame().unwrap(), [0x20, 3, 0, 0x95, 0]);
            client.expect_closed();
        }
        connect_with(4).expect_closed();
        kept.ping();
        let mut client = connect_with(20);
        assert!(client.frame().unwrap().len() <= 20);
        client.ping();
        assert_eq!(kept.expect_disconnect(), ReasonCode::SESSION_TAKEN_OVER);
    });
}

// 32, 45
// [MQTT-3.1.2-25]
#[test]
fn another_member_of_the_group_gets_what_is_too_large_for_one() {
    for (shards, strategy) in
        [(1, "least_inflight"), (3, "least_inflight"), (3, "random"), (2, "round_robin")]
    {
        let broker = TestBroker::configured(&format!(
            "shards = {shards}\nshared_subscription_strategy = '{strategy}'"
        ));
        for qos in ALL_QOS {
            // On all shards, so that the one with the large member often is not the first choice.
            let mut small: Vec<Client> =
                (0..6).map(|i| limited(&broker, &format!("small-{i}"), Some(64), 1_000)).collect();
            let mut large = limited(&broker, "large", None, 1_000);
            let mut publisher = broker.connected("pub", Version::V5);
            for client in small.iter_mut().chain([&mut large]) {
                client.subscribe("$share/g/t", qos);
            }
            for _ in 0..20 {
                publisher.publish("t", &[7; 100], qos, false);
            }
            for _ in 0..20 {
                assert_eq!(large.receive().payload.len(), 100);
            }
            assert_eq!(broker.counter("dropped_too_large_total"), 0, "{strategy}, {shards} shards");
            small.iter_mut().for_each(Client::ping);
            for client in small.into_iter().chain([large]) {
                client.disconnect();
            }
            for name in (0..6).map(|i| format!("small-{i}")).chain(["large".to_owned()]) {
                broker.connected(&name, Version::V5).disconnect();
            }
        }
    }
}

// 32, 45
// [MQTT-3.1.2-25]
#[test]
fn a_message_too_large_for_all_members_is_dropped_once_and_leaves_no_trace() {
    let filter = "$share/g/t";
    for shards in [1, 3] {
        let broker = TestBroker::start(shards);
        let mut members: Vec<Client> =
            (0..6).map(|i| limited(&broker, &format!("small-{i}"), Some(64), 2)).collect();
        for member in &mut members {
            member.subscribe(filter, QoS::AtLeastOnce);
        }
        let mut publisher = broker.connected("pub", Version::V5);
        for count in 1..=10 {
            publisher.publish("t", &[7; 100], QoS::AtLeastOnce, false);
            wait_until("it is dropped", || broker.counter("dropped_too_large_total") == count);
        }
        // All room is there still, and the group works.
        wait_until("no room is lost", || {
            let group = broker.shared(filter).unwrap();
            (group.free_credit, group.inflight, group.waiting) == (12, 0, 0)
        });
        for _ in 0..12 {
            publisher.publish("t", b"fits", QoS::AtLeastOnce, false);
        }
        wait_until("every member got two", || broker.shared(filter).unwrap().inflight == 12);
        assert_eq!(broker.counter("dropped_too_large_total"), 10);
    }
}

// 32, 45
#[test]
fn a_large_message_waits_in_the_session_of_the_only_member_that_takes_it() {
    for shards in [1, 3] {
        let broker = TestBroker::start(shards);
        let mut members: Vec<Client> =
            (0..6).map(|i| limited(&broker, &format!("small-{i}"), Some(64), 1_000)).collect();
        let mut large = limited(&broker, "large", None, 1);
        for client in members.iter_mut().chain([&mut large]) {
            client.subscribe("$share/g/t", QoS::AtLeastOnce);
        }
        let mut publisher = broker.connected("pub", Version::V5);
        for i in 0..10 {
            publisher.publish("t", &[i; 100], QoS::AtLeastOnce, false);
        }
        let mut got: Vec<u8> = (0..10).map(|_| large.receive_and_ack().payload[0]).collect();
        got.sort_unstable();
        assert_eq!(got, (0..10).collect::<Vec<_>>(), "{shards} shards");
        assert_eq!(broker.counter("dropped_too_large_total"), 0);
    }
}
