//! CONNECT: acceptance, refusal, and the negotiated limits.

use std::time::{Duration, Instant};

use tacho_codec::{Connect, ConnectProperties, Packet, QoS, ReasonCode, Version};

use tacho_testkit::{TestBroker, VERSIONS, connect, each_broker, packet, wait_until, will};

/// What a refused CONNECT got: CONNACK's code and the close, or the close alone.
fn refusal(broker: &TestBroker, version: Version, packet: &str) -> Option<u8> {
    let mut client = broker.client(version);
    client.send_notation(packet);
    let frame = client.frame()?;
    assert_eq!((frame[0], frame[2]), (0x20, 0), "CONNACK without session present: {frame:02x?}");
    client.expect_closed();
    Some(frame[3])
}

// 1
// [MQTT-3.1.0-1]
// [MQTT-3.1.1: 3.1.0-1]
#[test]
fn anything_before_connect_is_closed_at_once() {
    let broker = TestBroker::start(1);
    for packet in ["c000", "30 | <a> 'x'", "e000", "f0 | 18 [15 <m>]", "30 ff ff ff 7f", "00", "47"]
    {
        let mut client = broker.client(Version::V5);
        client.send_notation(packet);
        client.expect_closed();
    }
    assert_eq!(broker.counter("protocol_errors_total"), 7);
}

// 1
#[test]
fn a_connect_that_claims_256_megabytes_is_closed_by_its_header() {
    let broker = TestBroker::start(1);
    let mut client = broker.client(Version::V311);
    client.send_notation("10 ff ff ff 7f");
    client.expect_closed();
}

// 2
// [MQTT-3.1.0-2]
// [MQTT-3.1.1: 3.1.0-2]
#[test]
fn second_connect_is_a_protocol_error_and_publishes_the_will() {
    each_broker(|broker| {
        let mut watcher = broker.connected("watcher", Version::V5);
        watcher.subscribe("w", QoS::AtMostOnce);
        for version in VERSIONS {
            let mut client = broker.client(version);
            let connect = Connect { will: Some(will("w", b"gone")), ..connect("c", version) };
            client.connect(&connect);
            client.send(&Packet::Connect(connect.clone()));
            if version == Version::V5 {
                assert_eq!(client.expect_disconnect(), ReasonCode::PROTOCOL_ERROR);
            } else {
                client.expect_closed();
            }
            assert_eq!(watcher.receive().payload, b"gone");
        }
    });
}

/// It was decoded first: DISCONNECT said 0x84, which only CONNACK can say.
// 2
// [MQTT-3.1.0-2]
#[test]
fn second_connect_is_a_protocol_error_whatever_else_is_wrong_with_it() {
    let broker = TestBroker::start(1);
    for second in ["10 | <MQTX> 05 02 0000 [] <a>", "10 | <MQTT> 06 02 0000 [] <a>"] {
        let mut client = broker.connected("c", Version::V5);
        client.send_notation(second);
        assert_eq!(client.expect_disconnect(), ReasonCode::PROTOCOL_ERROR);
    }
}

// 3
// [MQTT-3.1.2-1] [MQTT-3.1.2-2]
// [MQTT-3.1.1: 3.1.2-1] [MQTT-3.1.1: 3.1.2-2]
#[test]
fn wrong_protocol_name_is_closed_and_unknown_level_answered() {
    let broker = TestBroker::start(1);
    assert_eq!(refusal(&broker, Version::V311, "10 | <MQTX> 04 02 0000 <a>"), None);
    assert_eq!(refusal(&broker, Version::V311, "10 | <MQTT> 03 02 0000 <a>"), Some(1));
    assert_eq!(refusal(&broker, Version::V31, "10 | <MQIsdp> 04 02 0000 <a>"), Some(1));
    assert_eq!(refusal(&broker, Version::V5, "10 | <MQTT> 06 02 0000 [] <a>"), Some(0x84));
}

// 3
#[test]
fn mqtt_3_1_is_served() {
    let broker = TestBroker::start(1);
    let mut client = broker.client(Version::V31);
    client.send_notation("10 | <MQIsdp> 03 02 003c <old>");
    assert_eq!(client.frame().unwrap(), [0x20, 2, 0, 0]);
    client.ping();
}

// 4, 5
// [MQTT-3.1.2-3] [MQTT-3.1.2-9] [MQTT-3.1.4-1] [MQTT-3.14.0-1]
// [MQTT-3.1.1: 3.1.2-3] [MQTT-3.1.1: 3.1.2-9] [MQTT-3.1.1: 3.1.2-11] [MQTT-3.1.1: 3.1.4-1]
// [MQTT-3.1.1: 3.2.2-6]
// [MQTT-3.1.1: 3.1.2-13] [MQTT-3.1.1: 3.1.2-14] [MQTT-3.1.1: 3.1.2-15] [MQTT-3.1.1: 3.1.2-22]
#[test]
fn malformed_connect_is_refused() {
    let broker = TestBroker::start(1);
    for (v3, what) in [
        ("10 | <MQTT> 04 03 0000 <a>", "reserved flag"),
        ("10 | <MQTT> 04 0a 0000 <a>", "will QoS without will"),
        ("10 | <MQTT> 04 22 0000 <a>", "will retain without will"),
        ("10 | <MQTT> 04 1e 0000 <a> <w> <x>", "will QoS 3"),
        ("10 | <MQTT> 04 42 0000 <a> <secret>", "password without user name"),
        ("10 | <MQTT> 04 02 0000 <a> 00", "trailing byte"),
        ("10 | <MQTT> 04 02 0000 0005 'ab'", "cut client identifier"),
        ("10 | <MQTT> 04 02 00", "cut keep-alive"),
        ("10 | <MQTT> 04 06 0000 <a> <w>", "no will payload"),
    ] {
        // 3.1.1 has no code for it.
        assert_eq!(refusal(&broker, Version::V311, v3), None, "{what}");
    }
    for (v5, what) in [
        ("10 | <MQTT> 05 03 0000 [] <a>", "reserved flag"),
        ("10 | <MQTT> 05 1e 0000 [] <a> [] <w> <x>", "will QoS 3"),
        ("10 | <MQTT> 05 02 0000 [] <a> 00", "trailing byte"),
        ("10 | <MQTT> 05 02 0000 05 <a>", "properties past the end"),
    ] {
        assert_eq!(refusal(&broker, Version::V5, v5), Some(0x81), "{what}");
    }
}

// 4
#[test]
fn password_without_user_name_is_for_v5() {
    let broker = TestBroker::start(1);
    let mut client = broker.client(Version::V5);
    client.send_notation("10 | <MQTT> 05 42 0000 [] <a> <secret>");
    assert_eq!(client.frame().unwrap()[..4][2..], [0, 0]);
}

// 6
// [MQTT-3.1.3-2] [MQTT-3.1.3-6] [MQTT-3.1.3-7] [MQTT-3.2.2-16]
#[test]
fn empty_client_identifier_gets_an_assigned_one() {
    each_broker(|broker| {
        let mut assigned = Vec::new();
        let mut clients = Vec::new();
        for _ in 0..5 {
            let mut client = broker.client(Version::V5);
            let id = client.connect_with(&connect("", Version::V5), |connack| {
                assert_eq!(connack.reason, ReasonCode::SUCCESS);
                connack.properties.assigned_client_id.expect("an identifier").to_owned()
            });
            assigned.push(id);
            clients.push(client);
        }
        assigned.sort();
        assigned.dedup();
        assert_eq!(assigned.len(), 5);
        // It is a real one: the session can be resumed with it.
        let keep = ConnectProperties { session_expiry_s: Some(60), ..Default::default() };
        let mut client = broker.client(Version::V5);
        let connect_keep = Connect { properties: keep, ..connect("", Version::V5) };
        let id = client.connect_with(&connect_keep, |connack| {
            connack.properties.assigned_client_id.unwrap().to_owned()
        });
        drop(client);
        let again = Connect { client_id: &id, clean_start: false, ..connect_keep };
        assert_eq!(broker.client(Version::V5).connect(&again), (true, ReasonCode::SUCCESS));
    });
}

// 6
// [MQTT-3.1.1: 3.1.3-6] [MQTT-3.1.1: 3.1.3-8] [MQTT-3.1.1: 3.1.3-9] [MQTT-3.1.1: 3.2.2-4]
// [MQTT-3.1.1: 3.2.2-5]
#[test]
fn empty_client_identifier_before_v5_needs_a_clean_session() {
    let broker = TestBroker::start(1);
    assert_eq!(refusal(&broker, Version::V311, "10 | <MQTT> 04 00 0000 <>"), Some(2));
    assert_eq!(refusal(&broker, Version::V31, "10 | <MQIsdp> 03 02 0000 <>"), Some(2));
    for _ in 0..2 {
        let mut client = broker.client(Version::V311);
        let connack = client.connect(&connect("", Version::V311));
        assert_eq!(connack, (false, ReasonCode::SUCCESS));
    }
}

// 11, 48
#[test]
fn connack_says_every_limit_that_is_enforced_and_no_other() {
    let broker = TestBroker::configured(
        "shards = 1\n[limits]\nreceive_maximum = 7\npacket_size_max = 2000\n\
         topic_alias_maximum = 3\nkeep_alive_max_s = 30\nsession_expiry_max_s = 100",
    );
    let asked = ConnectProperties { session_expiry_s: Some(1000), ..Default::default() };
    let asked = Connect { keep_alive_s: 60, properties: asked, ..connect("c", Version::V5) };
    broker.client(Version::V5).connect_with(&asked, |connack| {
        let p = &connack.properties;
        assert_eq!(p.receive_maximum, Some(7));
        assert_eq!(p.packet_size_max, Some(2000));
        assert_eq!(p.topic_alias_maximum, Some(3));
        assert_eq!(p.server_keep_alive_s, Some(30));
        assert_eq!(p.session_expiry_s, Some(100));
        // All QoS levels, retained messages, wildcards, identifiers, shared subscriptions: served.
        assert_eq!((p.maximum_qos, p.retain_available), (None, None));
        assert_eq!(p.wildcard_subscription_available, None);
        assert_eq!((p.subscription_id_available, p.shared_subscription_available), (None, None));
        assert_eq!((p.assigned_client_id, p.reason_string), (None, None));
    });
    let modest = ConnectProperties { session_expiry_s: Some(10), ..Default::default() };
    let modest = Connect { keep_alive_s: 20, properties: modest, ..connect("c", Version::V5) };
    broker.client(Version::V5).connect_with(&modest, |connack| {
        let p = &connack.properties;
        assert_eq!((p.server_keep_alive_s, p.session_expiry_s), (None, None));
    });
    // No keep-alive is more than the limit, too.
    broker.client(Version::V5).connect_with(&connect("c", Version::V5), |connack| {
        assert_eq!(connack.properties.server_keep_alive_s, Some(30));
    });
}

// 11, 12
// [MQTT-4.1.0-2]
#[test]
fn lowered_keep_alive_and_expiry_are_enforced() {
    let broker = TestBroker::configured(
        "shards = 3\n[limits]\nkeep_alive_max_s = 1\nsession_expiry_max_s = 2",
    );
    let asked = ConnectProperties { session_expiry_s: Some(1000), ..Default::default() };
    let asked = Connect { keep_alive_s: 600, properties: asked, ..connect("c", Version::V5) };
    let mut client = broker.client(Version::V5);
    client.connect(&asked);
    assert_eq!(client.expect_disconnect(), ReasonCode::KEEP_ALIVE_TIMEOUT);
    assert_eq!(broker.counter("sessions"), 1);
    wait_until("the session expires", || broker.counter("sessions") == 0);
}

// 12
// [MQTT-3.1.2-22] [MQTT-3.2.2-22]
// [MQTT-3.1.1: 3.1.2-24]
#[test]
fn silence_of_one_and_a_half_keep_alives_closes_whatever_is_sent_to_the_client() {
    let broker = TestBroker::start(3);
    let mut watcher = broker.connected("watcher", Version::V5);
    watcher.subscribe("w", QoS::AtMostOnce);
    let mut silent = broker.client(Version::V5);
    let will = Some(will("w", b"gone"));
    silent.connect(&Connect { keep_alive_s: 2, will, ..connect("silent", Version::V5) });
    silent.subscribe("t", QoS::AtMostOnce);
    let mut pinging = broker.client(Version::V311);
    pinging.connect(&Connect { keep_alive_s: 2, ..connect("pinging", Version::V311) });
    let mut forever = broker.connected("forever", Version::V311);
    let start = Instant::now();
    let mut got = 0;
    let closed_after = loop {
        pinging.ping();
        watcher.publish("t", b"to the silent one", QoS::AtMostOnce, false);
        match silent.frame_within(Duration::from_millis(100)) {
            Ok(Some(frame)) if frame[0] == 0xe0 => {
                assert_eq!(frame[2], 0x8d);
                break start.elapsed();
            }
            Ok(Some(_)) => got += 1,
            Ok(None) => panic!("closed without DISCONNECT"),
            Err(tacho_testkit::TimedOut) => {}
        }
    };
    silent.expect_closed();
    assert!(closed_after >= Duration::from_millis(2900), "{closed_after:?}");
    assert!(got > 0);
    assert_eq!(watcher.receive().payload, b"gone");
    forever.ping();
    pinging.ping();
}

// 13
#[test]
fn slow_or_half_sent_connect_times_out() {
    let broker = TestBroker::configured("shards = 3\n[limits]\nconnect_timeout_s = 1");
    let mut good = broker.connected("good", Version::V311);
    let mut silent = broker.client(Version::V5);
    let mut half = broker.client(Version::V5);
    half.send_raw(&[0x10, 20, 0, 4, b'M', b'Q']);
    let mut dripping = broker.client(Version::V5);
    let start = Instant::now();
    dripping.send_raw(&[0x10]);
    while dripping.frame_within(Duration::from_millis(100)).is_err() {
        let _ = std::io::Write::write_all(&mut dripping.stream, &[0x7f]);
        assert!(start.elapsed() < tacho_testkit::PATIENCE);
    }
    silent.expect_closed();
    half.expect_closed();
    assert_eq!(broker.counter("connect_timeouts_total"), 3);
    good.ping();
}

// 52
#[test]
fn authentication_methods_are_refused() {
    let broker = TestBroker::start(1);
    let method = "10 | <MQTT> 05 02 0000 [15 <SCRAM>] <a>";
    assert_eq!(refusal(&broker, Version::V5, method), Some(0x8c));
    let data_alone = "10 | <MQTT> 05 02 0000 [16 <data>] <a>";
    assert_eq!(refusal(&broker, Version::V5, data_alone), Some(0x82));
    let mut client = broker.connected("c", Version::V5);
    client.send_notation("f0 | 18 [15 <SCRAM>]");
    assert_eq!(client.expect_disconnect(), ReasonCode::PROTOCOL_ERROR);
}

// 6
// [MQTT-3.1.3-5] [MQTT-3.1.3-8]
// [MQTT-3.1.1: 3.1.3-2] [MQTT-3.1.1: 3.1.3-5] [MQTT-3.1.1: 3.1.3-9]
#[test]
fn client_identifiers_of_letters_and_digits_and_longer_ones_are_taken() {
    each_broker(|broker| {
        let alphabet: Vec<char> = ('0'..='9').chain('a'..='z').chain('A'..='Z').collect();
        let mut names: Vec<String> = alphabet.chunks(23).map(String::from_iter).collect();
        names.extend(["x".to_owned(), "y".repeat(23), "\u{e9}/+#$".to_owned(), "z".repeat(1_024)]);
        for version in VERSIONS {
            for name in &names {
                let mut client = broker.client(version);
                let connack = client.connect(&connect(name, version));
                assert_eq!(connack, (false, ReasonCode::SUCCESS), "{version} {name}");
                client.ping();
            }
            let mut client = broker.client(version);
            let connack = client.connect(&connect(&"z".repeat(1_025), version));
            assert_eq!(connack, (false, ReasonCode::CLIENT_IDENTIFIER_NOT_VALID));
            client.expect_closed();
        }
    });
}

// 7
// [MQTT-3.1.4-6] [MQTT-3.2.2-6] [MQTT-3.2.2-7] [MQTT-3.2.2-8] [MQTT-4.13.2-1]
// [MQTT-3.1.1: 3.1.4-5] [MQTT-3.1.1: 3.2.2-4] [MQTT-3.1.1: 3.2.2-5]
#[test]
fn packets_after_a_refused_connect_are_not_processed() {
    each_broker(|broker| {
        let mut watcher = broker.connected("watcher", Version::V5);
        watcher.subscribe("#", QoS::AtMostOnce);
        for (version, connect, publish, code) in [
            (Version::V5, "10 | <MQTT> 05 02 0000 [15 <m>] <a>", "30 | <t> [] 'x'", 0x8c),
            (Version::V5, "10 | <MQTT> 05 03 0000 [] <a>", "30 | <t> [] 'x'", 0x81),
            (Version::V5, "10 | <MQTT> 05 06 0000 [] <a> [] <$SYS/w> <x>", "30 | <t> [] 'x'", 0x87),
            (Version::V311, "10 | <MQTT> 04 00 0000 <>", "30 | <t> 'x'", 2),
            (Version::V311, "10 | <MQTT> 04 06 0000 <a> <$SYS/w> <x>", "30 | <t> 'x'", 5),
            (Version::V31, "10 | <MQIsdp> 05 02 0000 <a>", "30 | <t> 'x'", 1),
        ] {
            let mut client = broker.client(version);
            client.send_raw(&[packet(connect), packet(publish)].concat());
            client.expect(|packet| match packet {
                // Decoding it says that its code is one of those that there are.
                Packet::ConnAck(connack) => {
                    let said = match version {
                        Version::V5 => connack.reason.value(),
                        _ => connack.reason.to_connack_v3(),
                    };
                    assert_eq!((connack.session_present, said), (false, code));
                }
                other => panic!("{other:?}"),
            });
            client.expect_closed();
        }
        watcher.ping();
        assert_eq!(broker.counter("sessions"), 1);
    });
}

// 8
// [MQTT-3.2.0-1] [MQTT-3.2.0-2]
// [MQTT-3.1.1: 3.2.0-1] [MQTT-3.1.1: 3.1.2-5] [MQTT-3.1.1: 4.1.0-1] [MQTT-3.1.1: 4.1.0-2]
#[test]
fn connack_comes_once_and_before_what_has_waited() {
    each_broker(|broker| {
        for version in [Version::V311, Version::V5] {
            let session_expiry_s = (version == Version::V5).then_some(60);
            let properties = ConnectProperties { session_expiry_s, ..Default::default() };
            let keep = Connect { clean_start: false, properties, ..connect("c", version) };
            let mut client = broker.client(version);
            client.connect(&keep);
            client.subscribe("t", QoS::ExactlyOnce);
            let mut publisher = broker.connected("pub", version);
            for round in 0..3_u8 {
                drop(client);
                for i in 0..20 {
                    let qos = if i % 2 == 0 { QoS::AtLeastOnce } else { QoS::ExactlyOnce };
                    publisher.publish("t", &[round, i], qos, false);
                }
                client = broker.client(version);
                // `connect` takes the first packet for CONNACK, `receive` all others for PUBLISH.
                assert_eq!(client.connect(&keep), (true, ReasonCode::SUCCESS));
                for i in 0..20 {
                    assert_eq!(client.receive_and_ack().payload, [round, i]);
                }
                client.ping();
            }
            drop(client);
            broker.connected("c", version).disconnect();
        }
    });
}

// 12
// [MQTT-3.1.2-22]
// [MQTT-3.1.1: 3.1.2-24]
#[test]
fn bytes_that_never_become_a_packet_do_not_keep_a_client() {
    let broker = TestBroker::start(1);
    let mut dripping = broker.client(Version::V5);
    dripping.connect(&Connect { keep_alive_s: 1, ..connect("dripping", Version::V5) });
    // Half a megabyte is no more than a PUBLISH may have: this one might come to its end.
    dripping.send_raw(&[0x30, 0xff, 0xff, 0x1f]);
    let start = Instant::now();
    let goodbye = loop {
        let _ = std::io::Write::write_all(&mut dripping.stream, b"x");
        match dripping.frame_within(Duration::from_millis(100)) {
            Ok(frame) => break frame.expect("DISCONNECT before the close"),
            Err(tacho_testkit::TimedOut) => assert!(start.elapsed() < tacho_testkit::PATIENCE),
        }
    };
    assert_eq!((goodbye[0], goodbye[2]), (0xe0, 0x8d));
}

// 12
// [MQTT-3.12.4-1]
// [MQTT-3.1.1: 3.12.4-1]
#[test]
fn each_ping_is_answered() {
    let broker = TestBroker::start(1);
    for version in VERSIONS {
        let mut client = broker.connected("c", version);
        client.send_raw(&[0xc0, 0].repeat(50));
        for _ in 0..50 {
            assert_eq!(client.frame().unwrap(), [0xd0, 0]);
        }
        client.expect_nothing();
    }
}

// 49
// [MQTT-3.1.2-28]
#[test]
fn response_information_is_for_those_who_ask() {
    let ask = |broker: &TestBroker, client_id: &str, asked| {
        let properties =
            ConnectProperties { request_response_information: asked, ..Default::default() };
        let connect = Connect { properties, ..connect(client_id, Version::V5) };
        broker.client(Version::V5).connect_with(&connect, |connack| {
            assert_eq!(connack.reason, ReasonCode::SUCCESS);
            connack.properties.response_information.map(str::to_owned)
        })
    };
    let broker =
        TestBroker::configured("shards = 1\nresponse_information = \"answers/{client_id}/\"");
    assert_eq!(ask(&broker, "me", Some(true)).as_deref(), Some("answers/me/"));
    assert_eq!(ask(&broker, "me", Some(false)), None);
    assert_eq!(ask(&broker, "me", None), None);
    // No client can publish there.
    assert_eq!(ask(&broker, "me+you", Some(true)), None);
    assert_eq!(ask(&TestBroker::start(1), "me", Some(true)), None);
}
