//! Packets that no client may send, on an established connection: 5.0 is told why, 3.x closed.

use tacho_codec::{Connect, ConnectProperties, Packet, ReasonCode, Version};

use tacho_testkit::{TestBroker, VERSIONS, connect, packet};

const MALFORMED: u8 = 0x81;
const PROTOCOL: u8 = 0x82;
const TOPIC_NAME: u8 = 0x90;

/// In every version's form; `[]` is where 5.0 has its properties.
const IN_ALL_VERSIONS: &[(&str, u8, &str)] = &[
    // 14
    ("30 80 80 80 80 01", MALFORMED, "a remaining length of five bytes"),
    // 15
    ("30 | 0003 eda080 []", MALFORMED, "a surrogate"),
    ("30 | 0002 c080 []", MALFORMED, "an overlong form"),
    ("30 | 0002 e282 []", MALFORMED, "a cut sequence"),
    ("30 | 0003 610062 []", MALFORMED, "U+0000"),
    ("82 | 0001 [] 0002 c080 00", MALFORMED, "an overlong form in a filter"),
    ("a2 | 0001 [] 0003 610062", MALFORMED, "U+0000 in a filter"),
    // 16
    ("80 | 0001 [] <a> 00", MALFORMED, "SUBSCRIBE with flags 0000"),
    ("a0 | 0001 [] <a>", MALFORMED, "UNSUBSCRIBE with flags 0000"),
    ("60 | 0001", MALFORMED, "PUBREL with flags 0000"),
    ("42 | 0001", MALFORMED, "PUBACK with flags 0010"),
    ("c1 00", MALFORMED, "PINGREQ with flags 0001"),
    ("e1 00", MALFORMED, "DISCONNECT with flags 0001"),
    // 17
    ("32 | <a> 0000 []", PROTOCOL, "PUBLISH with identifier 0"),
    ("82 | 0000 [] <a> 00", PROTOCOL, "SUBSCRIBE with identifier 0"),
    ("a2 | 0000 [] <a>", PROTOCOL, "UNSUBSCRIBE with identifier 0"),
    ("40 | 0000", PROTOCOL, "PUBACK with identifier 0"),
    ("62 | 0000", PROTOCOL, "PUBREL with identifier 0"),
    // 18
    ("36 | <a> 0001 []", MALFORMED, "QoS 3"),
    ("38 | <a> []", MALFORMED, "DUP with QoS 0"),
    ("30 | <a/+> []", TOPIC_NAME, "a wildcard in a topic name"),
    ("30 | <#> []", TOPIC_NAME, "a wildcard as topic name"),
    // 19
    ("82 | 0001 []", PROTOCOL, "SUBSCRIBE without filter"),
    ("a2 | 0001 []", PROTOCOL, "UNSUBSCRIBE without filter"),
    ("82 | 0001 [] <a>", MALFORMED, "SUBSCRIBE without the options byte"),
    ("82 | 0001 [] <a> 03", MALFORMED, "SUBSCRIBE with QoS 3"),
    ("82 | 0001 [] <a> c0", MALFORMED, "SUBSCRIBE with reserved option bits"),
    // 21
    ("20 | 00 00 []", PROTOCOL, "CONNACK from a client"),
    ("90 | 0001 [] 00", PROTOCOL, "SUBACK from a client"),
    ("b0 | 0001", PROTOCOL, "UNSUBACK from a client"),
    ("d0 00", PROTOCOL, "PINGRESP from a client"),
    ("c0 01 00", MALFORMED, "PINGREQ with a body"),
    ("00 00", MALFORMED, "packet type 0"),
    // 22
    ("40 01 00", MALFORMED, "half an identifier"),
    ("40 | 0001 ff", MALFORMED, "an unknown reason code, or a body too long"),
];

const IN_V5: &[(&str, u8, &str)] = &[
    // 14
    ("30 | <a> 80 00", MALFORMED, "an overlong property length"),
    // 15
    ("30 | <a> [26 0002 c080 <v>]", MALFORMED, "an overlong form in a user property"),
    // 18
    ("30 | <> []", PROTOCOL, "no topic and no alias"),
    // 19
    ("82 | 0001 [] <a> 30", PROTOCOL, "retain handling 3"),
    // 22
    ("40 | 0001 00 [26 <k>]", MALFORMED, "a cut property of an acknowledgement"),
    // 23
    ("30 | <a> [11 00000001]", PROTOCOL, "a property that PUBLISH has not"),
    ("30 | <a> [02 00000001 02 00000001]", PROTOCOL, "a property twice"),
    ("30 | <a> 7f 01 00", MALFORMED, "properties past the end"),
    ("30 | <a> [01 02]", PROTOCOL, "a boolean of 2"),
    ("82 | 0001 [0b 00] <a> 00", PROTOCOL, "subscription identifier 0"),
    ("82 | 0001 [0b 01 0b 02] <a> 00", PROTOCOL, "two subscription identifiers"),
    ("30 | <a> [0b 01]", PROTOCOL, "a subscription identifier from a client"),
    // 50
    ("30 | <a> [08 <a/#>]", PROTOCOL, "a response topic with a wildcard"),
    // 46
    ("30 | <a> [23 0000]", 0x94, "topic alias 0"),
];

const IN_V3: &[(&str, &str)] = &[
    // 18
    ("30 | <>", "an empty topic"),
    // 21
    ("f0 | 00 []", "AUTH"),
    ("e0 01 00", "DISCONNECT with a body"),
    // 22
    ("40 | 0001 00", "an acknowledgement with a reason code"),
];

/// 0x81 and 0x82 are hard to tell apart and clients cannot do anything with the difference, but a
/// change of ours should be seen.
#[track_caller]
fn refuses(broker: &TestBroker, version: Version, packet: &str, reason: u8, what: &str) {
    let mut client = broker.connected("client", version);
    client.send_notation(packet);
    if version == Version::V5 {
        let said = client.frame().unwrap_or_else(|| panic!("{what}: closed without DISCONNECT"));
        assert_eq!(said[0], 0xe0, "{what}: {said:02x?}");
        let said = said[2];
        let either = matches!(said, MALFORMED | PROTOCOL) && matches!(reason, MALFORMED | PROTOCOL);
        assert!(said == reason || either, "{what}: expected {reason:#04x}, got {said:#04x}");
    }
    assert_eq!(client.frame(), None, "{what}: {version:?} not closed");
}

// 14 to 19, 21, 22, 24
// [MQTT-1.5.4-1] [MQTT-1.5.4-2] [MQTT-2.1.3-1] [MQTT-2.2.1-3] [MQTT-3.3.1-2] [MQTT-3.3.1-4]
// [MQTT-3.3.2-2] [MQTT-3.6.1-1] [MQTT-3.8.1-1] [MQTT-3.8.3-2] [MQTT-3.8.3-5] [MQTT-3.10.1-1]
// [MQTT-3.10.3-2] [MQTT-3.14.1-1] [MQTT-4.7.0-1] [MQTT-4.13.1-1] [MQTT-4.13.2-1]
// [MQTT-3.1.1: 1.5.3-1] [MQTT-3.1.1: 1.5.3-2] [MQTT-3.1.1: 2.2.2-1] [MQTT-3.1.1: 2.2.2-2]
// [MQTT-3.1.1: 2.3.1-1] [MQTT-3.1.1: 3.3.1-2] [MQTT-3.1.1: 3.3.1-4] [MQTT-3.1.1: 3.3.2-2]
// [MQTT-3.1.1: 3.6.1-1] [MQTT-3.1.1: 3.8.1-1] [MQTT-3.1.1: 3.8.3-3] [MQTT-3.1.1: 3.8.3-4]
// [MQTT-3.1.1: 3.10.1-1] [MQTT-3.1.1: 3.10.3-2] [MQTT-3.1.1: 3.14.1-1] [MQTT-3.1.1: 4.7.1-1]
// [MQTT-3.1.1: 4.8.0-1]
// [MQTT-3.1.1: 3.3.2-1]
#[test]
fn illegal_packets_close_the_connection_with_the_reason() {
    let broker = TestBroker::start(1);
    for (packet, reason, what) in IN_ALL_VERSIONS {
        for version in VERSIONS {
            // 3.1.1 has no properties; a lone `[]` is their empty block.
            let packet = match version {
                Version::V5 => (*packet).to_owned(),
                _ => packet.replace("[]", ""),
            };
            refuses(&broker, version, &packet, *reason, what);
        }
    }
    let expected = IN_ALL_VERSIONS.len() as u64 * 3;
    assert_eq!(broker.counter("protocol_errors_total"), expected);
}

// 14, 15, 18, 19, 22, 23, 46, 50
// [MQTT-1.5.5-1] [MQTT-1.5.7-1] [MQTT-3.3.2-8] [MQTT-3.3.2-14] [MQTT-3.3.4-6] [MQTT-4.13.1-1]
#[test]
fn illegal_properties_close_the_connection_with_the_reason() {
    let broker = TestBroker::start(1);
    for (packet, reason, what) in IN_V5 {
        refuses(&broker, Version::V5, packet, *reason, what);
    }
}

// 18, 21, 22, 24
#[test]
fn v5_only_features_close_older_connections() {
    let broker = TestBroker::start(1);
    for (packet, what) in IN_V3 {
        refuses(&broker, Version::V311, packet, 0, what);
    }
}

// 15
// [MQTT-1.5.4-3] [MQTT-4.7.3-4]
// [MQTT-3.1.1: 1.5.3-3] [MQTT-3.1.1: 4.7.3-4]
#[test]
fn byte_order_mark_is_part_of_the_topic() {
    let broker = TestBroker::start(1);
    let mut client = broker.connected("c", Version::V5);
    client.subscribe("\u{feff}t", tacho_codec::QoS::AtMostOnce);
    client.publish("t", b"without", tacho_codec::QoS::AtMostOnce, false);
    client.publish("\u{feff}t", b"with", tacho_codec::QoS::AtMostOnce, false);
    let message = client.receive();
    assert_eq!((message.topic.as_str(), message.payload.as_slice()), ("\u{feff}t", &b"with"[..]));
}

// 22
#[test]
fn v5_acknowledgements_may_be_short_or_long() {
    let broker = TestBroker::start(1);
    let mut client = broker.connected("c", Version::V5);
    client.subscribe("t", tacho_codec::QoS::AtLeastOnce);
    for ack in ["00", "00 []", "10 [1f <why> 26 <k> <v>]", ""] {
        client.publish("t", b"x", tacho_codec::QoS::AtMostOnce, false);
        client.send_notation("32 | <t> 7fff [] 'x'");
        let mut id = None;
        for _ in 0..3 {
            let bytes = client.frame().unwrap();
            if bytes[0] == 0x32 {
                id = Some(u16::from_be_bytes([bytes[5], bytes[6]]));
            }
        }
        client.send_notation(&format!("40 | {:04x} {ack}", id.expect("a QoS 1 delivery")));
        client.ping();
    }
}

// 19
// [MQTT-3.8.3-4]
#[test]
fn no_local_on_a_shared_subscription_is_a_protocol_error() {
    let broker = TestBroker::start(3);
    let mut client = broker.connected("c", Version::V5);
    client.send_notation("82 | 0001 [] <plain> 00 <$share/g/a> 04");
    assert_eq!(client.expect_disconnect(), ReasonCode::PROTOCOL_ERROR);
}

/// A legal packet of each type that a client sends on a connection of 5.0.
const LEGAL: &[&str] = &[
    "32 | <a> 0001 [26 <k> <v>] 'x'",
    "40 | 0001 00 [26 <k> <v>]",
    "50 | 0001 00 [26 <k> <v>]",
    "62 | 0001 00 [26 <k> <v>]",
    "70 | 0001 00 [26 <k> <v>]",
    "82 | 0001 [26 <k> <v>] <a> 00",
    "a2 | 0001 [26 <k> <v>] <a>",
    "c0 |",
    "e0 | 00 [26 <k> <v>]",
    "f0 | 18 [15 <m>]",
];

// 5, 16, 21 to 24
// [MQTT-2.1.3-1] [MQTT-3.6.1-1] [MQTT-3.8.1-1] [MQTT-3.10.1-1] [MQTT-3.14.1-1] [MQTT-3.15.1-1]
// [MQTT-4.13.1-1] [MQTT-3.14.2-1] [MQTT-3.14.2-2] [MQTT-3.14.4-1] [MQTT-3.14.4-2]
#[test]
fn each_packet_type_with_wrong_flags_trailing_bytes_or_a_cut_is_malformed() {
    let broker = TestBroker::start(2);
    for legal in LEGAL {
        let whole = packet(legal);
        let mut wrong: Vec<(String, Vec<u8>)> = Vec::new();
        if whole[0] >> 4 != 3 {
            for flags in (0..16).filter(|flags| *flags != whole[0] & 0x0f) {
                let mut bytes = whole.clone();
                bytes[0] = bytes[0] & 0xf0 | flags;
                wrong.push((format!("flags {flags:04b}"), bytes));
            }
            // The payload of PUBLISH has no end of its own.
            let mut longer = whole.clone();
            longer.push(0);
            longer[1] += 1;
            wrong.push(("a byte more".to_owned(), longer));
        }
        // Two bytes less are two bytes less of the last property or filter.
        if whole.len() > 8 && !legal.ends_with("'x'") {
            let mut shorter = whole.clone();
            shorter.truncate(whole.len() - 2);
            shorter[1] -= 2;
            wrong.push(("two bytes less".to_owned(), shorter));
        }
        for (what, bytes) in wrong {
            let mut client = broker.connected("client", Version::V5);
            client.send_raw(&bytes);
            let said = client.expect(|packet| match packet {
                // Decoding refuses a session expiry and codes that a server must not send.
                Packet::Disconnect(disconnect) => disconnect.reason.value(),
                other => panic!("{legal}, {what}: {other:?}"),
            });
            assert!(matches!(said, MALFORMED | PROTOCOL), "{legal}, {what}: {said:#04x}");
            client.expect_closed();
        }
    }
}

// 24, 49
// [MQTT-3.1.2-24] [MQTT-3.1.2-29] [MQTT-3.14.2-3] [MQTT-3.14.4-1]
#[test]
fn disconnect_says_why_where_the_client_takes_it() {
    let broker = TestBroker::start(1);
    let goodbye = |packet_size_max, wrong| {
        let mut client = broker.client(Version::V5);
        let properties = ConnectProperties { packet_size_max, ..Default::default() };
        client.connect(&Connect { properties, ..connect("c", Version::V5) });
        client.send_notation(wrong);
        client.expect(|packet| match packet {
            Packet::Disconnect(d) => (d.reason, d.reason_string.map(str::to_owned)),
            other => panic!("{other:?}"),
        })
    };
    for (wrong, reason, word) in [
        ("36 | <a> 0001 []", ReasonCode::MALFORMED_PACKET, "QoS"),
        ("10 | <MQTT> 05 02 0000 [] <c>", ReasonCode::PROTOCOL_ERROR, "CONNECT"),
        ("f0 | 19 [15 <m>]", ReasonCode::PROTOCOL_ERROR, "AUTH"),
        ("e0 | 00 [11 00000001]", ReasonCode::PROTOCOL_ERROR, "expiry"),
        ("30 | <> [23 0001]", ReasonCode::PROTOCOL_ERROR, "alias"),
    ] {
        let (said, why) = goodbye(None, wrong);
        assert_eq!(said, reason, "{wrong}");
        assert!(why.as_deref().is_some_and(|why| why.contains(word)), "{wrong}: {why:?}");
        assert_eq!(goodbye(Some(24), wrong), (reason, None), "{wrong}");
    }
}

// 14
// [MQTT-1.5.5-1]
#[test]
fn remaining_lengths_longer_than_needed_are_for_older_versions() {
    let broker = TestBroker::start(1);
    for wrong in ["c0 80 00", "40 82 00 0001", "30 84 80 00 <a> [] "] {
        let mut client = broker.connected("c", Version::V5);
        client.send_notation(wrong);
        assert_eq!(client.expect_disconnect(), ReasonCode::MALFORMED_PACKET, "{wrong}");
    }
    let mut old = broker.connected("old", Version::V311);
    old.send_notation("40 82 00 0001 c0 80 00");
    assert_eq!(old.frame().unwrap(), [0xd0, 0]);
}

// 22, 26, 33
// [MQTT-3.4.2-1] [MQTT-3.5.2-1] [MQTT-3.6.2-1] [MQTT-3.7.2-1] [MQTT-2.2.1-5]
// [MQTT-3.1.1: 3.3.5-2]
#[test]
fn answers_have_a_code_of_their_kind_and_no_properties() {
    let broker = TestBroker::start(1);
    for (question, answer) in [
        ("32 | <t> 0001 []", "40 | 0001"),
        ("34 | <t> 0002 []", "50 | 0002"),
        ("32 | <$SYS/x> 0003 []", "40 | 0003 87"),
        ("34 | <$SYS/x> 0004 []", "50 | 0004 87"),
        ("62 | 0005", "70 | 0005 92"),
        ("50 | 0006", "62 | 0006 92"),
    ] {
        let mut client = broker.connected("c", Version::V5);
        client.send_notation(question);
        let expected = packet(answer);
        assert_eq!(client.frame().unwrap(), expected, "{question}");
        // 3.1.1 has no way to refuse and acknowledges all the same.
        let mut old = broker.connected("c", Version::V311);
        old.send_notation(&question.replace("[]", ""));
        assert_eq!(old.frame().unwrap(), expected_v3(&expected), "{question}");
    }
}

/// The same acknowledgement without its reason code.
fn expected_v3(answer: &[u8]) -> Vec<u8> {
    vec![answer[0], 2, answer[2], answer[3]]
}
