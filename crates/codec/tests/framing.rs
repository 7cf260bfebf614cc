//! Splitting a stream into frames.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use tacho_codec::{Frame, ReasonCode, announced_len, split_frame};
use tacho_testkit::notation::bytes;
use tacho_testkit::vectors::CANONICAL;

/// A stream of all canonical packets, split in two at every point.
// 60
#[test]
fn every_split_point_gives_the_same_frames() {
    let packets: Vec<Vec<u8>> = CANONICAL.iter().map(|&(_, _, text)| bytes(text)).collect();
    let stream = packets.concat();
    for cut in 0..=stream.len() {
        let mut start = 0;
        let mut found = 0;
        for end in [cut, stream.len()] {
            while let Some(frame) = split_frame(&stream[start..end], 10_000).unwrap() {
                let packet = &packets[found];
                assert_eq!(frame.total_len, packet.len());
                assert_eq!(frame.first_byte, packet[0]);
                assert!(packet.ends_with(frame.body));
                start += frame.total_len;
                found += 1;
            }
        }
        assert_eq!((start, found), (stream.len(), packets.len()), "cut at {cut}");
    }
}

#[test]
fn one_byte_at_a_time() {
    let packet = bytes(
        "30 | <a/b> 'a payload that is longer than one hundred and twenty-seven bytes, \
        so that the remaining length takes two bytes and not one only, as it does for short ones'",
    );
    assert!(packet.len() > 130);
    for len in 0..packet.len() {
        assert_eq!(split_frame(&packet[..len], u32::MAX), Ok(None));
        // From the third byte on, which ends the remaining length.
        assert_eq!(announced_len(&packet[..len]), (len >= 3).then_some(packet.len()));
    }
    let frame = Frame { first_byte: 0x30, body: &packet[3..], total_len: packet.len() };
    assert_eq!(split_frame(&packet, u32::MAX), Ok(Some(frame)));
}

// 14
#[test]
fn a_remaining_length_has_at_most_four_bytes() {
    assert_eq!(split_frame(&[0x30, 0xFF, 0xFF, 0xFF, 0x7F], u32::MAX), Ok(None));
    for fifth in [&[][..], &[0x00], &[0x80, 0x80]] {
        let bytes = [&[0x30, 0xFF, 0xFF, 0xFF, 0xFF], fifth].concat();
        let error = split_frame(&bytes, u32::MAX).unwrap_err();
        assert_eq!(error.reason, ReasonCode::MALFORMED_PACKET);
        assert_eq!(announced_len(&bytes), None);
    }
    assert_eq!(split_frame(&[0x30, 0xFF, 0xFF, 0xFF], u32::MAX), Ok(None));
}

// 1
#[test]
fn an_announced_size_is_refused_before_the_body_arrives() {
    let claim = [0x10, 0xFF, 0xFF, 0xFF, 0x7F]; // 256 MiB
    let error = split_frame(&claim, 1_048_576).unwrap_err();
    assert_eq!(error.reason, ReasonCode::PACKET_TOO_LARGE);
    assert_eq!(split_frame(&claim, 268_435_460), Ok(None));
    assert_eq!(split_frame(&claim, 268_435_459).unwrap_err().reason, ReasonCode::PACKET_TOO_LARGE);
}
