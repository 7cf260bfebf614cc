//! SUBSCRIBE and UNSUBSCRIBE: codes, filters, options.

use tacho_codec::{
    Connect, ConnectProperties, Packet, PacketId, QoS, ReasonCode, SubAck, Subscribe,
};
use tacho_codec::{
    RetainHandling, SubscribeFilter, SubscribeOptions, UnsubAck, Unsubscribe, UserProperties,
    Version,
};

use tacho_testkit::{Client, VERSIONS, connect, each_broker};

const SUB_IDS: [u32; 3] = [1, 128, 268_435_455];

/// A filter of so many levels that the broker takes none like it.
fn too_many_levels() -> String {
    format!("{}#", "+/".repeat(256))
}

// 20
// [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1] [MQTT-4.7.3-2] [MQTT-4.8.2-1] [MQTT-4.8.2-2]
// [MQTT-4.13.1-1] [MQTT-3.1.1: 4.7.1-2] [MQTT-3.1.1: 4.7.1-3] [MQTT-3.1.1: 4.7.3-1]
// [MQTT-3.1.1: 4.7.3-2] [MQTT-3.1.1: 4.8.0-1]
#[test]
fn malformed_filters_close_the_connection_and_nothing_of_their_packet_takes_effect() {
    each_broker(|broker| {
        let malformed = [
            "a#",
            "a/#/b",
            "#/",
            "a+",
            "+a",
            "a/+b",
            "",
            "a\0",
            "$share/",
            "$share//x",
            "$share/a",
            "$share/a/",
            "$share/a+/x",
            "$share/#/x",
            "$share/g/a#",
            "$share/g\0/a",
        ];
        for (filter, version) in malformed.iter().flat_map(|f| VERSIONS.map(|v| (*f, v))) {
            let session_expiry_s = (version == Version::V5).then_some(60);
            let properties = ConnectProperties { session_expiry_s, ..Default::default() };
            let request = Connect { clean_start: false, properties, ..connect("c", version) };
            let mut client = broker.client(version);
            client.connect(&request);
            client.subscribe("kept", QoS::AtMostOnce);
            let packet_id = client.id();
            let options = SubscribeOptions::default();
            client.send(&Packet::Subscribe(Subscribe {
                packet_id,
                subscription_id: None,
                filters: ["new", filter].map(|filter| SubscribeFilter { filter, options }).into(),
                user_properties: Default::default(),
            }));
            expect_malformed(&mut client, filter);
            let mut client = broker.client(version);
            client.connect(&request);
            client.send(&Packet::Unsubscribe(Unsubscribe {
                packet_id,
                filters: vec!["kept", filter],
                user_properties: Default::default(),
            }));
            expect_malformed(&mut client, filter);
            assert_eq!(broker.counter("subscriptions"), 1, "{version:?} {filter:?}");
        }
    });
}

/// The connection is closed, in 5.0 with the reason.
#[track_caller]
fn expect_malformed(client: &mut Client, filter: &str) {
    if client.version == Version::V5 {
        assert_eq!(client.expect_disconnect(), ReasonCode::MALFORMED_PACKET, "{filter:?}");
    } else {
        assert_eq!(client.frame(), None, "{filter:?}");
    }
}

// 40
// [MQTT-2.2.1-6] [MQTT-3.8.4-1] [MQTT-3.8.4-2] [MQTT-3.8.4-5] [MQTT-3.8.4-6] [MQTT-3.8.4-7]
// [MQTT-3.9.3-1] [MQTT-3.9.3-2] [MQTT-3.1.1: 2.3.1-7] [MQTT-3.1.1: 3.8.4-1] [MQTT-3.1.1: 3.8.4-2]
// [MQTT-3.1.1: 3.8.4-4] [MQTT-3.1.1: 3.8.4-5] [MQTT-3.1.1: 3.9.3-1] [MQTT-3.1.1: 3.9.3-2]
#[test]
fn suback_has_one_code_per_filter_in_order() {
    each_broker(|broker| {
        for version in VERSIONS {
            let mut client = broker.connected("c", version);
            let too_many_levels = too_many_levels();
            let filter = |filter, qos| SubscribeFilter {
                filter,
                options: SubscribeOptions { qos, ..Default::default() },
            };
            client.send(&Packet::Subscribe(Subscribe {
                packet_id: PacketId::new(7).unwrap(),
                subscription_id: None,
                filters: vec![
                    filter("a", QoS::ExactlyOnce),
                    filter(&too_many_levels, QoS::ExactlyOnce),
                    filter("b", QoS::AtMostOnce),
                    filter("c", QoS::AtLeastOnce),
                ],
                user_properties: Default::default(),
            }));
            client.expect(|packet| match packet {
                Packet::SubAck(SubAck { packet_id, reasons, .. }) => {
                    let failure = if version == Version::V5 { 0x97 } else { 0x80 };
                    let codes: Vec<u8> = reasons.iter().map(|r| r.value()).collect();
                    assert_eq!((packet_id.get(), codes), (7, vec![2, failure, 0, 1]));
                }
                other => panic!("{other:?}"),
            });
        }
    });
}

// 40
// [MQTT-3.8.4-3] [MQTT-3.1.1: 3.8.4-3]
#[test]
fn of_the_same_filter_twice_in_a_packet_the_last_one_counts() {
    each_broker(|broker| {
        let mut publisher = broker.connected("pub", Version::V5);
        publisher.publish("t/kept", b"kept", QoS::AtLeastOnce, true);
        for again in [RetainHandling::IfNew, RetainHandling::Never] {
            let mut client = broker.connected("c", Version::V5);
            let packet_id = client.id();
            let first = SubscribeOptions::new(QoS::AtMostOnce);
            let last = SubscribeOptions {
                retain_handling: again,
                ..SubscribeOptions::new(QoS::AtLeastOnce)
            };
            client.send(&Packet::Subscribe(Subscribe {
                packet_id,
                subscription_id: None,
                filters: [first, last]
                    .map(|options| SubscribeFilter { filter: "t/+", options })
                    .into(),
                user_properties: Default::default(),
            }));
            client.expect(|packet| match packet {
                Packet::SubAck(ack) => assert_eq!(
                    ack.reasons,
                    [ReasonCode::granted(QoS::AtMostOnce), ReasonCode::granted(QoS::AtLeastOnce)]
                ),
                other => panic!("expected SUBACK, got {other:?}"),
            });
            let kept = client.receive_and_ack();
            assert_eq!((&*kept.payload, kept.qos), (&b"kept"[..], QoS::AtLeastOnce), "{again:?}");
            publisher.publish("t/live", b"live", QoS::AtLeastOnce, false);
            let live = client.receive_and_ack();
            assert_eq!((&*live.payload, live.qos), (&b"live"[..], QoS::AtLeastOnce), "{again:?}");
            client.expect_nothing();
        }
    });
}

// 40
// [MQTT-3.8.4-3] [MQTT-3.1.1: 3.8.4-3]
#[test]
fn the_same_filter_replaces_its_options() {
    each_broker(|broker| {
        let mut client = broker.connected("c", Version::V5);
        for filter in ["t", "+", "$share/g/s"] {
            client.subscribe(filter, QoS::AtMostOnce);
        }
        for filter in ["t", "+", "$share/g/s"] {
            client.subscribe(filter, QoS::AtLeastOnce);
        }
        assert_eq!(broker.counter("subscriptions"), 3);
        client.unsubscribe("+");
        let mut publisher = broker.connected("pub", Version::V5);
        for topic in ["t", "s"] {
            publisher.publish(topic, b"x", QoS::ExactlyOnce, false);
            assert_eq!(client.receive_and_ack().qos, QoS::AtLeastOnce);
        }
        client.ping();
    });
}

// 41
// [MQTT-3.3.4-2] [MQTT-3.3.4-3] [MQTT-3.3.4-4]
#[test]
fn overlapping_filters_give_one_copy_with_the_highest_qos_and_every_identifier() {
    each_broker(|broker| {
        let mut client = broker.connected("c", Version::V5);
        let mut publisher = broker.connected("pub", Version::V5);
        let filters = ["t/a", "t/+", "#"];
        for (i, filter) in filters.into_iter().enumerate() {
            let qos = QoS::try_from(i as u8).unwrap();
            let options = SubscribeOptions { qos, ..Default::default() };
            client.subscribe_with(filter, options, Some(SUB_IDS[i]));
        }
        publisher.publish("t/a", b"x", QoS::ExactlyOnce, false);
        let mut message = client.receive_and_ack();
        message.subscription_ids.sort();
        assert_eq!((message.qos, message.subscription_ids), (QoS::ExactlyOnce, SUB_IDS.to_vec()));
        client.ping();
        publisher.publish("u", b"x", QoS::AtMostOnce, false);
        assert_eq!(client.receive().subscription_ids, [268_435_455]);
        client.unsubscribe("#");
        publisher.publish("t/a", b"x", QoS::AtMostOnce, false);
        assert_eq!(client.receive().subscription_ids.len(), 2);
        // Without an identifier in the new SUBSCRIBE there is none any more.
        client.subscribe("t/a", QoS::AtMostOnce);
        publisher.publish("t/a", b"x", QoS::AtMostOnce, false);
        assert_eq!(client.receive().subscription_ids, [128]);
    });
}

// 41, 42
// [MQTT-3.1.2-5] [MQTT-3.8.3-3]
#[test]
fn options_survive_the_connection() {
    each_broker(|broker| {
        let properties = ConnectProperties { session_expiry_s: Some(60), ..Default::default() };
        let keep = Connect { clean_start: false, properties, ..connect("c", Version::V5) };
        let mut client = broker.client(Version::V5);
        client.connect(&keep);
        let options = SubscribeOptions {
            qos: QoS::AtLeastOnce,
            no_local: true,
            retain_as_published: true,
            ..Default::default()
        };
        client.subscribe_with("t", options, Some(77));
        client.disconnect();
        let mut client = broker.client(Version::V5);
        assert_eq!(client.connect(&keep), (true, ReasonCode::SUCCESS));
        client.publish("t", b"own", QoS::AtLeastOnce, false);
        let mut publisher = broker.connected("pub", Version::V5);
        publisher.publish("t", b"other", QoS::ExactlyOnce, true);
        let message = client.receive_and_ack();
        assert_eq!(message.payload, b"other");
        assert_eq!((message.qos, message.retain), (QoS::AtLeastOnce, true));
        assert_eq!(message.subscription_ids, [77]);
        client.ping();
    });
}

// 42
// [MQTT-3.8.3-3]
#[test]
fn no_local_blocks_only_the_own_client() {
    each_broker(|broker| {
        let options = SubscribeOptions { no_local: true, ..Default::default() };
        let mut clients: Vec<_> = (0..4)
            .map(|i| {
                let mut client = broker.connected(&format!("c{i}"), Version::V5);
                client.subscribe_with("t", options, None);
                client.subscribe_with("mixed", options, Some(1));
                client.subscribe_with("+", SubscribeOptions::default(), Some(2));
                client.unsubscribe("+");
                client
            })
            .collect();
        for i in 0..4 {
            clients[i].publish("t", &[i as u8], QoS::AtMostOnce, false);
            for (k, client) in clients.iter_mut().enumerate() {
                if k != i {
                    assert_eq!(client.receive().payload, [i as u8]);
                }
            }
            clients[i].ping();
        }
        // Another filter of the same session that matches still lets it through.
        clients[0].subscribe_with("+", SubscribeOptions::default(), Some(2));
        clients[0].publish("mixed", b"m", QoS::AtMostOnce, false);
        assert_eq!(clients[0].receive().subscription_ids, [2]);
        clients[1].publish("mixed", b"m", QoS::AtMostOnce, false);
        let mut ids = clients[0].receive().subscription_ids;
        ids.sort();
        assert_eq!(ids, [1, 2]);
    });
}

// 43
// [MQTT-3.3.2-3] [MQTT-4.7.2-1] [MQTT-3.1.1: 3.3.2-3] [MQTT-3.1.1: 4.7.2-1] [MQTT-4.7.3-4]
// [MQTT-4.7.1-2]
#[test]
fn wildcards_match_what_they_should() {
    each_broker(|broker| {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("a/#", &["a", "a/", "a/b", "a/b/c"], &["ab", "b/a", "/a"]),
            ("a/+", &["a/", "a/b"], &["a", "a/b/c"]),
            ("+/+", &["/", "a/b", "/x"], &["a", "a/b/c", "$x/y"]),
            ("/x", &["/x"], &["x"]),
            ("#", &["a", "/", "a/b"], &["$a", "$a/b"]),
            ("+", &["a"], &["/", "$a"]),
            ("$a/#", &["$a", "$a/b"], &["a"]),
            ("$a/+", &["$a/b"], &["$b/b"]),
        ];
        let mut publisher = broker.connected("pub", Version::V5);
        for (filter, matching, others) in cases {
            let mut client = broker.connected("c", Version::V5);
            client.subscribe(filter, QoS::AtLeastOnce);
            for topic in others.iter().chain(*matching) {
                publisher.publish(topic, b"x", QoS::AtLeastOnce, false);
            }
            for topic in *matching {
                assert_eq!(client.receive_and_ack().topic, *topic, "{filter}");
            }
            client.ping();
        }
    });
}

// 43
#[test]
fn sys_topics_can_be_subscribed_to() {
    each_broker(|broker| {
        let mut client = broker.connected("c", Version::V5);
        assert_eq!(client.subscribe("$SYS/#", QoS::AtMostOnce), ReasonCode::GRANTED_QOS_0);
    });
}

// 44
// [MQTT-2.2.1-6] [MQTT-3.10.4-1] [MQTT-3.10.4-2] [MQTT-3.10.4-3] [MQTT-3.10.4-4] [MQTT-3.10.4-5]
// [MQTT-3.10.4-6] [MQTT-3.11.3-1] [MQTT-3.11.3-2] [MQTT-3.1.1: 3.10.4-5]
#[test]
fn unsuback_tells_what_was_there_and_nothing_new_comes() {
    each_broker(|broker| {
        let mut client = broker.connected("c", Version::V5);
        let mut publisher = broker.connected("pub", Version::V5);
        client.subscribe("t", QoS::ExactlyOnce);
        publisher.publish("t", b"in flight", QoS::ExactlyOnce, false);
        let message = client.receive();
        client.send(&Packet::Unsubscribe(Unsubscribe {
            packet_id: PacketId::new(9).unwrap(),
            filters: vec!["t", "never", "t"],
            user_properties: Default::default(),
        }));
        client.expect(|packet| match packet {
            Packet::UnsubAck(UnsubAck { packet_id, reasons, .. }) => {
                let codes: Vec<u8> = reasons.iter().map(|r| r.value()).collect();
                assert_eq!((packet_id.get(), codes), (9, vec![0, 0x11, 0x11]));
            }
            other => panic!("{other:?}"),
        });
        publisher.publish("t", b"too late", QoS::ExactlyOnce, false);
        // What is in flight goes on.
        let id = message.packet_id.unwrap();
        client.send(&Packet::PubRec(tacho_codec::Ack::new(id, ReasonCode::SUCCESS)));
        assert_eq!(client.expect_ack(0x62), id);
        client.send(&Packet::PubComp(tacho_codec::Ack::new(id, ReasonCode::SUCCESS)));
        client.ping();
        let mut old = broker.connected("old", Version::V311);
        assert_eq!(old.unsubscribe("never"), None);
    });
}

// 40
#[test]
fn too_many_subscriptions_are_refused_one_by_one() {
    let broker = tacho_testkit::TestBroker::configured(
        "shards = 1\n[limits]\nsubscriptions_per_session_max = 2",
    );
    for (version, failure) in [(Version::V5, 0x97), (Version::V311, 0x80)] {
        let mut client = broker.connected("c", version);
        client.subscribe("a", QoS::AtMostOnce);
        client.subscribe("b", QoS::AtMostOnce);
        assert_eq!(client.subscribe("c", QoS::AtMostOnce).value(), failure);
        assert_eq!(client.subscribe("b", QoS::AtLeastOnce), ReasonCode::GRANTED_QOS_1);
        client.unsubscribe("a");
        assert_eq!(client.subscribe("c", QoS::AtMostOnce), ReasonCode::GRANTED_QOS_0);
    }
}

#[test]
fn a_packet_with_more_filters_than_a_session_may_have_ends_the_connection() {
    let packet = |count: usize, subscribes: bool| {
        let (packet_id, user_properties) = (PacketId::FIRST, UserProperties::EMPTY);
        if subscribes {
            let asked = SubscribeFilter { filter: "a", options: SubscribeOptions::default() };
            let (subscription_id, filters) = (None, vec![asked; count]);
            Packet::Subscribe(Subscribe { packet_id, subscription_id, user_properties, filters })
        } else {
            let filters = vec!["a"; count];
            Packet::Unsubscribe(Unsubscribe { packet_id, user_properties, filters })
        }
    };
    for (limit, most) in [(2, 1_024), (3_000, 3_000)] {
        let broker = tacho_testkit::TestBroker::configured(&format!(
            "shards = 1\n[limits]\nsubscriptions_per_session_max = {limit}"
        ));
        for version in [Version::V5, Version::V311] {
            for subscribes in [true, false] {
                let mut client = broker.connected("c", version);
                // Named again and again it is one subscription.
                client.send(&packet(most, subscribes));
                client.expect(|packet| match packet {
                    Packet::SubAck(ack) => assert_eq!(ack.reasons.len(), most),
                    other => assert!(matches!(other, Packet::UnsubAck(_)), "{other:?}"),
                });
                client.send(&packet(most + 1, subscribes));
                match version {
                    Version::V5 => {
                        assert_eq!(client.expect_disconnect(), ReasonCode::QUOTA_EXCEEDED);
                    }
                    _ => client.expect_closed(),
                }
            }
        }
    }
}
