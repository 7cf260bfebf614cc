//! What becomes of a packet that arrived, and how packets of the broker's own are written.

use tacho_codec::{Packet, Version};
use tacho_net::ConnId;

use super::Net;

/// What to do after a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Continue,
    /// The connection is no longer ours to read.
    Stop,
    /// The packet cannot be taken in yet: it stays unread for a while.
    Hold,
    /// The packet is not done yet: it stays unread until the next turn.
    Later,
}

/// Appends a packet of ours to a connection's output.
pub(super) fn encode(packet: &Packet<'_>, version: Version, net: &mut Net, conn: ConnId) {
    // Invariant: packets we make are far below the largest Remaining Length.
    let encoded = packet.encode(version, net.out(conn).as_vec_mut());
    debug_assert!(encoded.is_ok(), "a packet of our own making must be encodable");
}

/// Appends an answer to `out`, without reason string and user properties if it
/// would be larger than `packet_size_max` with them. False if it is too large in any case; then
/// nothing is appended.
pub(super) fn encode_within(
    packet: Packet<'_>,
    version: Version,
    packet_size_max: u32,
    out: &mut Vec<u8>,
) -> bool {
    let fits = |packet: &Packet<'_>| {
        packet.encoded_len(version).is_ok_and(|len| len <= packet_size_max as usize)
    };
    let packet = if fits(&packet) { packet } else { packet.without_problem_information() };
    fits(&packet) && packet.encode(version, out).is_ok()
}
