//! Each field of each packet decodes to its value; values of the small types.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use std::num::NonZeroU16;

use tacho_codec::Direction::{ToClient, ToServer};
use tacho_codec::Version::{V5, V31, V311};
use tacho_codec::{
    Ack, Auth, ConnAck, ConnAckProperties, Connect, ConnectProperties, Disconnect, EncodeError,
    Packet, PacketId, Publish, PublishProperties, QoS, ReasonCode, RetainHandling, SubAck,
    Subscribe, SubscribeFilter, SubscribeOptions, SubscriptionIdsBuf, UnsubAck, Unsubscribe,
    UserProperties, UserPropertiesBuf, Version, Will, WillProperties,
};
use tacho_testkit::notation::bytes;
use tacho_testkit::packets::{decode, encode, frame};

fn id(value: u16) -> PacketId {
    PacketId::new(value).unwrap()
}

fn user_properties(pairs: &[(&str, &str)]) -> UserPropertiesBuf {
    let mut buf = UserPropertiesBuf::new();
    for (name, value) in pairs {
        buf.push(name, value).unwrap();
    }
    buf
}

#[test]
fn connect_has_its_fields() {
    let notation = "10 | <MQTT> 05 f4 003c [11 0000000a 21 0014 27 00001000 22 0005 19 01 17 00
        15 <SCRAM> 16 <first> 26 <a> <1> 26 <a> <2>] <cid>
        [18 00000005 01 01 02 0000003c 03 <text/plain> 08 <answer> 09 <id> 26 <w> <3>]
        <will/topic> <gone> <user> <secret>";
    let (connect_properties, will_properties) =
        (user_properties(&[("a", "1"), ("a", "2")]), user_properties(&[("w", "3")]));
    let expected = Connect {
        version: V5,
        clean_start: false,
        keep_alive_s: 60,
        client_id: "cid",
        username: Some("user"),
        password: Some(b"secret"),
        will: Some(Will {
            topic: "will/topic",
            payload: b"gone",
            qos: QoS::ExactlyOnce,
            retain: true,
            properties: WillProperties {
                delay_s: Some(5),
                payload_format_utf8: Some(true),
                message_expiry_s: Some(60),
                content_type: Some("text/plain"),
                response_topic: Some("answer"),
                correlation_data: Some(b"id"),
                user_properties: will_properties.view(),
            },
        }),
        properties: ConnectProperties {
            session_expiry_s: Some(10),
            receive_maximum: Some(20),
            packet_size_max: Some(4096),
            topic_alias_maximum: Some(5),
            request_response_information: Some(true),
            request_problem_information: Some(false),
            authentication_method: Some("SCRAM"),
            authentication_data: Some(b"first"),
            user_properties: connect_properties.view(),
        },
    };
    // The version of the connection is not known yet and must not matter.
    for version in Version::ALL {
        let bytes = bytes(notation);
        assert_eq!(decode(&bytes, version, ToServer), Ok(Packet::Connect(expected.clone())));
    }
}

#[test]
fn connack_has_its_fields() {
    let bytes = bytes(
        "20 | 01 00 [11 00000001 21 0002 24 01 25 00 27 00000003 12 <auto> 22 0004 1f <why> 28 00
         29 01 2a 00 13 0005 1a <base> 1c <other> 15 <SCRAM> 16 <last> 26 <a> <b>]",
    );
    let user_properties = user_properties(&[("a", "b")]);
    let expected = ConnAck {
        session_present: true,
        reason: ReasonCode::SUCCESS,
        properties: ConnAckProperties {
            session_expiry_s: Some(1),
            receive_maximum: Some(2),
            maximum_qos: Some(QoS::AtLeastOnce),
            retain_available: Some(false),
            packet_size_max: Some(3),
            assigned_client_id: Some("auto"),
            topic_alias_maximum: Some(4),
            reason_string: Some("why"),
            wildcard_subscription_available: Some(false),
            subscription_id_available: Some(true),
            shared_subscription_available: Some(false),
            server_keep_alive_s: Some(5),
            response_information: Some("base"),
            server_reference: Some("other"),
            authentication_method: Some("SCRAM"),
            authentication_data: Some(b"last"),
            user_properties: user_properties.view(),
        },
    };
    assert_eq!(decode(&bytes, V5, ToClient), Ok(Packet::ConnAck(expected)));
}

#[test]
fn publish_has_its_fields() {
    let bytes = bytes(
        "3b | <a/b> 1234 [01 01 02 0000000a 23 0003 08 <r> 09 <c> 03 <t> 0b 01 26 <k> <1>
         0b ff ff ff 7f 26 <k> <2>] 'payload'",
    );
    let user_properties = user_properties(&[("k", "1"), ("k", "2")]);
    let mut subscription_ids = SubscriptionIdsBuf::new();
    subscription_ids.push(1).unwrap();
    subscription_ids.push(268_435_455).unwrap();
    let expected = Publish {
        dup: true,
        qos: QoS::AtLeastOnce,
        retain: true,
        topic: "a/b",
        packet_id: Some(id(0x1234)),
        properties: PublishProperties {
            payload_format_utf8: Some(true),
            message_expiry_s: Some(10),
            topic_alias: NonZeroU16::new(3),
            response_topic: Some("r"),
            correlation_data: Some(b"c"),
            content_type: Some("t"),
            subscription_ids: subscription_ids.view(),
            user_properties: user_properties.view(),
        },
        payload: b"payload",
    };
    assert_eq!(Publish::decode(&frame(&bytes), V5, ToClient), Ok(expected));
    let Ok(Packet::Publish(publish)) = decode(&bytes, V5, ToClient) else { panic!("legal") };
    assert_eq!(publish, expected);
    let properties = publish.properties;
    assert_eq!(properties.subscription_ids.iter().collect::<Vec<_>>(), [1, 268_435_455]);
    assert_eq!(properties.user_properties.iter().collect::<Vec<_>>(), [("k", "1"), ("k", "2")]);
    assert_eq!(format!("{:?}", properties.user_properties), r#"[("k", "1"), ("k", "2")]"#);
    let copy = UserPropertiesBuf::from(properties.user_properties);
    assert_eq!(copy, user_properties);
}

#[test]
fn the_other_packets_have_their_fields() {
    let user = user_properties(&[("a", "b")]);
    let user_properties = user.view();
    let qos = QoS::AtLeastOnce;
    let cases = [
        (
            ToServer,
            "50 | 0007 97 [1f <full> 26 <a> <b>]",
            Packet::PubRec(Ack {
                packet_id: id(7),
                reason: ReasonCode::QUOTA_EXCEEDED,
                reason_string: Some("full"),
                user_properties,
            }),
        ),
        (
            ToServer,
            "82 | 0007 [0b 09 26 <a> <b>] <x/+> 1d <y> 21",
            Packet::Subscribe(Subscribe {
                packet_id: id(7),
                subscription_id: Some(9),
                user_properties,
                filters: vec![
                    SubscribeFilter {
                        filter: "x/+",
                        options: SubscribeOptions {
                            qos,
                            no_local: true,
                            retain_as_published: true,
                            retain_handling: RetainHandling::IfNew,
                        },
                    },
                    SubscribeFilter {
                        filter: "y",
                        options: SubscribeOptions {
                            retain_handling: RetainHandling::Never,
                            ..SubscribeOptions::new(qos)
                        },
                    },
                ],
            }),
        ),
        (
            ToClient,
            "90 | 0007 [1f <so> 26 <a> <b>] 01 87",
            Packet::SubAck(SubAck {
                packet_id: id(7),
                reasons: vec![ReasonCode::granted(qos), ReasonCode::NOT_AUTHORIZED],
                reason_string: Some("so"),
                user_properties,
            }),
        ),
        (
            ToServer,
            "a2 | 0007 [26 <a> <b>] <x> <y>",
            Packet::Unsubscribe(Unsubscribe {
                packet_id: id(7),
                user_properties,
                filters: vec!["x", "y"],
            }),
        ),
        (
            ToClient,
            "b0 | 0007 [1f <so> 26 <a> <b>] 00 11",
            Packet::UnsubAck(UnsubAck {
                packet_id: id(7),
                reasons: vec![ReasonCode::SUCCESS, ReasonCode::NO_SUBSCRIPTION_EXISTED],
                reason_string: Some("so"),
                user_properties,
            }),
        ),
        (
            ToServer,
            "e0 | 04 [11 0000000a 1f <so> 26 <a> <b>]",
            Packet::Disconnect(Disconnect {
                reason: ReasonCode::DISCONNECT_WITH_WILL_MESSAGE,
                session_expiry_s: Some(10),
                reason_string: Some("so"),
                server_reference: None,
                user_properties,
            }),
        ),
        (
            ToServer,
            "f0 | 19 [15 <m> 16 <d> 1f <so> 26 <a> <b>]",
            Packet::Auth(Auth {
                reason: ReasonCode::REAUTHENTICATE,
                method: Some("m"),
                data: Some(b"d"),
                reason_string: Some("so"),
                user_properties,
            }),
        ),
    ];
    for (direction, notation, expected) in cases {
        assert_eq!(decode(&bytes(notation), V5, direction), Ok(expected), "{notation}");
    }
}

// 3
#[test]
fn the_version_of_a_refusal_follows_from_the_start_of_connect() {
    let cases = [
        ("10 | <MQTT> 05 ff", Some(V5)),
        ("10 | <MQTT> 06 02 0000 <>", Some(V5)),
        ("10 | <MQTT> 04 ff", Some(V311)),
        ("10 | <MQTT> 03 00", Some(V311)),
        ("10 | <MQTT> 84 00", Some(V311)), // a mosquitto bridge probes for another mosquitto
        ("10 | <MQIsdp> 83 00", Some(V31)),
        ("10 | <MQIsdp> 04 00", Some(V31)),
        ("10 | <HTTP> 05 00", None),
        ("10 | <MQTT>", None),
        ("10 | 0009 'MQ'", None),
    ];
    for (notation, expected) in cases {
        let bytes = bytes(notation);
        assert!(Connect::decode(&frame(&bytes)).is_err());
        assert_eq!(Connect::reply_version(&frame(&bytes)), expected, "{notation}");
    }
}

#[test]
fn older_versions_omit_fields_that_they_do_not_have() {
    let user_properties = user_properties(&[("a", "b")]);
    let ack = Ack {
        packet_id: id(1),
        reason: ReasonCode::NOT_AUTHORIZED,
        reason_string: Some("no"),
        user_properties: user_properties.view(),
    };
    let properties = PublishProperties { message_expiry_s: Some(1), ..Default::default() };
    let publish = Publish { topic: "a", properties, ..Default::default() };
    let suback = SubAck {
        packet_id: id(1),
        reasons: vec![ReasonCode::GRANTED_QOS_2, ReasonCode::QUOTA_EXCEEDED],
        reason_string: Some("no"),
        user_properties: user_properties.view(),
    };
    let connack = ConnAck { session_present: true, ..ConnAck::default() };
    let cases = [
        (Packet::PubAck(ack), "40 02 0001"),
        (Packet::Publish(publish), "30 | <a>"),
        (Packet::SubAck(suback), "90 | 0001 02 80"),
        (Packet::Disconnect(Disconnect::new(ReasonCode::PROTOCOL_ERROR)), "e0 00"),
        (Packet::ConnAck(ConnAck::refusal(ReasonCode::BANNED)), "20 | 00 05"),
        (
            Packet::ConnAck(ConnAck { reason: ReasonCode::SERVER_BUSY, ..connack.clone() }),
            "20 | 00 03",
        ),
    ];
    for (packet, notation) in cases {
        for version in [V31, V311] {
            assert_eq!(encode(&packet, version), bytes(notation), "{version} {packet:?}");
        }
    }
    assert_eq!(encode(&Packet::ConnAck(connack.clone()), V31), bytes("20 | 00 00"));
    assert_eq!(encode(&Packet::ConnAck(connack), V311), bytes("20 | 01 00"));
}

#[test]
fn a_failed_encode_leaves_the_buffer_unchanged() {
    let long = "x".repeat(65_536);
    let publish = Publish { topic: "a", ..Publish::default() };
    let subscribe = Subscribe {
        packet_id: id(1),
        subscription_id: Some(0),
        user_properties: UserProperties::EMPTY,
        filters: vec![SubscribeFilter { filter: "a", options: SubscribeOptions::default() }],
    };
    let connect = Connect {
        version: V311,
        clean_start: true,
        keep_alive_s: 0,
        client_id: "",
        username: None,
        password: Some(b"x"),
        will: None,
        properties: ConnectProperties::default(),
    };
    let cases = [
        (Packet::Publish(Publish { topic: &long, ..publish }), V311, EncodeError::FieldTooLong),
        (
            Packet::Publish(Publish { qos: QoS::AtLeastOnce, ..publish }),
            V311,
            EncodeError::PacketIdMismatch,
        ),
        (
            Packet::Publish(Publish { packet_id: Some(id(1)), ..publish }),
            V5,
            EncodeError::PacketIdMismatch,
        ),
        (Packet::Subscribe(subscribe.clone()), V5, EncodeError::SubscriptionIdOutOfRange),
        (
            Packet::Subscribe(Subscribe { filters: vec![], ..subscribe }),
            V311,
            EncodeError::NoEntries,
        ),
        (Packet::Auth(Auth::default()), V311, EncodeError::NotInVersion),
        (Packet::Connect(connect), V311, EncodeError::PasswordWithoutUsername),
        (
            Packet::Disconnect(Disconnect { reason_string: Some(&long), ..Disconnect::default() }),
            V5,
            EncodeError::FieldTooLong,
        ),
    ];
    for (packet, version, error) in cases {
        let mut out = vec![1, 2, 3];
        assert_eq!(packet.encode(version, &mut out), Err(error), "{packet:?}");
        assert_eq!(out, [1, 2, 3]);
        assert_eq!(packet.encoded_len(version), Err(error));
        assert!(!error.to_string().is_empty());
    }
    let huge = vec![0; 268_435_455];
    let too_large = Publish { payload: &huge, ..publish };
    assert_eq!(too_large.encoded_len(V311), Err(EncodeError::PacketTooLarge));
    let largest = Publish { payload: &huge[3..], ..publish };
    assert_eq!(largest.encoded_len(V311), Ok(268_435_460));
}

// 49
#[test]
fn problem_information_can_be_omitted() {
    let cases = [
        (ToClient, "20 | 00 87 [1f <why> 1c <other> 26 <a> <b>]", "20 | 00 87 [1c <other>]"),
        (ToClient, "40 | 0001 97 [1f <why> 26 <a> <b>]", "40 | 0001 97"),
        (ToClient, "50 | 0001 00 [1f <why>]", "50 | 0001"),
        (ToClient, "62 | 0001 92 [26 <a> <b>]", "62 | 0001 92"),
        (ToClient, "70 | 0001 92 [26 <a> <b>]", "70 | 0001 92"),
        (ToClient, "90 | 0001 [1f <why>] 87", "90 | 0001 [] 87"),
        (ToClient, "b0 | 0001 [1f <why>] 00", "b0 | 0001 [] 00"),
        (ToClient, "e0 | 9d [1f <why> 1c <other>]", "e0 | 9d [1c <other>]"),
        (ToServer, "f0 | 18 [15 <m> 1f <why>]", "f0 | 18 [15 <m>]"),
        (ToClient, "30 | <a> [26 <a> <b>]", "30 | <a> [26 <a> <b>]"),
        (ToServer, "82 | 0001 [26 <a> <b>] <a> 00", "82 | 0001 [26 <a> <b>] <a> 00"),
    ];
    for (direction, whole, expected) in cases {
        let whole = bytes(whole);
        let packet = decode(&whole, V5, direction).unwrap().without_problem_information();
        assert_eq!(encode(&packet, V5), bytes(expected));
    }
}

#[test]
fn builders_refuse_forbidden_values() {
    let mut properties = UserPropertiesBuf::new();
    assert_eq!(properties.push("a\0", "b"), Err(EncodeError::InvalidText));
    assert_eq!(properties.push("a", "b\n"), Err(EncodeError::InvalidText));
    assert_eq!(properties.push(&"x".repeat(65_536), "b"), Err(EncodeError::FieldTooLong));
    assert!(properties.view().is_empty());
    let mut ids = SubscriptionIdsBuf::new();
    assert_eq!(ids.push(0), Err(EncodeError::SubscriptionIdOutOfRange));
    assert_eq!(ids.push(268_435_456), Err(EncodeError::SubscriptionIdOutOfRange));
    assert!(ids.view().is_empty());
    ids.push(5).unwrap();
    ids.clear();
    assert!(ids.view().is_empty());
}

#[test]
fn packet_ids_wrap_around_without_zero() {
    assert_eq!(PacketId::new(0), None);
    assert_eq!(PacketId::FIRST.get(), 1);
    assert_eq!(id(1).next(), id(2));
    assert_eq!(id(65_535).next(), id(1));
}

#[test]
fn reason_codes_map_to_the_return_codes_of_older_versions() {
    for code in 0..=5 {
        assert_eq!(ReasonCode::from_connack_v3(code).unwrap().to_connack_v3(), code);
    }
    assert_eq!(ReasonCode::from_connack_v3(6), None);
    let known = (0..=u8::MAX).filter_map(ReasonCode::from_u8).collect::<Vec<_>>();
    assert_eq!(known.len(), 43);
    for reason in known {
        assert_eq!(reason.is_error(), reason.value() >= 0x80);
        assert_eq!(reason.to_connack_v3() != 0, reason.is_error(), "{reason}");
        assert_ne!(reason.name(), "unknown reason code");
    }
    assert_eq!(ReasonCode::PROTOCOL_ERROR.to_string(), "protocol error (0x82)");
}

/// Behind the filters that a receiver takes nothing is read: what follows here is no filter.
#[test]
fn a_packet_with_too_many_filters_is_refused_before_they_are_read() {
    for notation in ["82 | 0001 <a> 00 <b> 00 ff", "a2 | 0001 <a> <b> ff"] {
        let bytes = bytes(notation);
        let frame = frame(&bytes);
        let bounded = |max| Packet::decode_bounded(&frame, V311, ToServer, max).unwrap_err();
        assert_eq!(bounded(2).reason, ReasonCode::QUOTA_EXCEEDED, "{notation}");
        assert_eq!(bounded(3).reason, ReasonCode::MALFORMED_PACKET, "{notation}");
    }
}
