//! Answers within what the client takes: its Maximum Packet Size, and no explanations if it wants
//! none.

use tacho_codec::{Packet, ReasonCode};
use tacho_net::ConnId;

use crate::keys::SessionSlot;
use crate::shard::output::Flow;
use crate::shard::{Net, Shard};
use crate::trace::TraceKind;

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
        self.trace_packet(net, slot, TraceKind::Out, &packet);
        if self.sessions[slot].terms().encode_answer(packet, net.out(conn).as_vec_mut()) {
            Flow::Continue
        } else {
            self.end_connection(net, conn, ReasonCode::PACKET_TOO_LARGE)
        }
    }
}
