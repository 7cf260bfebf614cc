//! Packets from the broker.

use tacho_codec::{
    Ack, AckKind, Announced, DecodeError, Direction, Frame, Packet, PacketType, Publish,
    ReasonCode, split_frame,
};
use tacho_net::{ConnId, Net, clock};
use tacho_session::{Inbound, Transmit};

use super::message::{Message, Published};
use super::{Failure, Worker};
use crate::events::OversizedPacket;
use crate::mail::{Mail, ReportBody};
use crate::verifier::{Received, Verdict};

/// Packets per clock reading: at well below 0.2 us each, the error stays below 10 us.
const PACKETS_PER_CLOCK_READ: usize = 32;

impl Worker {
    pub(super) fn handle_input(&mut self, net: &mut Net<Self>, conn: ConnId, data: &[u8]) -> usize {
        let Some(client) = self.client_of(conn) else { return self.replaced_input(conn, data) };
        let size_max = self.context.packet_bytes_accepted[self.clients[client].group];
        let mut used = 0;
        let mut packets = 0;
        let mut now_ns = clock::now_ns();
        self.advance(net, now_ns);
        loop {
            let frame = match split_frame(&data[used..], size_max) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    self.fail(net, client, unreadable(&data[used..], size_max, error));
                    return data.len();
                }
            };
            used += frame.total_len;
            if let Err(why) = self.handle_packet(net, client, &frame, now_ns) {
                self.fail(net, client, why);
                return data.len();
            }
            packets += 1;
            self.traffic.packets += 1;
            if packets % PACKETS_PER_CLOCK_READ == 0 {
                now_ns = clock::now_ns();
            }
        }
        if !self.intake.keep(conn, data.len() - used) {
            let (packet, budget_bytes) = (announced(&data[used..]), self.intake.bytes_max());
            self.fail(net, client, Failure::ReceiveBudget { packet, budget_bytes });
            return data.len();
        }
        self.send_answers(net, client, conn, now_ns);
        self.write_pending(net, client, conn, now_ns);
        used
    }

    #[inline]
    fn handle_packet(
        &mut self,
        net: &mut Net<Self>,
        client: usize,
        frame: &Frame<'_>,
        now_ns: u64,
    ) -> Result<(), Failure> {
        const PUBLISH: u8 = PacketType::Publish as u8;
        const PUBACK: u8 = PacketType::PubAck as u8;
        let version = self.clients[client].version;
        let protocol = |error: tacho_codec::DecodeError| Failure::Protocol(error.to_string());
        match frame.type_number() {
            PUBLISH => {
                let publish = Publish::decode(frame, version, Direction::ToClient);
                self.handle_publish(net, client, &publish.map_err(protocol)?, now_ns)
            }
            PUBACK => {
                let ack = Ack::decode(frame, AckKind::PubAck, version).map_err(protocol)?;
                self.handle_ack(client, AckKind::PubAck, &ack, now_ns)
            }
            _ => {
                let packet = Packet::decode(frame, version, Direction::ToClient);
                self.handle_other(net, client, &packet.map_err(protocol)?, now_ns)
            }
        }
    }

    fn handle_other(
        &mut self,
        net: &mut Net<Self>,
        client: usize,
        packet: &Packet<'_>,
        now_ns: u64,
    ) -> Result<(), Failure> {
        let up = self.clients[client].state.is_up();
        match packet {
            Packet::ConnAck(connack) => self.handle_connack(net, client, connack, now_ns),
            Packet::Auth(auth) => self.handle_auth(net, client, auth),
            Packet::Disconnect(disconnect) => Err(Failure::Disconnected(disconnect.reason)),
            _ if !up => Err(Failure::Protocol("a packet before CONNACK".into())),
            Packet::PubRec(ack) => self.handle_ack(client, AckKind::PubRec, ack, now_ns),
            Packet::PubComp(ack) => self.handle_ack(client, AckKind::PubComp, ack, now_ns),
            Packet::PubRel(ack) => self.clients[client]
                .session
                .handle_pubrel(ack.packet_id)
                .map_err(|error| Failure::Protocol(error.to_string())),
            Packet::SubAck(suback) => self.handle_suback(client, suback, now_ns),
            Packet::PingResp => {
                self.clients[client].session.handle_pingresp();
                Ok(())
            }
            other => Err(Failure::Protocol(format!("unexpected {}", other.packet_type().name()))),
        }
    }

    #[inline]
    fn handle_publish(
        &mut self,
        net: &mut Net<Self>,
        client: usize,
        publish: &Publish<'_>,
        now_ns: u64,
    ) -> Result<(), Failure> {
        let state = &mut self.clients[client];
        let cell = state.cell;
        if publish.properties.topic_alias.is_some() {
            return Err(Failure::Protocol("a topic alias although none is allowed".into()));
        }
        let inbound = state
            .session
            .handle_publish(publish.qos, publish.packet_id)
            .map_err(|error| Failure::Protocol(error.to_string()))?;
        if inbound == Inbound::Duplicate {
            // A retransmission within a QoS 2 exchange is not a delivery.
            return Ok(());
        }
        let answers = state.answers.is_some();
        let received = Received {
            topic: publish.topic,
            payload: publish.payload,
            dup: publish.dup,
            correlation: publish.properties.correlation_data,
        };
        let verdict = self.verifier.observe(now_ns, client, &received);
        if answers && matches!(verdict, Verdict::Delivered { .. } | Verdict::Probe { .. }) {
            self.answer(net, client, publish)?;
        }
        match verdict {
            Verdict::Delivered { header, settled } => {
                self.totals.received += 1;
                self.recorder.received(cell, &header, now_ns);
                self.recorder.cell(cell).payload_bytes_in += publish.payload.len() as u64;
                if publish.retain {
                    self.note_retained(client, now_ns);
                }
                let home = self.context.homes[header.stream.index()];
                if home.wants_credit && settled > 0 {
                    if usize::from(home.thread) == self.thread {
                        self.credit(home.local, settled);
                    } else {
                        let credit = Mail::Credit { stream: home.local, deliveries: settled };
                        self.post(net, home.thread.into(), credit);
                    }
                }
            }
            Verdict::Probe { stream, receiver } => self.forward_probe(net, stream, receiver),
            Verdict::Will { of } => self.note_will(client, of, now_ns),
            Verdict::Other => {}
        }
        Ok(())
    }

    /// PUBACK, PUBREC or PUBCOMP.
    #[inline]
    fn handle_ack(
        &mut self,
        client: usize,
        kind: AckKind,
        ack: &Ack<'_>,
        now_ns: u64,
    ) -> Result<(), Failure> {
        let state = &mut self.clients[client];
        let done = match kind {
            AckKind::PubAck => state.session.handle_puback(ack.packet_id, ack.reason),
            AckKind::PubRec => state.session.handle_pubrec(ack.packet_id, ack.reason),
            AckKind::PubComp | AckKind::PubRel => {
                state.session.handle_pubcomp(ack.packet_id, ack.reason)
            }
        };
        let done = done.map_err(|error| Failure::Protocol(error.to_string()))?;
        if let Some(published) = done {
            // A broker that does not know the packet identifier of a PUBREL has completed the
            // exchange before.
            let ended =
                kind == AckKind::PubComp && ack.reason == ReasonCode::PACKET_IDENTIFIER_NOT_FOUND;
            let refused = Some(ack.reason).filter(|reason| reason.is_error() && !ended);
            match published {
                Published::Message(message) => self.finish(client, &message, refused, now_ns),
                Published::Answer(number) => self.answered(client, number, refused.is_some()),
            }
        }
        Ok(())
    }

    /// The last acknowledgement of a message was received; it may refuse the message.
    fn finish(
        &mut self,
        client: usize,
        message: &Message,
        refused: Option<ReasonCode>,
        now_ns: u64,
    ) {
        self.totals.unacked -= 1;
        let state = &mut self.clients[client];
        let cell = state.cell;
        if !state.waiting.is_empty() && !state.is_unblocked {
            state.is_unblocked = true;
            self.unblocked.push(client as u32);
        }
        if message.probe {
            return;
        }
        if let Some(reason) = refused {
            self.recorder.cell(cell).refused += 1;
            self.recorder.not_acked(message.intended_ns, message.sent_ns, now_ns);
            // The broker refused the message, so its loss is no violation.
            self.streams[message.stream as usize].relax_judgement();
            if state.refusal.replace(reason) != Some(reason) {
                let why = Failure::PublishRefused(reason);
                let client = state.index;
                self.report(ReportBody::Failed { client, why });
            }
        } else {
            self.recorder.acked(cell, message.intended_ns, message.sent_ns, now_ns);
            self.streams[message.stream as usize].acknowledged(message.seq);
        }
        self.credit_ack(message.stream, now_ns);
    }

    /// Writes the pending output of the session: acknowledgements, PUBREL, retransmissions.
    fn write_pending(&mut self, net: &mut Net<Self>, client: usize, conn: ConnId, now_ns: u64) {
        let state = &mut self.clients[client];
        if !state.session.has_output() {
            return;
        }
        let version = state.version;
        let out = net.out(conn).as_vec_mut();
        while let Some(transmit) = state.session.poll_transmit(now_ns) {
            match transmit {
                Transmit::Ack { kind, packet_id, reason } => {
                    Self::encode_ack(kind, Ack::new(packet_id, reason), version, out);
                }
                Transmit::PubRel { packet_id, reason } => {
                    Self::encode_ack(AckKind::PubRel, Ack::new(packet_id, reason), version, out);
                }
                Transmit::Publish { delivery, packet_id, dup } => match delivery.message {
                    Published::Message(message) => {
                        let stream = &self.streams[message.stream as usize];
                        stream.write(&self.context.streams, &message, packet_id, dup, out);
                    }
                    Published::Answer(number) => {
                        if let Some(answers) = &state.answers {
                            answers.write(number, version, packet_id, dup, out);
                        }
                    }
                },
            }
        }
    }
}

/// The failure of a client whose broker sent bytes that are no packet, or one that is too large.
#[cold]
fn unreadable(data: &[u8], limit_bytes: u32, error: DecodeError) -> Failure {
    match error.reason {
        ReasonCode::PACKET_TOO_LARGE => {
            Failure::PacketTooLarge { packet: announced(data), limit_bytes }
        }
        _ => Failure::Protocol(error.to_string()),
    }
}

/// The packet that `data` begins with; an incomplete header stands for the little that there is.
fn announced(data: &[u8]) -> OversizedPacket {
    let packet = Announced::read(data);
    OversizedPacket {
        name: packet.map_or("an incomplete header", |packet| packet.name()),
        bytes: packet.map_or(0, |packet| packet.total_len),
    }
}
