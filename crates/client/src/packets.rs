//! Packets of the broker that do not borrow.

use tacho_codec::{AckKind, ConnAck, Packet, PacketId, PacketType, Publish, QoS, ReasonCode};

use crate::message::{Message, Received};

/// What the broker says of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// It has a session of this client.
    pub session_present: bool,
    /// The highest QoS of messages that it takes.
    pub qos_max: QoS,
    /// Whether it keeps retained messages.
    pub retain_available: bool,
}

/// What counts of a CONNACK.
pub(crate) struct Hello {
    pub(crate) reason: ReasonCode,
    pub(crate) text: Option<String>,
    pub(crate) accepted: Accepted,
    pub(crate) receive_maximum: u16,
    pub(crate) keep_alive_s: Option<u16>,
}

impl Hello {
    pub(crate) fn of(connack: &ConnAck<'_>) -> Self {
        let properties = &connack.properties;
        Self {
            reason: connack.reason,
            text: properties.reason_string.map(str::to_owned),
            accepted: Accepted {
                session_present: connack.session_present,
                qos_max: properties.maximum_qos.unwrap_or(QoS::ExactlyOnce),
                retain_available: properties.retain_available.unwrap_or(true),
            },
            receive_maximum: properties.receive_maximum.unwrap_or(u16::MAX),
            keep_alive_s: properties.server_keep_alive_s,
        }
    }
}

/// A packet of the broker that does not borrow.
pub(crate) enum OwnPacket {
    Message(Box<Received>),
    Ack(AckKind, PacketId, ReasonCode),
    Subscribed(PacketId, Vec<ReasonCode>),
    Pong,
    Disconnect(ReasonCode),
    Other(&'static str),
}

impl OwnPacket {
    pub(crate) fn of(packet: &Packet<'_>) -> Self {
        match packet {
            Packet::Publish(publish) => Self::message(publish),
            Packet::PubAck(ack) => Self::Ack(AckKind::PubAck, ack.packet_id, ack.reason),
            Packet::PubRec(ack) => Self::Ack(AckKind::PubRec, ack.packet_id, ack.reason),
            Packet::PubRel(ack) => Self::Ack(AckKind::PubRel, ack.packet_id, ack.reason),
            Packet::PubComp(ack) => Self::Ack(AckKind::PubComp, ack.packet_id, ack.reason),
            Packet::SubAck(answer) => Self::Subscribed(answer.packet_id, answer.reasons.clone()),
            Packet::PingResp => Self::Pong,
            Packet::Disconnect(disconnect) => Self::Disconnect(disconnect.reason),
            other => Self::Other(other.packet_type().name()),
        }
    }

    fn message(publish: &Publish<'_>) -> Self {
        // The client grants no topic aliases, so that a topic is always there.
        if publish.topic.is_empty() || publish.properties.topic_alias.is_some() {
            return Self::Other(PacketType::Publish.name());
        }
        let message = Message::of(publish, publish.topic);
        let (packet_id, dup) = (publish.packet_id, publish.dup);
        Self::Message(Box::new(Received { message, packet_id, dup }))
    }
}
