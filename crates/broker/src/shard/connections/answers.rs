//! Answers within what the client takes: its Maximum Packet Size, and no explanations if it wants
//! none.

use tacho_codec::{Packet, ReasonCode, Version};
use tacho_net::ConnId;

use crate::keys::SessionSlot;
use crate::shard::connections::Flow;
use crate::shard::{Net, Shard};

impl Shard {
    /// Sends SUBACK, UNSUBACK or another answer to a session's client. Reason string and user
    /// properties are left out where the client wants none [MQTT-3.1.2-29] or where the packet
    /// would be too large with them [MQTT-3.9.2-1], [MQTT-3.9.2-2], [MQTT-3.11.2-1],
    /// [MQTT-3.11.2-2]. Where even the rest is too large, the connection ends: the client named a
    /// size that its own request does not fit [MQTT-3.1.2-24].
    pub(in crate::shard) fn answer(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        packet: Packet<'_>,
    ) -> Flow {
        let session = &self.sessions[slot];
        let packet = if session.no_problem_information {
            packet.without_problem_information()
        } else {
            packet
        };
        let out = net.out(conn).as_vec_mut();
        if encode_within(packet, session.version, session.packet_size_max, out) {
            Flow::Continue
        } else {
            self.end_connection(net, conn, ReasonCode::PACKET_TOO_LARGE)
        }
    }
}

/// Appends an answer to `out`, without reason string and user properties if it
/// would be larger than `packet_size_max` with them. False if it is too large in any case; then
/// nothing is appended.
pub(in crate::shard) fn encode_within(
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
