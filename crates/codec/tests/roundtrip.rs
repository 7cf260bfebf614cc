//! Arbitrary packets survive encoding and decoding.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use proptest::prelude::*;
use tacho_codec::{DecodeError, Direction, Packet, PublishHead, ReasonCode, Version, split_frame};
use tacho_testkit::packets::{decode, encode};
use tacho_testkit::strategies;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn encoded_packets_decode_unchanged((version, direction, packet) in strategies::any_packet()) {
        let bytes = encode(&packet, version);
        prop_assert_eq!(decode(&bytes, version, direction), Ok(packet));
    }

    #[test]
    fn every_prefix_asks_for_more(
        (version, _, packet) in strategies::any_packet(),
        tail in proptest::collection::vec(any::<u8>(), 0..4),
    ) {
        let mut bytes = encode(&packet, version);
        let len = bytes.len();
        for end in 0..len {
            prop_assert_eq!(split_frame(&bytes[..end], u32::MAX), Ok(None));
        }
        bytes.extend(tail);
        let frame = split_frame(&bytes, u32::MAX).unwrap().unwrap();
        prop_assert_eq!(frame.total_len, len);
    }

    #[test]
    fn the_size_limit_is_exact((version, _, packet) in strategies::any_packet()) {
        let bytes = encode(&packet, version);
        let len = bytes.len() as u32;
        prop_assert!(split_frame(&bytes, len).is_ok_and(|frame| frame.is_some()));
        let too_large = |error: DecodeError| error.reason == ReasonCode::PACKET_TOO_LARGE;
        prop_assert!(split_frame(&bytes, len - 1).is_err_and(too_large));
        // The fixed header alone decides.
        prop_assert!(split_frame(&bytes[..bytes.len().min(5)], len - 1).is_err_and(too_large));
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        for version in Version::ALL {
            for direction in [Direction::ToServer, Direction::ToClient] {
                tacho_testkit::packets::decode_is_stable(&bytes, version, direction);
            }
        }
    }

    #[test]
    fn mutated_packets_never_panic(
        (version, direction, packet) in strategies::any_packet(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = encode(&packet, version);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        tacho_testkit::packets::decode_is_stable(&bytes, version, direction);
    }

    #[test]
    fn a_patched_head_equals_the_encoded_packet(
        version in strategies::version(),
        seed in strategies::publish(Version::V5, Direction::ToClient),
        dup in any::<bool>(),
        retain in any::<bool>(),
        packet_id in strategies::packet_id(),
        payload_len in prop_oneof![0_usize..300, Just(16_384_usize), Just(2_100_000)],
    ) {
        let payload = vec![0x5A; payload_len];
        let publish = tacho_codec::Publish { payload: &payload, ..seed };
        let mut head = PublishHead::new();
        head.encode(&publish, version).unwrap();

        let packet_id = publish.packet_id.map(|_| packet_id);
        let receiver = tacho_codec::Publish { dup, retain, packet_id, ..publish };
        let mut expected = Vec::new();
        receiver.encode(version, &mut expected).unwrap();
        let mut out = vec![0xEE];
        head.append(&mut out, dup, retain, receiver.qos, packet_id);
        prop_assert_eq!(head.head_len() + 1, out.len());
        out.extend_from_slice(&payload);
        prop_assert_eq!(head.frame_len() + 1, out.len());
        prop_assert_eq!(&out[1..], &expected[..]);
    }

    #[test]
    fn streams_split_anywhere_give_the_same_packets(
        packets in proptest::collection::vec(
            strategies::packet(Version::V5, Direction::ToClient), 1..6
        ),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut stream = Vec::new();
        for packet in &packets {
            packet.encode(Version::V5, &mut stream).unwrap();
        }
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.push(stream.len());
        cuts.sort_unstable();
        let (mut start, mut found) = (0, 0);
        for end in cuts {
            while let Some(frame) = split_frame(&stream[start..end], u32::MAX).unwrap() {
                let packet = Packet::decode(&frame, Version::V5, Direction::ToClient).unwrap();
                prop_assert_eq!(&packet, &packets[found]);
                start += frame.total_len;
                found += 1;
            }
        }
        prop_assert_eq!((start, found), (stream.len(), packets.len()));
    }
}
