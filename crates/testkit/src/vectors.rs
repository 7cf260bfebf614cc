//! Handwritten packets: legal ones in canonical form, legal ones in other forms, illegal ones.

use tacho_codec::Direction::{ToClient, ToServer};
use tacho_codec::Version::{V5, V31, V311};
use tacho_codec::{Direction, ReasonCode, Version};

/// A legal packet: version, direction, notation.
pub type Valid = (Version, Direction, &'static str);

/// Packets that decode, and encode to the same bytes.
pub const CANONICAL: &[Valid] = &[
    // CONNECT
    (V31, ToServer, "10 | <MQIsdp> 03 02 003c <cid>"),
    (V31, ToServer, "10 | <MQIsdp> 03 c2 003c <cid> <user> <secret>"),
    (V311, ToServer, "10 | <MQTT> 04 02 0000 <>"),
    (V311, ToServer, "10 | <MQTT> 04 00 003c <cid>"),
    (V311, ToServer, "10 | <MQTT> 04 82 003c <> <user>"),
    (V311, ToServer, "10 | <MQTT> 04 f6 ffff <cid> <will/topic> <gone> <user> <secret>"),
    (V5, ToServer, "10 | <MQTT> 05 00 003c [] <>"),
    (V5, ToServer, "10 | <MQTT> 05 42 003c [] <cid> <password without user name>"),
    (
        V5,
        ToServer,
        "10 | <MQTT> 05 02 003c [11 ffffffff 21 0001 27 00000001 22 ffff 19 01 17 00
        15 <SCRAM> 16 <data> 26 <k> <v> 26 <k> <>] <cid>",
    ),
    (
        V5,
        ToServer,
        "10 | <MQTT> 05 2e 003c [] <cid>
        [18 0000000a 01 01 02 0000003c 03 <text/plain> 08 <answer/here> 09 <id> 26 <a> <b>]
        <will> <>",
    ),
    // CONNACK
    (V31, ToClient, "20 | 00 00"),
    (V311, ToClient, "20 | 01 00"),
    (V311, ToClient, "20 | 00 05"),
    (V5, ToClient, "20 | 01 00 []"),
    (V5, ToClient, "20 | 00 84 []"),
    (
        V5,
        ToClient,
        "20 | 00 00 [11 00000000 21 000a 24 01 25 00 27 00100000 12 <auto-1> 22 0010
        1f <hello> 28 00 29 00 2a 00 13 0000 1a <base> 1c <other> 15 <SCRAM> 16 <x> 26 <> <>]",
    ),
    // PUBLISH
    (V31, ToServer, "30 | <a> 'x'"),
    (V311, ToServer, "31 | <a/b>"),
    (V311, ToServer, "32 | <a/b> 0001 'payload'"),
    (V311, ToClient, "3d | <a/b> ffff ff00"),
    (V5, ToServer, "30 | <a/b> [] 'x'"),
    (V5, ToServer, "30 | <> [23 0001]"),
    (
        V5,
        ToServer,
        "34 | <$x//> 0001 [01 00 02 ffffffff 23 ffff 08 <r> 09 <> 03 <>
        26 <k> <1> 26 <k> <0>]",
    ),
    (V5, ToClient, "3b | <a> 0a0b [0b 01 0b 80 01 0b ff ff ff 7f] 00"),
    (V5, ToClient, "30 | <a> [0b 05 26 <a> <b>]"),
    (V5, ToServer, "30 | <\u{FEFF}\u{e9}/\u{20ac}/\u{1f600}> []"),
    // PUBACK, PUBREC, PUBREL, PUBCOMP
    (V31, ToServer, "40 02 0001"),
    (V31, ToServer, "50 02 0001"),
    (V31, ToServer, "62 02 0001"),
    (V31, ToServer, "70 02 0001"),
    (V311, ToClient, "40 02 0001"),
    (V311, ToClient, "50 02 ffff"),
    (V311, ToServer, "62 02 0001"),
    (V311, ToServer, "70 02 0001"),
    (V5, ToServer, "40 02 0001"),
    (V5, ToServer, "40 03 0001 10"),
    (V5, ToClient, "40 | 0001 00 [1f <all good>]"),
    (V5, ToClient, "50 | 0001 97 [26 <a> <b> 26 <a> <b>]"),
    (V5, ToClient, "62 03 0001 92"),
    (V5, ToServer, "70 | 0001 92 [1f <never heard of it>]"),
    // SUBSCRIBE
    (V31, ToServer, "82 | 0001 <a/+/#> 01"),
    (V311, ToServer, "82 | 0001 <#> 00 <+> 01 <$share/g/x> 02"),
    (V5, ToServer, "82 | ffff [] <a> 2e"),
    (V5, ToServer, "82 | 0001 [0b ffffff7f 26 <k> <v>] <a> 00 <$share/g/a> 19"),
    // SUBACK
    (V31, ToClient, "90 | 0001 02"),
    (V311, ToClient, "90 | 0001 00 01 02 80"),
    (V5, ToClient, "90 | 0001 [] 00 01 02 80 83 87 8f 91 97 9e a1 a2"),
    (V5, ToClient, "90 | 0001 [1f <no> 26 <a> <b>] 87"),
    // UNSUBSCRIBE and UNSUBACK
    (V31, ToServer, "a2 | 0001 <a>"),
    (V311, ToServer, "a2 | 0001 <a> <b/#>"),
    (V5, ToServer, "a2 | 0001 [26 <k> <v>] <a>"),
    (V31, ToClient, "b0 02 0001"),
    (V311, ToClient, "b0 02 0001"),
    (V5, ToClient, "b0 | 0001 [] 00 11 80 83 87 8f 91"),
    (V5, ToClient, "b0 | 0001 [1f <done> 26 <a> <b>] 00"),
    // PINGREQ, PINGRESP
    (V31, ToServer, "c0 00"),
    (V311, ToServer, "c0 00"),
    (V31, ToClient, "d0 00"),
    (V5, ToServer, "c0 00"),
    (V311, ToClient, "d0 00"),
    (V5, ToClient, "d0 00"),
    // DISCONNECT
    (V31, ToServer, "e0 00"),
    (V311, ToServer, "e0 00"),
    (V5, ToServer, "e0 00"),
    (V5, ToClient, "e0 00"),
    (V5, ToServer, "e0 01 04"),
    (V5, ToServer, "e0 | 00 [11 00000000 1f <bye> 26 <a> <b>]"),
    (V5, ToClient, "e0 01 8b"),
    (V5, ToClient, "e0 | 9d [1f <moved> 1c <there>]"),
    // AUTH
    (V5, ToClient, "f0 00"),
    (V5, ToServer, "f0 | 18 [15 <SCRAM> 16 <data>]"),
    (V5, ToServer, "f0 | 19 [15 <SCRAM>]"),
    (V5, ToClient, "f0 | 00 [15 <SCRAM> 16 <done> 1f <welcome> 26 <a> <b>]"),
];

/// Packets that decode, and encode to other bytes.
pub const OTHER_FORMS: &[Valid] = &[
    // 3.1: the user name or password flag may be set although the packet ends before.
    (V31, ToServer, "10 | <MQIsdp> 03 c2 003c <cid>"),
    (V31, ToServer, "10 | <MQIsdp> 03 c2 003c <cid> <user>"),
    // 3.1: DUP marks these three as retransmitted.
    (V31, ToServer, "6a 02 0001"),
    (V31, ToServer, "8a | 0001 <a> 00"),
    (V31, ToServer, "aa | 0001 <a>"),
    // 3.1: the first byte of CONNACK is reserved without a prescribed value.
    (V31, ToClient, "20 | 01 00"),
    // Before 5.0 the remaining length may have more bytes than needed.
    (V311, ToServer, "c0 80 00"),
    (V311, ToServer, "40 82 80 00 0001"),
    (V311, ToServer, "10 8f 00 <MQTT> 04 02 003c <cid>"),
    // Explicit success, empty property blocks.
    (V5, ToServer, "40 03 0001 00"),
    (V5, ToServer, "50 04 0001 00 00"),
    (V5, ToServer, "62 04 0001 92 00"),
    (V5, ToServer, "e0 01 00"),
    (V5, ToServer, "e0 02 00 00"),
    (V5, ToClient, "f0 02 00 00"),
    // Properties in another order, user properties between them.
    (V5, ToClient, "30 | <a> [26 <a> <1> 0b 07 03 <t> 26 <b> <2> 0b 08 01 01]"),
    (V5, ToServer, "10 | <MQTT> 05 02 0000 [26 <a> <1> 21 0005 26 <a> <2> 11 00000001] <>"),
];

/// An illegal packet: version, direction, notation, the reason code to close with.
pub type Invalid = (Version, Direction, &'static str, ReasonCode);

const MALFORMED: ReasonCode = ReasonCode::MALFORMED_PACKET;
const PROTOCOL: ReasonCode = ReasonCode::PROTOCOL_ERROR;
const VERSION: ReasonCode = ReasonCode::UNSUPPORTED_PROTOCOL_VERSION;
const CLIENT_ID: ReasonCode = ReasonCode::CLIENT_IDENTIFIER_NOT_VALID;
const TOPIC: ReasonCode = ReasonCode::TOPIC_NAME_INVALID;
const ALIAS: ReasonCode = ReasonCode::TOPIC_ALIAS_INVALID;

/// Packets that must be refused.
pub const INVALID: &[Invalid] = &[
    // Packet types and flags.
    (V311, ToServer, "00 00", MALFORMED),
    (V5, ToServer, "00 00", MALFORMED),
    (V311, ToServer, "f0 00", MALFORMED),
    (V31, ToClient, "f0 00", MALFORMED),
    (V5, ToServer, "11 | <MQTT> 05 02 003c [] <cid>", MALFORMED),
    (V5, ToClient, "21 | 00 00 []", MALFORMED),
    (V5, ToServer, "42 02 0001", MALFORMED),
    (V5, ToServer, "51 02 0001", MALFORMED),
    (V5, ToServer, "60 02 0001", MALFORMED), // [MQTT-3.6.1-1]
    (V5, ToServer, "63 02 0001", MALFORMED),
    (V5, ToServer, "6a 02 0001", MALFORMED),
    (V311, ToServer, "6a 02 0001", MALFORMED),
    (V31, ToServer, "68 02 0001", MALFORMED),
    (V5, ToServer, "74 02 0001", MALFORMED),
    (V5, ToServer, "80 | 0001 [] <a> 00", MALFORMED), // [MQTT-3.8.1-1]
    (V5, ToClient, "92 | 0001 [] 00", MALFORMED),
    (V5, ToServer, "a0 | 0001 [] <a>", MALFORMED), // [MQTT-3.10.1-1]
    (V5, ToClient, "b2 | 0001 [] 00", MALFORMED),
    (V5, ToServer, "c1 00", MALFORMED),
    (V5, ToClient, "d8 00", MALFORMED),
    (V5, ToServer, "e4 00", MALFORMED), // [MQTT-3.14.1-1]
    (V5, ToServer, "f2 | 18 [15 <S>]", MALFORMED), // [MQTT-3.15.1-1]
    // The wrong direction.
    (V5, ToServer, "20 | 00 00 []", PROTOCOL),
    (V311, ToServer, "90 | 0001 00", PROTOCOL),
    (V311, ToServer, "b0 02 0001", PROTOCOL),
    (V311, ToServer, "d0 00", PROTOCOL),
    (V5, ToClient, "10 | <MQTT> 05 02 003c [] <cid>", PROTOCOL),
    (V5, ToClient, "82 | 0001 [] <a> 00", PROTOCOL),
    (V5, ToClient, "a2 | 0001 [] <a>", PROTOCOL),
    (V5, ToClient, "c0 00", PROTOCOL),
    (V311, ToClient, "e0 00", PROTOCOL),
    // The remaining length in 5.0 [MQTT-1.5.5-1].
    (V5, ToServer, "c0 80 00", MALFORMED),
    (V5, ToServer, "30 85 00 <a> [] 00", MALFORMED),
    (V5, ToServer, "10 8d 80 00 <MQTT> 05 02 003c [] <>", MALFORMED),
    // CONNECT: name and level [MQTT-3.1.2-1], [MQTT-3.1.2-2].
    (V5, ToServer, "10 | <MQTX> 05 02 003c [] <cid>", VERSION),
    (V5, ToServer, "10 | <mqtt> 04 02 003c <cid>", VERSION),
    (V5, ToServer, "10 | <> 04 02 003c <cid>", VERSION),
    (V5, ToServer, "10 | <MQTT> 06 02 003c [] <cid>", VERSION),
    (V5, ToServer, "10 | <MQTT> 03 02 003c <cid>", VERSION),
    (V5, ToServer, "10 | <MQIsdp> 04 02 003c <cid>", VERSION),
    (V5, ToServer, "10 | <MQTT> 84 02 003c <cid>", VERSION),
    // CONNECT: flags.
    (V5, ToServer, "10 | <MQTT> 05 03 003c [] <cid>", MALFORMED), // [MQTT-3.1.2-3]
    (V311, ToServer, "10 | <MQTT> 04 03 003c <cid>", MALFORMED),
    (V5, ToServer, "10 | <MQTT> 05 0a 003c [] <cid>", MALFORMED), // [MQTT-3.1.2-11]
    (V311, ToServer, "10 | <MQTT> 04 12 003c <cid>", MALFORMED),
    (V5, ToServer, "10 | <MQTT> 05 22 003c [] <cid>", MALFORMED), // [MQTT-3.1.2-13]
    (V5, ToServer, "10 | <MQTT> 05 1e 003c [] <cid> [] <w> <p>", MALFORMED), // [MQTT-3.1.2-12]
    (V311, ToServer, "10 | <MQTT> 04 1e 003c <cid> <w> <p>", MALFORMED),
    (V311, ToServer, "10 | <MQTT> 04 42 003c <cid> <secret>", MALFORMED),
    (V31, ToServer, "10 | <MQIsdp> 03 42 003c <cid> <secret>", MALFORMED),
    // CONNECT: client identifier.
    (V311, ToServer, "10 | <MQTT> 04 00 003c <>", CLIENT_ID),
    (V31, ToServer, "10 | <MQIsdp> 03 02 003c <>", CLIENT_ID),
    // CONNECT: missing, truncated and surplus fields.
    (V311, ToServer, "10 00", MALFORMED),
    (V311, ToServer, "10 | <MQTT> 04 02 003c", MALFORMED),
    (V311, ToServer, "10 | <MQTT> 04 02 003c 0004 'cid'", MALFORMED),
    (V311, ToServer, "10 | <MQTT> 04 02 003c <cid> 00", MALFORMED),
    (V311, ToServer, "10 | <MQTT> 04 02 003c <cid> <user>", MALFORMED), // [MQTT-3.1.2-16]
    (V311, ToServer, "10 | <MQTT> 04 82 003c <cid>", MALFORMED),        // [MQTT-3.1.2-17]
    (V311, ToServer, "10 | <MQTT> 04 82 003c <cid> <user> <secret>", MALFORMED), // [MQTT-3.1.2-18]
    (V311, ToServer, "10 | <MQTT> 04 c2 003c <cid> <user>", MALFORMED), // [MQTT-3.1.2-19]
    (V31, ToServer, "10 | <MQIsdp> 03 c2 003c <cid> <user> 00", MALFORMED),
    (V311, ToServer, "10 | <MQTT> 04 06 003c <cid> <w>", MALFORMED), // [MQTT-3.1.2-9]
    (V5, ToServer, "10 | <MQTT> 05 06 003c [] <cid> <w> <p>", MALFORMED),
    (V5, ToServer, "10 | <MQTT> 05 02 003c", MALFORMED), // [MQTT-2.2.2-1]
    // CONNECT: the will topic.
    (V311, ToServer, "10 | <MQTT> 04 06 003c <cid> <w/#> <p>", TOPIC),
    (V311, ToServer, "10 | <MQTT> 04 06 003c <cid> <> <p>", TOPIC),
    (V5, ToServer, "10 | <MQTT> 05 06 003c [] <cid> [] <+> <p>", TOPIC),
    // CONNECT: properties.
    (V5, ToServer, "10 | <MQTT> 05 02 003c [11 00000001 11 00000001] <cid>", PROTOCOL),
    (V5, ToServer, "10 | <MQTT> 05 02 003c [21 0000] <cid>", PROTOCOL),
    (V5, ToServer, "10 | <MQTT> 05 02 003c [27 00000000] <cid>", PROTOCOL),
    (V5, ToServer, "10 | <MQTT> 05 02 003c [17 02] <cid>", PROTOCOL),
    (V5, ToServer, "10 | <MQTT> 05 02 003c [19 ff] <cid>", PROTOCOL),
    (V5, ToServer, "10 | <MQTT> 05 02 003c [16 <data>] <cid>", PROTOCOL),
    (V5, ToServer, "10 | <MQTT> 05 02 003c [15 <a> 15 <a>] <cid>", PROTOCOL),
    (V5, ToServer, "10 | <MQTT> 05 02 003c [18 00000001] <cid>", MALFORMED), // of the will only
    (V5, ToServer, "10 | <MQTT> 05 02 003c [23 0001] <cid>", MALFORMED),
    (V5, ToServer, "10 | <MQTT> 05 02 003c [00] <cid>", MALFORMED),
    (V5, ToServer, "10 | <MQTT> 05 02 003c [2b 00] <cid>", MALFORMED),
    (V5, ToServer, "10 | <MQTT> 05 02 003c [91 00 00000001] <cid>", MALFORMED), // overlong 0x11
    (V5, ToServer, "10 | <MQTT> 05 02 003c [11 0000] <cid>", MALFORMED),
    (V5, ToServer, "10 | <MQTT> 05 02 003c 7f 11 00000001 <cid>", MALFORMED), // past the end
    (V5, ToServer, "10 | <MQTT> 05 02 003c 80 00 <cid>", MALFORMED),          // overlong
    (V5, ToServer, "10 | <MQTT> 05 02 003c ff ff ff ff 7f <cid>", MALFORMED), // five bytes
    (V5, ToServer, "10 | <MQTT> 05 06 003c [] <c> [11 00000001] <w> <p>", MALFORMED),
    (V5, ToServer, "10 | <MQTT> 05 06 003c [] <c> [18 00000001 18 00000001] <w> <p>", PROTOCOL),
    (V5, ToServer, "10 | <MQTT> 05 06 003c [] <c> [01 02] <w> <p>", PROTOCOL),
    (V5, ToServer, "10 | <MQTT> 05 06 003c [] <c> [08 <a/#>] <w> <p>", PROTOCOL),
    // CONNACK
    (V311, ToClient, "20 | 02 00", MALFORMED), // [MQTT-3.2.2-1]
    (V5, ToClient, "20 | 80 00 []", MALFORMED),
    (V311, ToClient, "20 | 00 06", MALFORMED),
    (V311, ToClient, "20 | 01 05", PROTOCOL), // [MQTT-3.2.2-6]
    (V5, ToClient, "20 | 01 87 []", PROTOCOL),
    (V5, ToClient, "20 | 00 8b []", MALFORMED), // [MQTT-3.2.2-8]
    (V5, ToClient, "20 | 00 01 []", MALFORMED),
    (V311, ToClient, "20 | 00", MALFORMED),
    (V311, ToClient, "20 | 00 00 00", MALFORMED),
    (V5, ToClient, "20 | 00 00", MALFORMED),
    (V5, ToClient, "20 | 00 00 [24 02]", PROTOCOL),
    (V5, ToClient, "20 | 00 00 [25 02]", PROTOCOL),
    (V5, ToClient, "20 | 00 00 [21 0000]", PROTOCOL),
    (V5, ToClient, "20 | 00 00 [27 00000000]", PROTOCOL),
    (V5, ToClient, "20 | 00 00 [28 01 28 01]", PROTOCOL),
    (V5, ToClient, "20 | 00 00 [12 <a> 12 <a>]", PROTOCOL),
    (V5, ToClient, "20 | 00 00 [16 <a>]", PROTOCOL),
    (V5, ToClient, "20 | 00 00 [17 01]", MALFORMED),
    // PUBLISH
    (V311, ToServer, "36 | <a> 0001", MALFORMED), // [MQTT-3.3.1-4]
    (V5, ToClient, "3e | <a> 0001 []", MALFORMED),
    (V311, ToServer, "38 | <a>", MALFORMED), // [MQTT-3.3.1-2]
    (V5, ToServer, "39 | <a> []", MALFORMED),
    (V311, ToServer, "32 | <a> 0000", PROTOCOL), // [MQTT-2.2.1-3]
    (V5, ToServer, "34 | <a> 0000 []", PROTOCOL),
    (V311, ToServer, "30 | <a/#>", TOPIC), // [MQTT-3.3.2-2]
    (V5, ToServer, "30 | <+> []", TOPIC),
    (V5, ToServer, "30 | <a long topic with many levels/+/rest> []", TOPIC),
    (V5, ToServer, "30 | <\u{e9}+> []", TOPIC),
    (V311, ToServer, "30 | <>", PROTOCOL),
    (V5, ToServer, "30 | <> []", PROTOCOL),
    (V311, ToServer, "30 00", MALFORMED),
    (V311, ToServer, "30 | 0002 'a'", MALFORMED),
    (V311, ToServer, "32 | <a> 00", MALFORMED),
    (V5, ToServer, "30 | <a>", MALFORMED),
    (V5, ToServer, "30 | <a> 01", MALFORMED),
    (V5, ToServer, "30 | <a> [23 0000]", ALIAS), // [MQTT-3.3.2-8]
    (V5, ToServer, "30 | <a> [23 0001 23 0001]", PROTOCOL),
    (V5, ToServer, "30 | <a> [01 02]", PROTOCOL),
    (V5, ToServer, "30 | <a> [01 00 01 00]", PROTOCOL),
    (V5, ToServer, "30 | <a> [02 00000001 02 00000002]", PROTOCOL),
    (V5, ToServer, "30 | <a> [08 <a/+>]", PROTOCOL), // [MQTT-3.3.2-14]
    (V5, ToServer, "30 | <a> [08 <>]", PROTOCOL),
    (V5, ToServer, "30 | <a> [09 <x> 09 <x>]", PROTOCOL),
    (V5, ToServer, "30 | <a> [03 <x> 03 <x>]", PROTOCOL),
    (V5, ToServer, "30 | <a> [0b 01]", PROTOCOL), // [MQTT-3.3.4-6]
    (V5, ToClient, "30 | <a> [0b 00]", PROTOCOL),
    (V5, ToClient, "30 | <a> [0b 81 00]", MALFORMED), // overlong
    (V5, ToClient, "30 | <a> [0b ff ff ff ff 7f]", MALFORMED),
    (V5, ToServer, "30 | <a> [11 00000001]", MALFORMED),
    (V5, ToServer, "30 | <a> [26 <k>]", MALFORMED),
    (V5, ToServer, "30 | <a> [09 0005 'x']", MALFORMED),
    // Strings [MQTT-1.5.4-1], [MQTT-1.5.4-2].
    (V311, ToServer, "30 | 0003 'a' 00 'b'", MALFORMED),
    (V311, ToServer, "30 | 0003 ed a0 80", MALFORMED), // surrogate U+D800
    (V311, ToServer, "30 | 0003 ed bf bf", MALFORMED), // surrogate U+DFFF
    (V311, ToServer, "30 | 0002 c0 80", MALFORMED),    // overlong U+0000
    (V311, ToServer, "30 | 0002 c1 bf", MALFORMED),    // overlong
    (V311, ToServer, "30 | 0003 e0 80 af", MALFORMED), // overlong
    (V311, ToServer, "30 | 0004 f0 80 80 af", MALFORMED), // overlong
    (V311, ToServer, "30 | 0004 f4 90 80 80", MALFORMED), // above U+10FFFF
    (V311, ToServer, "30 | 0002 'a' c3", MALFORMED),   // truncated
    (V311, ToServer, "30 | 0001 80", MALFORMED),       // continuation alone
    (V311, ToServer, "30 | 0001 01", MALFORMED),       // control
    (V311, ToServer, "30 | 0009 'abcdefgh' 1f", MALFORMED),
    (V311, ToServer, "30 | 0001 7f", MALFORMED),
    (V311, ToServer, "30 | 0002 c2 9f", MALFORMED), // U+009F
    (V311, ToServer, "30 | 0003 ef bf bf", MALFORMED), // U+FFFF
    (V311, ToServer, "30 | 0003 ef b7 90", MALFORMED), // U+FDD0
    (V311, ToServer, "30 | 0004 f0 9f bf be", MALFORMED), // U+1FFFE
    (V311, ToServer, "10 | <MQTT> 04 02 003c 0002 'a' 00", MALFORMED),
    (V311, ToServer, "10 | <MQTT> 04 82 003c <c> 0001 ff", MALFORMED),
    (V311, ToServer, "10 | <MQTT> 04 06 003c <c> 0003 ed a0 80 <p>", MALFORMED),
    (V311, ToServer, "82 | 0001 0003 ed a0 80 00", MALFORMED), // [MQTT-3.8.3-1]
    (V311, ToServer, "a2 | 0001 0001 00", MALFORMED),          // [MQTT-3.10.3-1]
    (V5, ToServer, "30 | <a> [26 0001 00 <v>]", MALFORMED),    // [MQTT-1.5.7-1]
    (V5, ToServer, "30 | <a> [26 <k> 0002 c0 80]", MALFORMED),
    (V5, ToServer, "30 | <a> [03 0001 0a]", MALFORMED),
    (V5, ToServer, "30 | <a> [08 0001 00]", MALFORMED), // [MQTT-3.3.2-13]
    // PUBACK, PUBREC, PUBREL, PUBCOMP
    (V311, ToServer, "40 02 0000", PROTOCOL),
    (V5, ToServer, "62 02 0000", PROTOCOL),
    (V311, ToServer, "40 01 00", MALFORMED),
    (V311, ToServer, "40 03 0001 00", MALFORMED),
    (V31, ToServer, "62 04 0001 00 00", MALFORMED),
    (V5, ToServer, "40 03 0001 01", MALFORMED), // [MQTT-3.4.2-1]
    (V5, ToServer, "50 03 0001 92", MALFORMED), // [MQTT-3.5.2-1]
    (V5, ToServer, "62 03 0001 10", MALFORMED), // [MQTT-3.6.2-1]
    (V5, ToServer, "70 03 0001 80", MALFORMED), // [MQTT-3.7.2-1]
    (V5, ToServer, "40 03 0001 ff", MALFORMED),
    (V5, ToServer, "40 | 0001 00 [1f <a> 1f <a>]", PROTOCOL),
    (V5, ToServer, "40 | 0001 00 [11 00000001]", MALFORMED),
    (V5, ToServer, "40 | 0001 00 [] 00", MALFORMED),
    (V5, ToServer, "40 04 0001 00 05", MALFORMED),
    // SUBSCRIBE
    (V311, ToServer, "82 | 0000 <a> 00", PROTOCOL),
    (V311, ToServer, "82 | 0001", PROTOCOL), // [MQTT-3.8.3-2]
    (V5, ToServer, "82 | 0001 []", PROTOCOL),
    (V5, ToServer, "82 | 0001", MALFORMED),
    (V311, ToServer, "82 | 0001 <a>", MALFORMED), // mochi 2.7.9 panics
    (V5, ToServer, "82 | 0001 [] <a>", MALFORMED),
    (V311, ToServer, "82 | 0001 <a> 00 <b>", MALFORMED),
    (V311, ToServer, "82 | 0001 <a> 00 0005 'b'", MALFORMED),
    (V311, ToServer, "82 | 0001 <a> 03", PROTOCOL),
    (V311, ToServer, "82 | 0001 <a> 04", MALFORMED),
    (V5, ToServer, "82 | 0001 [] <a> 03", PROTOCOL),
    (V5, ToServer, "82 | 0001 [] <a> 30", PROTOCOL), // retain handling 3
    (V5, ToServer, "82 | 0001 [] <a> 40", MALFORMED), // [MQTT-3.8.3-5]
    (V5, ToServer, "82 | 0001 [] <a> 80", MALFORMED),
    (V5, ToServer, "82 | 0001 [] <$share/g/a> 04", PROTOCOL), // [MQTT-3.8.3-4]
    (V5, ToServer, "82 | 0001 [0b 00] <a> 00", PROTOCOL),
    (V5, ToServer, "82 | 0001 [0b 01 0b 02] <a> 00", PROTOCOL),
    (V5, ToServer, "82 | 0001 [0b 81 00] <a> 00", MALFORMED),
    (V5, ToServer, "82 | 0001 [1f <a>] <a> 00", MALFORMED),
    // SUBACK
    (V311, ToClient, "90 | 0001", PROTOCOL),
    (V5, ToClient, "90 | 0001 []", PROTOCOL),
    (V311, ToClient, "90 | 0000 00", PROTOCOL),
    (V311, ToClient, "90 | 0001 03", MALFORMED),
    (V311, ToClient, "90 | 0001 87", MALFORMED),
    (V5, ToClient, "90 | 0001 [] 03", MALFORMED), // [MQTT-3.9.3-2]
    (V5, ToClient, "90 | 0001 [] 00 11", MALFORMED),
    (V5, ToClient, "90 | 0001 [0b 01] 00", MALFORMED),
    // UNSUBSCRIBE and UNSUBACK
    (V311, ToServer, "a2 | 0000 <a>", PROTOCOL),
    (V311, ToServer, "a2 | 0001", PROTOCOL), // [MQTT-3.10.3-2]
    (V5, ToServer, "a2 | 0001 []", PROTOCOL),
    (V311, ToServer, "a2 | 0001 <a> 00", MALFORMED),
    (V5, ToServer, "a2 | 0001 [0b 01] <a>", MALFORMED),
    (V311, ToClient, "b0 03 0001 00", MALFORMED),
    (V311, ToClient, "b0 02 0000", PROTOCOL),
    (V5, ToClient, "b0 | 0001 []", PROTOCOL),
    (V5, ToClient, "b0 | 0001 [] 01", MALFORMED), // [MQTT-3.11.3-2]
    // Pings
    (V311, ToServer, "c0 01 00", MALFORMED),
    (V5, ToServer, "c0 01 00", MALFORMED),
    (V311, ToClient, "d0 01 00", MALFORMED),
    // DISCONNECT
    (V311, ToServer, "e0 01 00", MALFORMED),
    (V31, ToServer, "e0 02 00 00", MALFORMED),
    (V5, ToServer, "e0 01 01", MALFORMED), // [MQTT-3.14.2-1]
    (V5, ToServer, "e0 01 84", MALFORMED),
    (V5, ToServer, "e0 01 8b", PROTOCOL),
    (V5, ToClient, "e0 01 04", PROTOCOL),
    (V5, ToClient, "e0 | 00 [11 00000001]", PROTOCOL), // [MQTT-3.14.2-2]
    (V5, ToServer, "e0 | 00 [1c <there>]", PROTOCOL),
    (V5, ToServer, "e0 | 00 [11 00000001 11 00000001]", PROTOCOL),
    (V5, ToServer, "e0 | 00 [21 0001]", MALFORMED),
    (V5, ToServer, "e0 | 00 [] 00", MALFORMED),
    // AUTH
    (V5, ToServer, "f0 00", PROTOCOL),
    (V5, ToServer, "f0 | 00 [15 <S>]", PROTOCOL), // [MQTT-3.15.2-1]
    (V5, ToClient, "f0 | 19 [15 <S>]", PROTOCOL),
    (V5, ToServer, "f0 | 18 []", PROTOCOL), // [MQTT-4.12.0-5]
    (V5, ToServer, "f0 | 18 [16 <data>]", PROTOCOL),
    (V5, ToServer, "f0 | 18", MALFORMED),
    (V5, ToServer, "f0 | 17 [15 <S>]", MALFORMED),
    (V5, ToServer, "f0 | 18 [15 <S> 15 <S>]", PROTOCOL),
    (V5, ToServer, "f0 | 18 [15 <S> 21 0001]", MALFORMED),
];
