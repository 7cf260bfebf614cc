//! The properties that every decoded packet must have.

use tacho_codec::{Connect, Direction, Packet, Version, split_frame};

/// Decodes the packet behind the version byte; a legal one must survive encoding and decoding.
pub fn check(data: &[u8], direction: Direction) {
    let Some((&level, bytes)) = data.split_first() else { return };
    let version = match level {
        3 => Version::V31,
        4 => Version::V311,
        _ => Version::V5,
    };
    let Ok(Some(frame)) = split_frame(bytes, u32::MAX) else { return };
    let _ = Connect::reply_version(&frame);
    let Ok(packet) = Packet::decode(&frame, version, direction) else { return };
    let version = match &packet {
        Packet::Connect(connect) => connect.version,
        _ => version,
    };
    let mut once = Vec::new();
    packet.encode(version, &mut once).expect("a decoded packet can be encoded");
    assert_eq!(packet.encoded_len(version), Ok(once.len()));
    let frame = split_frame(&once, u32::MAX).expect("legal").expect("whole");
    let again = Packet::decode(&frame, version, direction).expect("an encoded packet decodes");
    assert_eq!(packet, again);
    let mut twice = Vec::new();
    again.encode(version, &mut twice).expect("a decoded packet can be encoded");
    assert_eq!(once, twice);
}
