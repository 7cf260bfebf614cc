//! Packets as bytes and back.

use tacho_codec::{
    Ack, AckKind, Connect, DecodeError, Direction, Frame, Packet, PacketId, ReasonCode, Version,
    split_frame,
};

/// Encodes into a fresh buffer and checks the announced length.
pub fn encode(packet: &Packet<'_>, version: Version) -> Vec<u8> {
    let mut out = vec![0xEE];
    packet.encode(version, &mut out).unwrap_or_else(|error| panic!("{error}: {packet:?}"));
    assert_eq!(out[0], 0xEE, "encoding appends");
    let out = out.split_off(1);
    assert_eq!(packet.encoded_len(version), Ok(out.len()), "{packet:?}");
    out
}

/// An acknowledgement as a packet.
pub fn acknowledgement(kind: AckKind, ack: Ack<'_>) -> Packet<'_> {
    match kind {
        AckKind::PubAck => Packet::PubAck(ack),
        AckKind::PubRec => Packet::PubRec(ack),
        AckKind::PubRel => Packet::PubRel(ack),
        AckKind::PubComp => Packet::PubComp(ack),
    }
}

/// The bytes of an acknowledgement.
pub fn ack(version: Version, kind: AckKind, packet_id: PacketId, reason: ReasonCode) -> Vec<u8> {
    encode(&acknowledgement(kind, Ack::new(packet_id, reason)), version)
}

/// The only frame in `bytes`.
pub fn frame(bytes: &[u8]) -> Frame<'_> {
    let frame = split_frame(bytes, u32::MAX).unwrap().expect("a whole packet");
    assert_eq!(frame.total_len, bytes.len(), "one packet and nothing else");
    frame
}

/// Decodes the only packet in `bytes`.
pub fn decode(
    bytes: &[u8],
    version: Version,
    direction: Direction,
) -> Result<Packet<'_>, DecodeError> {
    Packet::decode(&frame(bytes), version, direction)
}

/// Decodes the packet at the start of `bytes`; a legal one must survive encoding and decoding
/// unchanged. Never panics on illegal bytes.
pub fn decode_is_stable(bytes: &[u8], version: Version, direction: Direction) -> bool {
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
