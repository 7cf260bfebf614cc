//! Against `mqtt-protocol-core`, an independent codec: each decodes what the other encodes.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

mod build;
mod parse;

use proptest::prelude::*;
use tacho_codec::{Direction, Packet, Version};
use tacho_testkit::notation::bytes;
use tacho_testkit::packets::{decode, encode};
use tacho_testkit::strategies;
use tacho_testkit::vectors::{CANONICAL, OTHER_FORMS};

fn known_to_both() -> impl Strategy<Value = (Version, Direction, Packet<'static>)> {
    strategies::any_packet().prop_filter("not known to both", |(version, _, packet)| {
        *version != Version::V31 && !is_known_difference(packet)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        max_global_rejects: 4_096,
        ..ProptestConfig::with_cases(256)
    })]

    // [MQTT-3.1.1: 7.0.0-2]
    #[test]
    fn they_decode_what_we_encode((version, _, packet) in known_to_both()) {
        let ours = encode(&packet, version);
        let theirs = parse::parse_and_write(&ours, version);
        prop_assert_eq!(theirs, Ok(ours), "{:?}", packet);
    }

    // [MQTT-3.1.1: 7.0.0-2]
    #[test]
    fn we_decode_what_they_encode((version, direction, packet) in known_to_both()) {
        let theirs = build::build(&packet, version);
        prop_assert_eq!(decode(&theirs, version, direction), Ok(packet));
    }

    #[test]
    fn they_accept_the_damaged_packets_that_we_accept(
        (version, direction, packet) in known_to_both(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
    ) {
        let mut bytes = encode(&packet, version);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        they_accept_it_if_we_do(&bytes, version, direction)?;
    }
}

/// We must never be the more lenient side, apart from what [`is_known_difference`] lists.
fn they_accept_it_if_we_do(
    bytes: &[u8],
    version: Version,
    direction: Direction,
) -> Result<(), TestCaseError> {
    let Ok(Some(frame)) = tacho_codec::split_frame(bytes, u32::MAX) else {
        return Ok(());
    };
    if frame.total_len != bytes.len() {
        return Ok(());
    }
    let Ok(packet) = Packet::decode(&frame, version, direction) else {
        return Ok(());
    };
    let version = match &packet {
        Packet::Connect(connect) => connect.version,
        _ => version,
    };
    if version == Version::V31 || is_known_difference(&packet) {
        return Ok(());
    }
    let theirs = parse::parse_and_write(bytes, version);
    prop_assert!(theirs.is_ok(), "{theirs:?} for {packet:?}");
    Ok(())
}

/// Where they are stricter than the specification.
fn is_known_difference(packet: &Packet<'_>) -> bool {
    match packet {
        // 5.0 allows a password without a user name (3.1.2.9).
        Packet::Connect(connect) => connect.password.is_some() && connect.username.is_none(),
        // The codec does not check filters; the topic crate does.
        Packet::Subscribe(subscribe) => {
            subscribe.filters.iter().any(|entry| entry.filter.starts_with("$share"))
        }
        Packet::Unsubscribe(unsubscribe) => {
            unsubscribe.filters.iter().any(|filter| filter.starts_with("$share"))
        }
        _ => false,
    }
}

#[test]
fn they_accept_the_handwritten_packets() {
    for &(version, direction, notation) in CANONICAL.iter().chain(OTHER_FORMS) {
        if version != Version::V31 {
            they_accept_it_if_we_do(&bytes(notation), version, direction).unwrap();
        }
    }
}
