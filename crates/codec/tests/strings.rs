//! The rules for strings and topic names, against a plain definition.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use proptest::prelude::*;
use tacho_codec::{
    Direction, Packet, ReasonCode, TopicNameError, Version, check_topic_name, is_valid_text,
    is_valid_topic_name,
};
use tacho_testkit::packets::decode;

/// The rule without optimization: well-formed UTF-8 without control characters and non-characters.
fn is_legal(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    text.chars().all(|c| {
        let code = u32::from(c);
        !c.is_control() && !(0xFDD0..=0xFDEF).contains(&code) && code & 0xFFFE != 0xFFFE
    })
}

fn is_legal_topic(bytes: &[u8]) -> bool {
    is_legal(bytes) && !bytes.is_empty() && !bytes.contains(&b'+') && !bytes.contains(&b'#')
}

fn packet(first_byte: u8, before: &[u8], text: &[u8], after: &[u8]) -> Vec<u8> {
    let len = u16::try_from(text.len()).unwrap().to_be_bytes();
    let body = [before, &len, text, after].concat();
    [&[first_byte, u8::try_from(body.len()).unwrap()], &body[..]].concat()
}

/// Checks the bytes as topic name of a PUBLISH and as filter of an UNSUBSCRIBE.
fn check(bytes: &[u8]) {
    let publish = packet(0x30, &[], bytes, &[]);
    let as_topic = decode(&publish, Version::V311, Direction::ToServer);
    assert_eq!(as_topic.is_ok(), is_legal_topic(bytes), "{bytes:02x?}: {as_topic:?}");
    if let Ok(Packet::Publish(publish)) = as_topic {
        assert_eq!(publish.topic.as_bytes(), bytes);
    } else if is_legal(bytes) && !bytes.is_empty() {
        assert_eq!(as_topic.unwrap_err().reason, ReasonCode::TOPIC_NAME_INVALID);
    }
    let unsubscribe = packet(0xA2, &[0, 1], bytes, &[]);
    let as_filter = decode(&unsubscribe, Version::V311, Direction::ToServer);
    assert_eq!(as_filter.is_ok(), is_legal(bytes), "{bytes:02x?}: {as_filter:?}");
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert_eq!(is_valid_text(text), is_legal(bytes), "{text:?}");
        assert_eq!(is_valid_topic_name(text), is_legal_topic(bytes), "{text:?}");
    }
}

// 15
// [MQTT-1.5.4-1] [MQTT-1.5.4-2] [MQTT-4.7.3-2]
// [MQTT-3.1.1: 4.7.3-2]
#[test]
fn every_byte_at_every_place() {
    for len in 0..=20 {
        for at in 0..len {
            for byte in 0..=u8::MAX {
                let mut bytes = vec![b'a'; len];
                bytes[at] = byte;
                check(&bytes);
            }
        }
    }
}

// 15
// [MQTT-1.5.4-1] [MQTT-1.5.4-2]
#[test]
fn every_character() {
    for c in (0..=0x10FFFF).filter_map(char::from_u32).filter(|c| {
        let code = u32::from(*c);
        code < 0x3000
            || code & 0xFFF0 == 0xFFF0
            || (0xFD00..0xFE00).contains(&code)
            || code % 97 == 0
    }) {
        check(c.to_string().as_bytes());
        check(format!("level/{c}/level").as_bytes());
    }
}

// 34
// [MQTT-4.7.3-3]
// [MQTT-3.1.1: 4.7.3-3]
#[test]
fn the_longest_string_is_legal_and_a_longer_one_is_not() {
    let longest = "x".repeat(65_535);
    assert!(is_valid_text(&longest) && is_valid_topic_name(&longest));
    let longer = "x".repeat(65_536);
    assert!(!is_valid_text(&longer) && !is_valid_topic_name(&longer));
}

// 34
#[test]
fn topic_names_have_as_many_levels_as_fit() {
    for slashes in [199, 32_000, 65_535] {
        assert_eq!(check_topic_name(&"/".repeat(slashes)), Ok(()));
    }
    for levels in [200, 32_000] {
        assert_eq!(check_topic_name(&vec!["a"; levels].join("/")), Ok(()));
    }
}

// [MQTT-4.7.0-1] [MQTT-4.7.3-1]
// [MQTT-3.1.1: 4.7.1-1] [MQTT-3.1.1: 4.7.3-1]
#[test]
fn a_refused_topic_name_has_its_reason() {
    let longest = "a".repeat(65_535);
    for topic in ["a", "/", "//", "/a", "a/", "a b", "$SYS/x", "ü/é", longest.as_str()] {
        assert_eq!(check_topic_name(topic), Ok(()), "{topic}");
    }
    let too_long = "a".repeat(65_536);
    for (topic, error) in [
        ("", TopicNameError::Empty),
        ("a\0b", TopicNameError::ForbiddenCharacter),
        ("é\u{9F}", TopicNameError::ForbiddenCharacter),
        ("a/+", TopicNameError::Wildcard),
        ("a#", TopicNameError::Wildcard),
        ("é/+", TopicNameError::Wildcard),
        (too_long.as_str(), TopicNameError::TooLong),
    ] {
        assert_eq!(check_topic_name(topic), Err(error), "{topic:.40}");
        assert!(error.to_string().starts_with("a topic name must not "));
    }
}

// 15
// [MQTT-1.5.4-3]
// [MQTT-3.1.1: 1.5.3-3]
#[test]
fn a_byte_order_mark_is_kept() {
    let bytes = packet(0x30, &[], "\u{FEFF}a".as_bytes(), &[]);
    let Ok(Packet::Publish(publish)) = decode(&bytes, Version::V311, Direction::ToServer) else {
        panic!("legal");
    };
    assert_eq!(publish.topic, "\u{FEFF}a"); // [MQTT-1.5.4-3]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        check(&bytes);
    }

    #[test]
    fn mostly_ascii(
        mut bytes in proptest::collection::vec(0x20_u8..0x7F, 0..60),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        check(&bytes);
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = byte;
            check(&bytes);
        }
    }

    #[test]
    fn random_text(text in "\\PC{0,20}|.{0,20}") {
        check(text.as_bytes());
    }
}
