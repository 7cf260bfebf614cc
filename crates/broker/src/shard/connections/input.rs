//! Connections: input of accepted connections, by their phase.

use tacho_codec::{
    Ack, AckKind, Direction, Disconnect, Frame, Packet, Publish, ReasonCode, Version,
    announced_len, split_frame,
};
use tacho_net::ConnId;
use tacho_session::ProtocolError;
use tacho_session::server::End;

use super::goodbye::{Farewell, send_disconnect};
use super::{Connection, is_read_ahead};
use crate::ending::Ending;
use crate::keys::SessionSlot;
use crate::shard::admission::HoldReason;
use crate::shard::output::Flow;
use crate::shard::{Net, Shard};
use crate::trace::TraceKind;

/// The first byte of CONNECT.
const CONNECT: u8 = 0x10;
/// The packet type PUBLISH in the first byte's upper half.
pub(in crate::shard) const PUBLISH: u8 = 0x30;
/// Packet types whose packets may take several turns.
const SUBSCRIBE: u8 = 8;
const UNSUBSCRIBE: u8 = 10;

impl Shard {
    /// Handles every whole packet in `data`; returns how many bytes they took.
    pub(in crate::shard) fn connection_input(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        data: &[u8],
    ) -> usize {
        let mut session = match self.connections.get(conn) {
            Connection::Active { session, .. } => Some(session),
            Connection::Opening { .. } | Connection::Authenticating { .. } => None,
            Connection::Committing { .. } | Connection::LoggingIn { .. } => return 0,
            // It ends, whatever comes.
            Connection::Refusing { .. } => return data.len(),
            Connection::Bridge { link, .. } => {
                return self.bridge_input(net, conn, link, data);
            }
            Connection::Vacant | Connection::Closing => return data.len(),
        };
        if self.begins_wrong(net, conn, data) {
            return data.len();
        }
        self.update_budget();
        let ahead = self.read_ahead_len(session);
        let frame_bytes_max = self.frame_bytes_max(session);
        let (mut used, mut flow, mut has_time) = (0, Flow::Continue, true);
        while used < data.len() && has_time {
            let frame = match split_frame(&data[used..], frame_bytes_max) {
                Ok(Some(frame)) => frame,
                Ok(None) if self.holds_too_much(net, data.len() - used) => {
                    self.end_incomplete(net, conn);
                    return data.len();
                }
                Ok(None) => {
                    net.expect_unit(announced_len(&data[used..]).unwrap_or(0));
                    break;
                }
                Err(error) => {
                    self.protocol_error(net, conn, &error);
                    return data.len();
                }
            };
            flow = match session {
                Some(_) if used < ahead && is_read_ahead(frame.first_byte) => Flow::Continue,
                Some(slot) => self.packet(net, conn, slot, &frame),
                None => self.packet_before_session(net, conn, &frame, &data[used..]),
            };
            match flow {
                Flow::Continue => used += frame.total_len,
                Flow::Hold | Flow::Later => break,
                Flow::Stop => return data.len(),
            }
            has_time = net.charge(1);
            if session.is_none() {
                match self.connections.get(conn) {
                    Connection::Active { session: slot, .. } => session = Some(slot),
                    Connection::Committing { .. } | Connection::LoggingIn { .. } => return used,
                    _ => {}
                }
            }
        }
        if flow == Flow::Later || (!has_time && used < data.len()) {
            // The rest comes again in the next turn.
            net.resume_read(conn);
        }
        match session {
            Some(slot) if self.input_handled(net, conn, slot, data, (used, flow)) == Flow::Stop => {
                data.len()
            }
            _ => used,
        }
    }

    /// Ends a new connection whose first packet is no CONNECT [MQTT-3.1.0-1]: known from one byte,
    /// so nothing is kept for the claimed length.
    fn begins_wrong(&mut self, net: &mut Net, conn: ConnId, data: &[u8]) -> bool {
        let is_wrong = matches!(self.connections.get(conn), Connection::Opening { .. })
            && data.first().is_some_and(|&b| b != CONNECT);
        if is_wrong {
            self.stats.protocol_errors_total.increment();
            self.drop_connection(net, conn);
        }
        is_wrong
    }

    /// After the packets of one read, of which `used` bytes are handled: what is read ahead, what
    /// goes out, and whether the client is read further.
    fn input_handled(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        data: &[u8],
        (used, flow): (usize, Flow),
    ) -> Flow {
        let before = self.read_ahead_len(Some(slot));
        let looked = before.saturating_sub(used);
        if flow == Flow::Hold {
            let handle = |shard: &mut Self, net: &mut Net, frame: &Frame<'_>| {
                shard.packet(net, conn, slot, frame)
            };
            if self.read_ahead(net, slot, &data[used..], looked, handle) == Flow::Stop {
                return Flow::Stop;
            }
        } else if before > 0 {
            self.set_read_ahead_len(slot, looked);
        }
        self.pump(net, slot);
        let session = &mut self.sessions[slot];
        let sent = match used {
            0 => session.partial_grew(data.len()),
            used => used.saturating_sub(session.partial_finished()),
        };
        if flow == Flow::Later {
            // What was begun is finished, whatever else holds the client back then.
            let now_ns = net.now_ns();
            self.sessions[slot].machine.handle_activity(now_ns);
            return Flow::Continue;
        }
        let why = self.reason_to_hold(net, slot, flow, sent);
        // A client that we do not read cannot be blamed for what does not arrive. Only whole
        // packets are signs of life [MQTT-3.1.2-22], or a client could stay for ever with a byte
        // now and then. But one packet may take a slow line longer than the keep alive: each
        // kilobyte more of it counts too.
        if used > 0 || why.is_some() || sent > 0 {
            let now_ns = net.now_ns();
            self.sessions[slot].machine.handle_activity(now_ns);
        }
        if let Some(why) = why {
            let can_read_on = matches!(why, HoldReason::Budget | HoldReason::Rate);
            let reads_on = can_read_on && self.reads_on(&data[used..]);
            match why {
                HoldReason::Rate => self.hold_fast(net, conn, slot, reads_on),
                _ => self.hold_publisher(net, conn, why, reads_on),
            }
        }
        Flow::Continue
    }

    fn packet_before_session(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        frame: &Frame<'_>,
        unread: &[u8],
    ) -> Flow {
        match self.connections.get(conn) {
            Connection::Authenticating { .. } => self.packet_while_authenticating(net, conn, frame),
            _ => self.first_packet(net, conn, frame, unread),
        }
    }

    /// Why a client that has sent so many bytes is not read for a while, if so.
    #[inline]
    fn reason_to_hold(
        &mut self,
        net: &Net,
        slot: SessionSlot,
        flow: Flow,
        sent: usize,
    ) -> Option<HoldReason> {
        if flow == Flow::Hold {
            let is_fast = self.sessions[slot].meter.excess(net.now_ns()).is_some();
            Some(if is_fast { HoldReason::Rate } else { HoldReason::Budget })
        } else if self.is_backlogged(net) {
            Some(HoldReason::Backlog)
        } else {
            (sent > 0 && self.is_heavy(slot, sent)).then_some(HoldReason::Overload)
        }
    }

    /// How large a packet may be: little before CONNECT, when the client is unknown.
    fn frame_bytes_max(&self, session: Option<SessionSlot>) -> u32 {
        let limits = self.limits();
        match session {
            Some(slot) if self.access.has_roles() => {
                let own = self.limits_in(slot).packet_size_max.unwrap_or(u32::MAX);
                limits.packet_size_max.min(own)
            }
            Some(_) => limits.packet_size_max,
            None => limits.packet_size_max.min(limits.connect_size_max),
        }
    }

    /// Whether an incomplete packet is more than can be kept now.
    fn holds_too_much(&mut self, net: &Net, bytes: usize) -> bool {
        bytes > self.shared.overload.slow_reader_bytes && self.has_no_room_for_input(net)
    }

    /// There is no memory for the rest of an incomplete packet.
    #[cold]
    fn end_incomplete(&mut self, net: &mut Net, conn: ConnId) {
        self.stats.ended_incomplete_total.increment();
        self.end_connection(net, conn, ReasonCode::QUOTA_EXCEEDED);
    }

    /// A large packet has grown to `len` bytes and is not whole yet. It counts in the memory of all
    /// buffers, and is as much a sign of life and a reason to be held back as one that is kept
    /// whole.
    pub(in crate::shard) fn packet_grew(&mut self, net: &mut Net, conn: ConnId, len: usize) {
        match self.connections.get(conn) {
            Connection::Bridge { link, .. } => self.bridge_heard(link),
            _ if self.holds_too_much(net, len) => self.end_incomplete(net, conn),
            Connection::Active { session: slot, .. } => {
                let sent = self.sessions[slot].partial_grew(len);
                let why = self.reason_to_hold(net, slot, Flow::Continue, sent);
                if why.is_some() || sent > 0 {
                    let now_ns = net.now_ns();
                    self.sessions[slot].machine.handle_activity(now_ns);
                }
                if let Some(why) = why {
                    self.hold_publisher(net, conn, why, false);
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn packet(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        frame: &Frame<'_>,
    ) -> Flow {
        if frame.first_byte & 0xf0 == PUBLISH {
            return match self.sessions[slot].meter.is_on() {
                false => self.publish_packet(net, conn, slot, frame),
                true => self.metered_publish(net, conn, slot, frame),
            };
        }
        if matches!(frame.type_number(), SUBSCRIBE | UNSUBSCRIBE) {
            return self.request(net, conn, slot, frame);
        }
        self.stats.packets_in_total.increment();
        let version = self.sessions[slot].version();
        if let Some(kind) = AckKind::from_type_number(frame.type_number()) {
            return match Ack::decode(frame, kind, version) {
                Ok(ack) => self.acknowledged(net, conn, slot, kind, &ack),
                Err(error) => self.protocol_error(net, conn, &error),
            };
        }
        if frame.first_byte & 0xf0 == CONNECT {
            // A second one [MQTT-3.1.0-2], whatever else may be wrong with it: what CONNACK would
            // say about that, DISCONNECT cannot.
            let (reason, why) = (ReasonCode::PROTOCOL_ERROR, "a second CONNECT [MQTT-3.1.0-2]");
            return self.end_connection_because(net, conn, reason, why);
        }
        match Packet::decode(frame, version, Direction::ToServer) {
            Ok(packet) => self.other_packet(net, conn, slot, &packet),
            Err(error) => self.protocol_error(net, conn, &error),
        }
    }

    #[inline]
    pub(super) fn publish_packet(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        frame: &Frame<'_>,
    ) -> Flow {
        self.stats.packets_in_total.increment();
        let version = self.sessions[slot].version();
        match Publish::decode(frame, version, Direction::ToServer) {
            Ok(publish) => self.publish_received(net, conn, slot, &publish),
            Err(error) => self.protocol_error(net, conn, &error),
        }
    }

    #[inline]
    fn acknowledged(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        kind: AckKind,
        ack: &Ack<'_>,
    ) -> Flow {
        self.trace_ack(net, slot, TraceKind::In, (kind, ack));
        match self.handle_ack(slot, kind, ack) {
            Ok(()) => Flow::Continue,
            Err(error) => self.session_error(net, conn, &error),
        }
    }

    /// PUBACK, PUBREC, PUBREL or PUBCOMP, for the session.
    #[inline]
    pub(in crate::shard) fn handle_ack(
        &mut self,
        slot: SessionSlot,
        kind: AckKind,
        ack: &Ack<'_>,
    ) -> Result<(), ProtocolError> {
        self.act(slot, |machine, recorder| match kind {
            AckKind::PubAck => machine.handle_puback(ack.packet_id, ack.reason, recorder),
            AckKind::PubRec => machine.handle_pubrec(ack.packet_id, ack.reason, recorder),
            AckKind::PubRel => machine.handle_pubrel(ack.packet_id, recorder),
            AckKind::PubComp => machine.handle_pubcomp(ack.packet_id, ack.reason, recorder),
        })
    }

    fn other_packet(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        packet: &Packet<'_>,
    ) -> Flow {
        self.trace_packet(net, slot, TraceKind::In, packet);
        match packet {
            Packet::PingReq => {
                self.pinged(net, conn, slot);
                Flow::Continue
            }
            Packet::Disconnect(disconnect) => self.disconnected(net, conn, slot, disconnect),
            Packet::Auth(auth) => self.auth_received(net, conn, auth),
            // The codec refuses what only a server may send; CONNECT, PUBLISH, its
            // acknowledgements and requests do not come here.
            _ => self.end_connection(net, conn, ReasonCode::PROTOCOL_ERROR),
        }
    }

    fn disconnected(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        disconnect: &Disconnect<'_>,
    ) -> Flow {
        self.stats.disconnects_by_clients_total.increment(disconnect.reason);
        self.note_end(net, slot, Ending::ByClient(disconnect.reason));
        self.count_flap(net, conn, Some(slot));
        // No longer than any session may live. Any reason but 0x00 publishes the will
        // [MQTT-3.14.4-3].
        let own = self.limits_in(slot).session_expiry_max_s.unwrap_or(u32::MAX);
        let expiry_s_max = self.limits().session_expiry_max_s.min(own);
        let expiry_override = disconnect.session_expiry_s.map(|asked_s| asked_s.min(expiry_s_max));
        let packet_size_max = self.sessions[slot].terms().packet_size_max();
        let end = if disconnect.reason == ReasonCode::NORMAL_DISCONNECTION {
            End::Normal { expiry_override }
        } else {
            End::WithWill { expiry_override }
        };
        if let Some(error) = self.session_disconnected(net, slot, end) {
            // An expiry cannot appear where CONNECT said none (3.14.2.2.2).
            self.stats.protocol_errors_total.increment();
            self.stats.disconnects_by_broker_total.increment(error.reason());
            self.stats.disconnects_out_total.increment();
            let version = Version::V5;
            let why = Some(error.sentence());
            let farewell = Farewell { reason: error.reason(), why, server_reference: None };
            send_disconnect(net, conn, version, &farewell, packet_size_max);
        }
        self.connections.set(conn, Connection::Closing);
        net.close(conn);
        Flow::Stop
    }
}
