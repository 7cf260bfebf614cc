//! Packets as bytes, by the real codec, and back as values that own their parts.

use std::num::NonZeroU16;

use tacho_codec::{
    Ack, AckKind, Connect, ConnectProperties, Direction, Disconnect, Packet, PacketId, Publish,
    PublishProperties, QoS, ReasonCode, RetainHandling, Subscribe, SubscribeFilter,
    SubscribeOptions, Unsubscribe, UserProperties, Version, Will, WillProperties, split_frame,
};

use crate::setup::{FILTERS, Nature, TOPICS, Wish};
pub(crate) use tacho_testkit::packets::{ack, encode};

/// A packet from the broker.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    ConnAck {
        session_present: bool,
        reason: ReasonCode,
        receive_maximum: u16,
        alias_max: u16,
        keep_alive_s: Option<u16>,
    },
    Publish(Received),
    Ack {
        kind: AckKind,
        packet_id: PacketId,
        reason: ReasonCode,
    },
    SubAck {
        packet_id: PacketId,
        reasons: Vec<ReasonCode>,
    },
    UnsubAck {
        packet_id: PacketId,
        /// It may come back when the broker dies.
        unconfirmed: bool,
    },
    PingResp,
    Disconnect(ReasonCode),
}

/// A message from the broker.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) topic: String,
    pub(crate) alias: Option<NonZeroU16>,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    pub(crate) dup: bool,
    pub(crate) packet_id: Option<PacketId>,
    pub(crate) subscription_ids: Vec<u32>,
    pub(crate) expiry_s: Option<u32>,
    pub(crate) payload: Vec<u8>,
}

/// A message to the broker, as its bytes need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) topic: usize,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    pub(crate) expiry_s: Option<u32>,
    pub(crate) alias: tacho_session::AliasOut,
}

/// What a CONNECT says beside the client's nature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) clean_start: bool,
    /// The session ends with the connection.
    pub(crate) ephemeral: bool,
    pub(crate) will: Option<WillWish>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct WillWish {
    pub(crate) id: u32,
    pub(crate) topic: usize,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    pub(crate) delay_s: u32,
}

pub(crate) fn connect(nature: &Nature, client_id: &str, opening: Opening) -> Vec<u8> {
    let v5 = nature.version == Version::V5;
    let expiry_s = if opening.ephemeral { 0 } else { nature.expiry_s };
    let payload = opening.will.map(|will| payload(will.id, 4));
    let will = opening.will.map(|will| Will {
        topic: TOPICS[will.topic],
        payload: payload.as_deref().unwrap_or_default(),
        qos: will.qos,
        retain: will.retain,
        properties: WillProperties {
            delay_s: v5.then_some(will.delay_s),
            ..WillProperties::default()
        },
    });
    let connect = Connect {
        version: nature.version,
        clean_start: opening.clean_start,
        keep_alive_s: nature.keep_alive_s,
        client_id,
        username: None,
        password: None,
        will,
        properties: ConnectProperties {
            session_expiry_s: v5.then_some(expiry_s),
            receive_maximum: v5.then_some(nature.receive_maximum),
            topic_alias_maximum: v5.then_some(nature.alias_max),
            packet_size_max: nature.packet_size_max.filter(|_| v5),
            ..ConnectProperties::default()
        },
    };
    encode(&Packet::Connect(connect), nature.version)
}

pub(crate) fn subscribe(
    version: Version,
    packet_id: PacketId,
    wanted: &[(usize, Wish, RetainHandling)],
) -> Vec<u8> {
    // One identifier per packet; those with different ones go in packets of their own.
    let id = wanted[0].1.id;
    let filters = wanted.iter().map(|(filter, wish, retain_handling)| SubscribeFilter {
        filter: FILTERS[*filter],
        options: SubscribeOptions {
            no_local: wish.no_local,
            retain_as_published: wish.retain_as_published,
            retain_handling: *retain_handling,
            ..SubscribeOptions::new(wish.qos)
        },
    });
    let subscribe = Subscribe {
        packet_id,
        subscription_id: (id != 0).then_some(id),
        user_properties: UserProperties::EMPTY,
        filters: filters.collect(),
    };
    encode(&Packet::Subscribe(subscribe), version)
}

pub(crate) fn unsubscribe(version: Version, packet_id: PacketId, filter: usize) -> Vec<u8> {
    let filters = vec![FILTERS[filter]];
    let user_properties = UserProperties::EMPTY;
    encode(&Packet::Unsubscribe(Unsubscribe { packet_id, user_properties, filters }), version)
}

pub(crate) fn publish(
    version: Version,
    message: Outgoing,
    packet_id: Option<PacketId>,
    dup: bool,
    payload: &[u8],
) -> Vec<u8> {
    let (topic, topic_alias) = match message.alias {
        tacho_session::AliasOut::None => (TOPICS[message.topic], None),
        tacho_session::AliasOut::Use(alias) => ("", Some(alias)),
        tacho_session::AliasOut::Define(alias) => (TOPICS[message.topic], Some(alias)),
    };
    let properties = PublishProperties {
        topic_alias,
        message_expiry_s: message.expiry_s,
        ..PublishProperties::default()
    };
    let (qos, retain) = (message.qos, message.retain);
    let publish = Publish { dup, qos, retain, topic, packet_id, properties, payload };
    encode(&Packet::Publish(publish), version)
}

/// A message's number, and as many bytes that follow from it.
pub(crate) fn payload(id: u32, len: usize) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.resize(len.max(4), id as u8);
    bytes
}

/// The number of the message that has this payload; none of one that deletes.
pub(crate) fn number(payload: &[u8]) -> Option<u32> {
    payload.first_chunk().map(|number| u32::from_be_bytes(*number))
}

pub(crate) fn disconnect(version: Version, reason: ReasonCode, expiry_s: Option<u32>) -> Vec<u8> {
    let disconnect = if version == Version::V5 {
        Disconnect { session_expiry_s: expiry_s, ..Disconnect::new(reason) }
    } else {
        Disconnect::default()
    };
    encode(&Packet::Disconnect(disconnect), version)
}

/// The first packet in `bytes`, and its length.
pub(crate) fn decode(bytes: &[u8], version: Version) -> Option<(Event, usize)> {
    let frame = split_frame(bytes, 1 << 20).expect("the broker writes whole packets")?;
    let packet = Packet::decode(&frame, version, Direction::ToClient);
    let event = match packet.expect("the broker writes legal packets") {
        Packet::ConnAck(connack) => Event::ConnAck {
            session_present: connack.session_present,
            reason: connack.reason,
            receive_maximum: connack.properties.receive_maximum.unwrap_or(u16::MAX),
            alias_max: connack.properties.topic_alias_maximum.unwrap_or(0),
            keep_alive_s: connack.properties.server_keep_alive_s,
        },
        Packet::Publish(publish) => Event::Publish(Received {
            topic: publish.topic.to_owned(),
            alias: publish.properties.topic_alias,
            qos: publish.qos,
            retain: publish.retain,
            dup: publish.dup,
            packet_id: publish.packet_id,
            subscription_ids: publish.properties.subscription_ids.iter().collect(),
            expiry_s: publish.properties.message_expiry_s,
            payload: publish.payload.to_vec(),
        }),
        Packet::PubAck(ack) => acked(AckKind::PubAck, &ack),
        Packet::PubRec(ack) => acked(AckKind::PubRec, &ack),
        Packet::PubRel(ack) => acked(AckKind::PubRel, &ack),
        Packet::PubComp(ack) => acked(AckKind::PubComp, &ack),
        Packet::SubAck(suback) => {
            Event::SubAck { packet_id: suback.packet_id, reasons: suback.reasons }
        }
        Packet::UnsubAck(unsuback) => Event::UnsubAck {
            packet_id: unsuback.packet_id,
            unconfirmed: unsuback.reasons.iter().any(|reason| reason.is_error()),
        },
        Packet::PingResp => Event::PingResp,
        Packet::Disconnect(disconnect) => Event::Disconnect(disconnect.reason),
        other => panic!("no client is sent {other:?}"),
    };
    Some((event, frame.total_len))
}

const fn acked(kind: AckKind, ack: &Ack<'_>) -> Event {
    Event::Ack { kind, packet_id: ack.packet_id, reason: ack.reason }
}
