//! The handwritten packets: legal ones decode and encode, illegal ones are refused.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use tacho_codec::{Direction, Packet, PacketType, Version, check_first_byte};
use tacho_testkit::notation::bytes;
use tacho_testkit::packets::{decode, encode};
use tacho_testkit::vectors::{CANONICAL, INVALID, OTHER_FORMS};

/// The version to encode a packet in: its own for CONNECT.
fn version_of(packet: &Packet<'_>, version: Version) -> Version {
    match packet {
        Packet::Connect(connect) => connect.version,
        _ => version,
    }
}

// 22
// [MQTT-2.2.1-2] [MQTT-2.2.2-1] [MQTT-3.1.3-1] [MQTT-3.1.3-3] [MQTT-3.2.2-1] [MQTT-3.3.2-1]
// [MQTT-3.1.1: 2.3.1-5] [MQTT-3.1.1: 3.1.3-1] [MQTT-3.1.1: 3.1.3-3]
#[test]
fn canonical_packets_encode_to_the_bytes_they_were_decoded_from() {
    for &(version, direction, notation) in CANONICAL {
        let bytes = bytes(notation);
        let packet = decode(&bytes, version, direction)
            .unwrap_or_else(|error| panic!("{version} {direction:?} {notation}: {error}"));
        assert_eq!(version_of(&packet, version), version, "{notation}");
        assert_eq!(encode(&packet, version), bytes, "{version} {notation}");
        assert_eq!(packet.packet_type() as u8, bytes[0] >> 4);
    }
}

#[test]
fn every_type_of_every_version_has_a_canonical_packet() {
    for version in Version::ALL {
        for packet_type in PacketType::ALL {
            let exists = packet_type.is_allowed(version, Direction::ToServer)
                || packet_type.is_allowed(version, Direction::ToClient);
            let is_listed = CANONICAL.iter().any(|&(v, _, notation)| {
                v == version && bytes(notation)[0] >> 4 == packet_type as u8
            });
            assert_eq!(is_listed, exists, "{version} {packet_type:?}");
        }
    }
}

// 22
#[test]
fn other_forms_decode_to_the_same_packet_as_their_canonical_form() {
    for &(version, direction, notation) in OTHER_FORMS {
        let bytes = bytes(notation);
        let packet = decode(&bytes, version, direction)
            .unwrap_or_else(|error| panic!("{version} {direction:?} {notation}: {error}"));
        let written = encode(&packet, version);
        assert_ne!(written, bytes, "{notation} is canonical");
        assert_eq!(decode(&written, version, direction).as_ref(), Ok(&packet), "{notation}");
    }
}

// 4, 5, 14 to 19, 21 to 23
// [MQTT-1.5.4-1] [MQTT-1.5.4-2] [MQTT-1.5.5-1] [MQTT-1.5.7-1] [MQTT-2.1.3-1] [MQTT-2.2.1-3]
// [MQTT-3.1.2-1] [MQTT-3.1.2-2] [MQTT-3.1.2-3] [MQTT-3.1.2-9] [MQTT-3.1.2-11] [MQTT-3.1.2-12]
// [MQTT-3.1.2-13] [MQTT-3.1.2-16] [MQTT-3.1.2-17] [MQTT-3.1.2-18] [MQTT-3.1.2-19]
// [MQTT-3.1.3-4] [MQTT-3.1.3-11] [MQTT-3.1.3-12] [MQTT-3.2.2-6] [MQTT-3.3.1-2] [MQTT-3.3.1-4]
// [MQTT-3.3.2-2] [MQTT-3.3.2-8] [MQTT-3.3.2-13] [MQTT-3.3.2-14] [MQTT-3.3.2-19] [MQTT-3.3.4-6]
// [MQTT-3.6.1-1] [MQTT-3.8.1-1] [MQTT-3.8.3-1] [MQTT-3.8.3-2] [MQTT-3.8.3-4] [MQTT-3.8.3-5]
// [MQTT-3.10.1-1] [MQTT-3.10.3-1] [MQTT-3.10.3-2] [MQTT-3.14.1-1] [MQTT-3.15.1-1]
// [MQTT-4.7.3-1]
// [MQTT-3.1.1: 2.2.2-1] [MQTT-3.1.1: 2.3.1-1] [MQTT-3.1.1: 3.1.2-3] [MQTT-3.1.1: 3.1.2-9]
// [MQTT-3.1.1: 3.1.2-11] [MQTT-3.1.1: 3.1.2-13] [MQTT-3.1.1: 3.1.2-14] [MQTT-3.1.1: 3.1.2-18]
// [MQTT-3.1.1: 3.1.2-19] [MQTT-3.1.1: 3.1.2-20] [MQTT-3.1.1: 3.1.2-21] [MQTT-3.1.1: 3.1.2-22]
// [MQTT-3.1.1: 3.1.3-4] [MQTT-3.1.1: 3.1.3-10] [MQTT-3.1.1: 3.1.3-11] [MQTT-3.1.1: 3.2.2-4]
// [MQTT-3.1.1: 3.3.1-2] [MQTT-3.1.1: 3.3.1-4] [MQTT-3.1.1: 3.3.2-2] [MQTT-3.1.1: 3.6.1-1]
// [MQTT-3.1.1: 3.8.3-1] [MQTT-3.1.1: 3.8.3-3] [MQTT-3.1.1: 3.8.3-4] [MQTT-3.1.1: 3.10.3-1]
// [MQTT-3.1.1: 3.10.3-2] [MQTT-3.1.1: 4.7.3-1]
#[test]
fn illegal_packets_are_refused_with_the_right_reason() {
    for &(version, direction, notation, reason) in INVALID {
        let bytes = bytes(notation);
        match decode(&bytes, version, direction) {
            Ok(packet) => panic!("{version} {direction:?} {notation} gave {packet:?}"),
            Err(error) => {
                assert_eq!(error.reason, reason, "{version} {direction:?} {notation}: {error}");
                assert!(error.to_string().starts_with(reason.name()), "{error}");
            }
        }
    }
}

#[test]
fn the_first_byte_decides_type_and_direction() {
    for &(version, direction, notation) in CANONICAL.iter().chain(OTHER_FORMS) {
        let first_byte = bytes(notation)[0];
        let packet_type = check_first_byte(first_byte, version, direction);
        assert_eq!(packet_type.map(|t| t as u8), Ok(first_byte >> 4), "{notation}");
    }
    for first_byte in 0..=u8::MAX {
        for version in Version::ALL {
            for direction in [Direction::ToServer, Direction::ToClient] {
                let Ok(packet_type) = check_first_byte(first_byte, version, direction) else {
                    continue;
                };
                assert!(packet_type.is_allowed(version, direction));
                if packet_type != PacketType::Publish && version != Version::V31 {
                    assert_eq!(first_byte, packet_type.first_byte());
                }
            }
        }
    }
}

/// Every prefix of a body, with the length adjusted, and every prefix of the bytes.
#[test]
fn truncated_packets_never_panic() {
    let valid = CANONICAL.iter().chain(OTHER_FORMS).copied();
    let invalid =
        INVALID.iter().map(|&(version, direction, notation, _)| (version, direction, notation));
    for (version, direction, notation) in valid.chain(invalid) {
        let bytes = bytes(notation);
        let frame = tacho_codec::split_frame(&bytes, u32::MAX).unwrap().unwrap();
        for len in 0..bytes.len() {
            assert_eq!(tacho_codec::split_frame(&bytes[..len], u32::MAX), Ok(None), "{notation}");
        }
        for len in 0..frame.body.len() {
            let body = &frame.body[..len];
            let total_len = 1 + tacho_codec::varint_len(len as u32) + len;
            let cut = tacho_codec::Frame { first_byte: frame.first_byte, body, total_len };
            for version in [version, Version::V31, Version::V311, Version::V5] {
                for direction in [direction, Direction::ToServer, Direction::ToClient] {
                    let _ = Packet::decode(&cut, version, direction);
                }
            }
        }
    }
}

/// Replaces every byte of every packet: nothing panics, and every legal result is stable.
#[test]
fn changed_bytes_never_panic() {
    for &(version, direction, notation) in CANONICAL.iter().chain(OTHER_FORMS) {
        let original = bytes(notation);
        for at in 0..original.len() {
            let mut changed = original.clone();
            for value in [0x00, 0x01, 0x02, 0x04, 0x10, 0x20, 0x26, 0x40, 0x7F, 0x80, 0xC3, 0xFF] {
                changed[at] = value;
                tacho_testkit::packets::decode_is_stable(&changed, version, direction);
            }
            for bit in 0..8 {
                changed[at] = original[at] ^ 1 << bit;
                tacho_testkit::packets::decode_is_stable(&changed, version, direction);
            }
        }
    }
}
