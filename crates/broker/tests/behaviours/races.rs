//! Subscriptions that change while messages are on their way: nothing is lost and nothing comes
//! twice.

use tacho_codec::{
    Ack, Packet, QoS, ReasonCode, RetainHandling, SubscribeOptions, Unsubscribe, Version,
};

use tacho_testkit::{ALL_QOS, Client, TestBroker, VERSIONS, each_broker};

// 44, 28
// [MQTT-3.10.4-2] [MQTT-3.10.4-3] [MQTT-4.4.0-1] [MQTT-3.1.1: 3.10.4-2] [MQTT-3.1.1: 3.10.4-3]
#[test]
fn exchanges_in_flight_complete_after_unsubscribing_also_on_a_new_connection() {
    each_broker(|broker| {
        for version in VERSIONS {
            for qos in [QoS::AtLeastOnce, QoS::ExactlyOnce] {
                let mut client = broker.durable("c", version, Some(10));
                client.subscribe("t", qos);
                let mut publisher = broker.connected("pub", version);
                for i in 0..3 {
                    publisher.publish("t", &[i], qos, false);
                }
                let before: Vec<_> = (0..3).map(|_| client.receive()).collect();
                client.unsubscribe("t");
                publisher.publish("t", b"too late", qos, false);
                drop(client);
                let mut client = broker.durable("c", version, Some(10));
                for message in before {
                    let again = client.receive_and_ack();
                    assert_eq!((again.packet_id, again.dup), (message.packet_id, true));
                    assert_eq!(again.payload, message.payload);
                }
                client.ping();
                client.disconnect();
            }
        }
    });
}

// 40, 41
// [MQTT-3.8.4-3] [MQTT-3.8.4-4] [MQTT-3.3.4-3]
#[test]
fn replacing_a_subscription_loses_and_doubles_nothing() {
    each_broker(|broker| {
        let mut client = broker.durable("c", Version::V5, Some(5));
        let options = |qos| SubscribeOptions {
            qos,
            retain_handling: RetainHandling::Never,
            ..Default::default()
        };
        client.subscribe_with("t/+", options(QoS::AtLeastOnce), Some(1));
        let mut publisher = broker.connected("pub", Version::V5);
        let writer = std::thread::spawn(move || {
            for i in 0..400_u16 {
                publisher.publish("t/1", &i.to_be_bytes(), QoS::ExactlyOnce, false);
            }
        });
        let mut got = Vec::new();
        for round in 0..40 {
            // The SUBACK comes among the messages.
            let id = client.id();
            let (qos, subscription_id) = (2 - round % 2, 1 + round % 2);
            client.send_notation(&format!(
                "82 | {:04x} [0b {subscription_id:02x}] <t/+> {:02x}",
                id.get(),
                qos | 0x20
            ));
            let mut suback = false;
            for _ in 0..10 {
                let frame = client.frame().expect("open");
                if frame[0] == 0x90 {
                    suback = true;
                    continue;
                }
                got.push(handle(&mut client, &frame));
            }
            while !suback {
                let frame = client.frame().expect("open");
                suback = frame[0] == 0x90;
                if !suback {
                    got.push(handle(&mut client, &frame));
                }
            }
        }
        let mut messages: Vec<u16> = got.into_iter().flatten().collect();
        while messages.len() < 400 {
            let frame = client.frame().expect("open");
            messages.extend(handle(&mut client, &frame));
        }
        writer.join().unwrap();
        messages.sort();
        assert_eq!(messages, (0..400).collect::<Vec<_>>());
    });
}

/// Answers a PUBLISH or PUBREL; the payload of a PUBLISH.
fn handle(client: &mut Client, frame: &[u8]) -> Option<u16> {
    if frame[0] == 0x62 {
        client.send_raw(&[0x70, 2, frame[2], frame[3]]);
        return None;
    }
    let id_at = 4 + usize::from(frame[3]);
    let answer = if frame[0] & 6 == 2 { 0x40 } else { 0x50 };
    client.send_raw(&[answer, 2, frame[id_at], frame[id_at + 1]]);
    Some(u16::from_be_bytes(frame[frame.len() - 2..].try_into().unwrap()))
}

// 41
// [MQTT-3.3.4-4] [MQTT-3.1.2-5]
#[test]
fn identifiers_of_all_matching_subscriptions_survive_a_resume_in_flight_and_queued() {
    each_broker(|broker| {
        let mut client = broker.durable("c", Version::V5, Some(1));
        for (filter, id) in [("t/#", 7), ("t/+", 268_435_455), ("t/1", 128)] {
            let options = SubscribeOptions { qos: QoS::AtLeastOnce, ..Default::default() };
            client.subscribe_with(filter, options, Some(id));
        }
        let mut publisher = broker.connected("pub", Version::V5);
        publisher.publish("t/1", b"in flight", QoS::AtLeastOnce, false);
        publisher.publish("t/1", b"queued", QoS::AtLeastOnce, false);
        client.receive();
        drop(client);
        publisher.publish("t/1", b"offline", QoS::AtLeastOnce, false);
        let mut client = broker.durable("c", Version::V5, Some(1));
        publisher.publish("t/1", b"online", QoS::AtLeastOnce, false);
        for expected in ["in flight", "queued", "offline", "online"] {
            let mut message = client.receive_and_ack();
            assert_eq!(String::from_utf8_lossy(&message.payload), expected);
            message.subscription_ids.sort();
            assert_eq!(message.subscription_ids, [7, 128, 268_435_455]);
        }
        client.ping();
    });
}

// 30, 60
// [MQTT-4.6.0-5] [MQTT-4.6.0-6]
#[test]
fn order_holds_for_every_qos_when_fan_outs_are_interrupted() {
    for shards in [1, 3] {
        let broker = TestBroker::configured(&format!(
            "shards = {shards}\n[limits]\ndeliveries_per_turn_max = 1"
        ));
        let mut clients: Vec<_> =
            (0..6).map(|i| broker.connected(&format!("c{i}"), VERSIONS[i % 3])).collect();
        for (i, client) in clients.iter_mut().enumerate() {
            client.subscribe(["t/1", "t/+", "#"][i / 2], QoS::ExactlyOnce);
        }
        let mut publisher = broker.connected("pub", Version::V311);
        let mut bytes = Vec::new();
        for i in 0..60_u16 {
            let packet_id = (i % 3 > 0).then(|| publisher.id());
            let publish = tacho_codec::Publish {
                topic: "t/1",
                qos: ALL_QOS[usize::from(i) % 3],
                packet_id,
                payload: &i.to_be_bytes(),
                ..Default::default()
            };
            Packet::Publish(publish).encode(Version::V311, &mut bytes).unwrap();
        }
        publisher.send_raw(&bytes);
        for client in &mut clients {
            let mut of_qos: [Vec<u16>; 3] = Default::default();
            for _ in 0..60 {
                let message = client.receive_and_ack();
                let payload = message.payload[..].try_into().unwrap();
                of_qos[message.qos as usize].push(u16::from_be_bytes(payload));
            }
            assert!(of_qos.iter().all(|values| values.is_sorted()), "{of_qos:?}");
        }
    }
}

// 28
// [MQTT-4.6.0-4] [MQTT-4.3.3-6]
#[test]
fn pubrels_keep_the_order_of_their_pubrecs_and_are_sent_again_first_or_last_as_they_were() {
    each_broker(|broker| {
        for version in VERSIONS {
            let mut client = broker.durable("c", version, Some(10));
            client.subscribe("t", QoS::ExactlyOnce);
            let mut publisher = broker.connected("pub", version);
            for i in 0..4 {
                publisher.publish("t", &[i], QoS::ExactlyOnce, false);
            }
            let ids: Vec<_> = (0..4).map(|_| client.receive().packet_id.unwrap()).collect();
            for i in [2, 0] {
                client.send(&Packet::PubRec(Ack::new(ids[i], ReasonCode::SUCCESS)));
            }
            for i in [2, 0] {
                assert_eq!(client.expect_ack(0x62), ids[i]);
            }
            drop(client);
            let mut client = broker.durable("c", version, Some(10));
            for (i, id) in ids.iter().enumerate() {
                let frame = client.frame().expect("open");
                assert_eq!(frame[0], if i % 2 == 0 { 0x62 } else { 0x3c }, "{i}");
                let id_at = if i % 2 == 0 { 2 } else { 5 };
                assert_eq!(frame[id_at..id_at + 2], id.get().to_be_bytes());
            }
            client.ping();
            client.disconnect();
            broker.connected("c", version).disconnect();
        }
    });
}

// 58
// [MQTT-3.1.1: 3.1.2-5]
#[test]
fn qos_0_waits_for_an_offline_session_if_so_configured() {
    for shards in [1, 3] {
        let broker = TestBroker::configured(&format!(
            "shards = {shards}\n[limits]\nqueue_qos0_offline = true\nsession_queue_len_max = 5\n\
             persistent_queue_full = 'drop_newest'"
        ));
        for version in VERSIONS {
            let mut client = broker.durable("c", version, Some(10));
            client.subscribe("t", QoS::AtLeastOnce);
            client.disconnect();
            let mut publisher = broker.connected("pub", version);
            let dropped = broker.counter("dropped_queue_full_total");
            for i in 0..7 {
                let qos = if i % 2 == 0 { QoS::AtMostOnce } else { QoS::AtLeastOnce };
                publisher.publish("t", &[i], qos, false);
            }
            publisher.ping();
            tacho_testkit::wait_until("two do not fit", || {
                broker.counter("dropped_queue_full_total") - dropped == 2
            });
            let mut client = broker.durable("c", version, Some(10));
            let got: Vec<_> = (0..5).map(|_| client.receive_and_ack().payload[0]).collect();
            assert_eq!(got, [0, 1, 2, 3, 4]);
            client.ping();
            client.disconnect();
            broker.connected("c", version).disconnect();
        }
        assert_eq!(broker.counter("dropped_offline_total"), 0);
    }
}

// 44
// [MQTT-3.10.4-1] [MQTT-3.10.4-4] [MQTT-3.10.4-6] [MQTT-3.1.1: 3.10.4-1] [MQTT-3.1.1: 3.10.4-4]
// [MQTT-3.1.1: 3.10.4-5] [MQTT-3.1.1: 3.10.4-6]
#[test]
fn unsubscribing_takes_exactly_the_filters_named_with_one_answer() {
    each_broker(|broker| {
        for version in VERSIONS {
            let mut client = broker.connected("c", version);
            for filter in ["t/1", "t/+", "u"] {
                client.subscribe(filter, QoS::AtMostOnce);
            }
            let packet_id = client.id();
            client.send(&Packet::Unsubscribe(Unsubscribe {
                packet_id,
                filters: vec!["t/+", "t/#", "u", "t/+"],
                user_properties: Default::default(),
            }));
            let [high, low] = packet_id.get().to_be_bytes();
            let mut expected = vec![0xb0, 2, high, low];
            if version == Version::V5 {
                expected[1] += 5;
                expected.extend([0, 0, 0x11, 0, 0x11]);
            }
            assert_eq!(client.frame().unwrap(), expected);
            let mut publisher = broker.connected("pub", version);
            for topic in ["t/2", "u", "t/1"] {
                publisher.publish(topic, b"x", QoS::AtLeastOnce, false);
            }
            assert_eq!(client.receive().topic, "t/1");
            client.ping();
        }
    });
}

// 41
// [MQTT-3.3.4-2] [MQTT-3.1.1: 3.3.5-1] [MQTT-3.1.1: 3.8.4-6]
#[test]
fn overlapping_filters_give_older_clients_the_highest_qos_too() {
    each_broker(|broker| {
        for version in VERSIONS {
            let mut client = broker.connected("c", version);
            for (filter, qos) in
                [("t/1", QoS::AtMostOnce), ("t/#", QoS::ExactlyOnce), ("+/1", QoS::AtLeastOnce)]
            {
                client.subscribe(filter, qos);
            }
            let mut publisher = broker.connected("pub", version);
            for published in ALL_QOS {
                publisher.publish("t/1", b"x", published, false);
                assert_eq!(client.receive_and_ack().qos, published);
            }
            client.ping();
        }
    });
}
