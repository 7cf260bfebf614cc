//! Packets as bytes, shared with the tests of other crates.

use tacho_codec::{Ack, AckKind, Packet, PacketId, ReasonCode, Version};

/// Encodes into a fresh buffer and checks the announced length.
pub(crate) fn encode(packet: &Packet<'_>, version: Version) -> Vec<u8> {
    let mut out = vec![0xEE];
    packet.encode(version, &mut out).unwrap_or_else(|error| panic!("{error}: {packet:?}"));
    assert_eq!(out[0], 0xEE, "encoding appends");
    let out = out.split_off(1);
    assert_eq!(packet.encoded_len(version), Ok(out.len()), "{packet:?}");
    out
}

/// An acknowledgement as a packet.
pub(crate) fn acknowledgement(kind: AckKind, ack: Ack<'_>) -> Packet<'_> {
    match kind {
        AckKind::PubAck => Packet::PubAck(ack),
        AckKind::PubRec => Packet::PubRec(ack),
        AckKind::PubRel => Packet::PubRel(ack),
        AckKind::PubComp => Packet::PubComp(ack),
    }
}

/// The bytes of an acknowledgement.
pub(crate) fn ack(
    version: Version,
    kind: AckKind,
    packet_id: PacketId,
    reason: ReasonCode,
) -> Vec<u8> {
    encode(&acknowledgement(kind, Ack::new(packet_id, reason)), version)
}
