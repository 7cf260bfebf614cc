//! Shared by the tests of this folder.
#![allow(dead_code, reason = "each test uses its own part")]

pub(crate) mod notation;
mod packets;
pub(crate) mod strategies;
pub(crate) mod vectors;

pub(crate) use packets::encode;
use tacho_codec::{Connect, DecodeError, Direction, Frame, Packet, Version, split_frame};

/// The only frame in `bytes`.
pub(crate) fn frame(bytes: &[u8]) -> Frame<'_> {
    let frame = split_frame(bytes, u32::MAX).unwrap().expect("a whole packet");
    assert_eq!(frame.total_len, bytes.len(), "one packet and nothing else");
    frame
}

/// Decodes the only packet in `bytes`.
pub(crate) fn decode(
    bytes: &[u8],
    version: Version,
    direction: Direction,
) -> Result<Packet<'_>, DecodeError> {
    Packet::decode(&frame(bytes), version, direction)
}

/// Decodes the packet at the start of `bytes`; a legal one must survive encoding and decoding
/// unchanged. Never panics on illegal bytes.
pub(crate) fn decode_is_stable(bytes: &[u8], version: Version, direction: Direction) -> bool {
    let Ok(Some(frame)) = split_frame(bytes, u32::MAX) else {
        return false;
    };
    let _ = Connect::reply_version(&frame);
    let Ok(packet) = Packet::decode(&frame, version, direction) else {
        return false;
    };
    let version = match &packet {
        Packet::Connect(connect) => connect.version,
        _ => version,
    };
    let _ = format!("{packet:?}");
    let once = encode(&packet, version);
    let again = decode(&once, version, direction).expect("an encoded packet decodes");
    assert_eq!(packet, again);
    assert_eq!(once, encode(&again, version));
    true
}
