//! Wills.

use std::time::{Duration, Instant};

use tacho_codec::{Connect, ConnectProperties, QoS, ReasonCode, UserPropertiesBuf, Version, Will};

use tacho_testkit::{Client, TestBroker, VERSIONS, connect, each_broker, wait_until, will};

fn mortal<'a>(broker: &TestBroker, version: Version, will: Will<'a>) -> Client {
    let mut client = broker.client(version);
    client.connect(&Connect { will: Some(will), ..connect("mortal", version) });
    client
}

// 53
// [MQTT-3.1.2-7] [MQTT-3.1.2-8] [MQTT-3.1.2-10] [MQTT-3.14.4-3]
// [MQTT-3.1.1: 3.1.2-8] [MQTT-3.1.1: 3.1.2-10] [MQTT-3.1.1: 3.14.4-3]
#[test]
fn published_on_every_end_but_a_normal_disconnect_and_never_twice() {
    each_broker(|broker| {
        let mut watcher = broker.connected("watcher", Version::V5);
        watcher.subscribe("w", QoS::AtMostOnce);
        for version in VERSIONS {
            let client = mortal(broker, version, will("w", b"lost"));
            drop(client);
            assert_eq!(watcher.receive().payload, b"lost");
            let mut client = mortal(broker, version, will("w", b"broken"));
            client.send_notation("ff 00");
            assert_eq!(watcher.receive().payload, b"broken");
            mortal(broker, version, will("w", b"never")).disconnect();
            watcher.ping();
        }
        for (disconnect, published) in [("e0 | 04", true), ("e0 | 00", false), ("e0 | 80 []", true)]
        {
            let mut client = mortal(broker, Version::V5, will("w", b"said"));
            client.send_notation(disconnect);
            client.expect_closed();
            if published {
                assert_eq!(watcher.receive().payload, b"said", "{disconnect}");
            }
            watcher.ping();
        }
    });
}

// 54
// [MQTT-3.1.2-8] [MQTT-3.1.3-9]
#[test]
fn delayed_will_waits_and_a_resume_cancels_it() {
    each_broker(|broker| {
        let mut watcher = broker.connected("watcher", Version::V5);
        watcher.subscribe("w", QoS::AtMostOnce);
        let mut will = will("w", b"gone");
        will.properties.delay_s = Some(2);
        let properties = ConnectProperties { session_expiry_s: Some(100), ..Default::default() };
        let connect = Connect {
            clean_start: false,
            properties,
            will: Some(will),
            ..connect("mortal", Version::V5)
        };
        let mut client = broker.client(Version::V5);
        client.connect(&connect);
        drop(client);
        let mut client = broker.client(Version::V5);
        client.connect(&connect);
        let resumed = Instant::now();
        while resumed.elapsed() < Duration::from_millis(2200) {
            watcher.expect_nothing();
        }
        let lost = Instant::now();
        drop(client);
        assert_eq!(watcher.receive().payload, b"gone");
        assert!(lost.elapsed() >= Duration::from_millis(1950), "{:?}", lost.elapsed());
    });
}

// 54
// [MQTT-3.1.2-8]
#[test]
fn delayed_will_fires_when_the_session_ends_before() {
    each_broker(|broker| {
        let mut watcher = broker.connected("watcher", Version::V5);
        watcher.subscribe("w", QoS::AtMostOnce);
        let mut will = will("w", b"gone");
        will.properties.delay_s = Some(1000);
        for session_expiry_s in [None, Some(1)] {
            let properties = ConnectProperties { session_expiry_s, ..Default::default() };
            let connect =
                Connect { properties, will: Some(will), ..connect("mortal", Version::V5) };
            let mut client = broker.client(Version::V5);
            client.connect(&connect);
            drop(client);
            assert_eq!(watcher.receive().payload, b"gone");
        }
    });
}

// 54
// [MQTT-3.2.0-1]
#[test]
fn a_clean_start_ends_the_waiting_session_and_its_will_fires_after_connack() {
    each_broker(|broker| {
        for name in ["m1", "m2", "m3", "m4"] {
            let mut will = will("w", b"gone");
            will.properties.delay_s = Some(1000);
            let properties =
                ConnectProperties { session_expiry_s: Some(100), ..Default::default() };
            let connect_keep =
                Connect { properties, will: Some(will), ..connect(name, Version::V5) };
            let mut watcher = broker.connected("watcher", Version::V5);
            watcher.subscribe("w", QoS::AtMostOnce);
            let mut client = broker.client(Version::V5);
            client.connect(&connect_keep);
            drop(client);
            watcher.expect_nothing();
            let mut client = broker.client(Version::V5);
            let connack = client.connect(&connect(name, Version::V5));
            assert_eq!(connack, (false, ReasonCode::SUCCESS));
            assert_eq!(watcher.receive().payload, b"gone");
        }
    });
}

// 55
// [MQTT-3.1.2-12] [MQTT-3.1.2-15] [MQTT-3.1.3-10]
// [MQTT-3.1.1: 3.1.2-17]
#[test]
fn will_keeps_qos_retain_and_properties_except_the_delay() {
    each_broker(|broker| {
        let mut user = UserPropertiesBuf::new();
        user.push("k", "v").unwrap();
        for qos in [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce] {
            let mut will = Will { qos, retain: true, ..will("w", b"gone") };
            will.properties.message_expiry_s = Some(100);
            will.properties.content_type = Some("text/plain");
            will.properties.response_topic = Some("answers");
            will.properties.correlation_data = Some(b"id");
            will.properties.payload_format_utf8 = Some(true);
            will.properties.user_properties = user.view();
            let mut live = broker.connected("live", Version::V5);
            live.subscribe("w", QoS::ExactlyOnce);
            while live.frame_within(tacho_testkit::QUIET).is_ok() {}
            drop(mortal(broker, Version::V5, will));
            let message = live.receive_and_ack();
            assert_eq!((message.qos, message.retain), (qos, false));
            let mut late = broker.connected("late", Version::V5);
            late.subscribe("w", QoS::ExactlyOnce);
            let retained = late.receive_and_ack();
            assert_eq!((retained.qos, retained.retain), (qos, true));
            for got in [message, retained] {
                assert!(got.message_expiry_s.is_some_and(|s| (90..=100).contains(&s)));
                assert_eq!(got.content_type.as_deref(), Some("text/plain"));
                assert_eq!(got.response_topic.as_deref(), Some("answers"));
                assert_eq!(got.correlation_data.as_deref(), Some(&b"id"[..]));
                assert_eq!(got.payload_format_utf8, Some(true));
                assert_eq!(got.user_properties, [("k".to_owned(), "v".to_owned())]);
                assert_eq!(got.payload, b"gone");
            }
            live.publish("w", b"", QoS::AtMostOnce, true);
            live.receive();
            live.ping();
        }
    });
}

// 55
// [MQTT-3.1.4-2]
#[test]
fn will_topics_that_clients_may_not_publish_to_are_refused() {
    let broker = TestBroker::start(1);
    for (packet, code) in [
        ("10 | <MQTT> 05 06 0000 [] <c> [] <w/+> <x>", 0x90),
        ("10 | <MQTT> 05 06 0000 [] <c> [] <$SYS/x> <x>", 0x87),
        ("10 | <MQTT> 04 06 0000 <c> <$SYS/x> <x>", 5),
    ] {
        let mut client = broker.client(Version::V5);
        client.send_notation(packet);
        assert_eq!(client.frame().unwrap()[3], code, "{packet}");
        client.expect_closed();
    }
}

// 53, 55
// [MQTT-3.1.2-14]
// [MQTT-3.1.1: 3.1.2-12] [MQTT-3.1.1: 3.1.2-16]
#[test]
fn a_will_without_retain_is_not_kept_and_without_a_will_nothing_is_published() {
    each_broker(|broker| {
        let mut watcher = broker.connected("watcher", Version::V5);
        watcher.subscribe("#", QoS::ExactlyOnce);
        for version in VERSIONS {
            for qos in [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce] {
                drop(mortal(broker, version, Will { qos, ..will("w", b"gone") }));
                assert_eq!(watcher.receive_and_ack().payload, b"gone");
                let mut late = broker.connected("late", version);
                late.subscribe("w", QoS::ExactlyOnce);
                late.ping();
                late.disconnect();
            }
            let unread = broker.connected("unread", version);
            let before = broker.counter("connections");
            drop(unread);
            wait_until("it has gone", || broker.counter("connections") < before);
            watcher.ping();
        }
        assert_eq!(broker.counter("retained"), 0);
    });
}

// 2, 8, 53
#[test]
fn a_will_is_published_by_every_way_out() {
    each_broker(|broker| {
        let mut watcher = broker.connected("watcher", Version::V5);
        watcher.subscribe("w", QoS::AtMostOnce);
        let mut stays = Vec::new();
        for version in VERSIONS {
            let connect_again =
                Connect { will: Some(will("w", b"second")), ..connect("mortal", version) };
            // Taken over, then half closed, then a packet too large, then a wrong packet.
            let mut client = mortal(broker, version, will("w", b"first"));
            let mut taker = broker.client(version);
            taker.connect(&connect_again);
            assert_eq!(watcher.receive().payload, b"first");
            taker.stream.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!(watcher.receive().payload, b"second");
            client.frame();
            for wrong in ["30 ff ff ff 7f", "20 | 00 00", "32 | <t> 0000"] {
                let mut client = mortal(broker, version, will("w", b"third"));
                client.send_notation(wrong);
                assert_eq!(watcher.receive().payload, b"third", "{wrong}");
                stays.push(client);
            }
            watcher.ping();
        }
    });
}

// 53, 59
#[test]
fn the_goodbye_of_a_stop_comes_behind_the_wills_of_others() {
    let mut broker = TestBroker::start(3);
    let clients: Vec<Client> = (0..30)
        .map(|i| {
            let mut client = broker.client(Version::V5);
            let name = format!("c{i}");
            let mut will = Will { qos: QoS::AtLeastOnce, ..will("w", b"gone") };
            will.properties.delay_s = Some(i % 2 * 100);
            let properties =
                ConnectProperties { session_expiry_s: Some(100), ..Default::default() };
            client.connect(&Connect {
                will: Some(will),
                properties,
                ..connect(&name, Version::V5)
            });
            client.subscribe("w", QoS::AtLeastOnce);
            client
        })
        .collect();
    broker.begin_stop();
    for mut client in clients {
        let mut last = Vec::new();
        while let Some(frame) = client.frame() {
            last = frame;
        }
        assert_eq!((last[0], last[2]), (0xe0, 0x8b), "the goodbye comes last");
    }
    broker.stop();
}
