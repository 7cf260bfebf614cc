//! Packets to and from bytes by the real codec, as owned values.

use tacho_codec::{
    Ack, AckKind, Connect, ConnectProperties, Direction, Disconnect, Packet, PacketId, Publish,
    PublishProperties, QoS, ReasonCode, Subscribe, SubscribeFilter, SubscribeOptions, Unsubscribe,
    UserProperties, Version, Will, WillProperties, split_frame,
};

use crate::cast::{FILTERS, Role, TOPICS};
pub(crate) use tacho_testkit::packets::ack;
use tacho_testkit::packets::encode;

/// Larger than any packet of the test.
const PACKET_SIZE_MAX: u32 = 1 << 20;

/// A packet from the broker.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    ConnAck {
        session_present: bool,
        reason: ReasonCode,
        receive_maximum: u16,
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
    },
    Disconnect(ReasonCode),
    /// A packet without relevance here.
    Other,
}

/// A message from the broker.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) topic: String,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    pub(crate) packet_id: Option<PacketId>,
    pub(crate) payload: Vec<u8>,
}

/// Fields of CONNECT that the client's role does not determine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) clean_start: bool,
    pub(crate) will: Option<WillWish>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct WillWish {
    pub(crate) id: u64,
    pub(crate) topic: usize,
    pub(crate) qos: QoS,
    pub(crate) delay_s: u32,
}

pub(crate) fn connect(role: &Role, opening: Opening) -> Vec<u8> {
    let v5 = role.version == Version::V5;
    let text = opening.will.map(|will| payload(will.id, PAYLOAD_LEN_MIN));
    let will = opening.will.map(|will| Will {
        topic: TOPICS[will.topic],
        payload: text.as_deref().unwrap_or_default(),
        qos: will.qos,
        retain: false,
        properties: WillProperties {
            delay_s: v5.then_some(will.delay_s),
            ..WillProperties::default()
        },
    });
    let connect = Connect {
        version: role.version,
        clean_start: opening.clean_start,
        keep_alive_s: 0,
        client_id: &role.name,
        username: None,
        password: None,
        will,
        properties: ConnectProperties {
            session_expiry_s: v5.then_some(if role.durable { u32::MAX } else { 0 }),
            receive_maximum: v5.then_some(role.receive_maximum),
            ..ConnectProperties::default()
        },
    };
    encode(&Packet::Connect(connect), role.version)
}

pub(crate) fn subscribe(version: Version, packet_id: PacketId, wanted: &[(usize, QoS)]) -> Vec<u8> {
    let filters = wanted.iter().map(|&(filter, qos)| SubscribeFilter {
        filter: FILTERS[filter],
        options: SubscribeOptions::new(qos),
    });
    let subscribe = Subscribe {
        packet_id,
        subscription_id: None,
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
    topic: usize,
    (qos, retain, dup): (QoS, bool, bool),
    packet_id: Option<PacketId>,
    payload: &[u8],
) -> Vec<u8> {
    let (topic, properties) = (TOPICS[topic], PublishProperties::default());
    let publish = Publish { dup, qos, retain, topic, packet_id, properties, payload };
    encode(&Packet::Publish(publish), version)
}

/// A non-empty payload has at least its message number.
pub(crate) const PAYLOAD_LEN_MIN: usize = 8;

/// A message number, padded with bytes derived from it.
pub(crate) fn payload(id: u64, len: usize) -> Vec<u8> {
    if len == 0 {
        return Vec::new();
    }
    let mut bytes = id.to_be_bytes().to_vec();
    let fill = (PAYLOAD_LEN_MIN..len.max(PAYLOAD_LEN_MIN)).map(|at| (at as u64 * 31 + id) as u8);
    bytes.extend(fill);
    bytes
}

/// The number in a payload.
pub(crate) fn number(payload: &[u8]) -> Option<u64> {
    let bytes = payload.get(..PAYLOAD_LEN_MIN)?;
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

pub(crate) fn disconnect(version: Version, reason: ReasonCode) -> Vec<u8> {
    let disconnect = match version {
        Version::V5 => Disconnect::new(reason),
        _ => Disconnect::default(),
    };
    encode(&Packet::Disconnect(disconnect), version)
}

/// The first packet in `bytes` and its length, or the error.
pub(crate) fn decode(bytes: &[u8], version: Version) -> Result<Option<(Event, usize)>, String> {
    let frame = split_frame(bytes, PACKET_SIZE_MAX).map_err(|error| error.to_string())?;
    let Some(frame) = frame else { return Ok(None) };
    let packet = Packet::decode(&frame, version, Direction::ToClient);
    let event = match packet.map_err(|error| error.to_string())? {
        Packet::ConnAck(connack) => Event::ConnAck {
            session_present: connack.session_present,
            reason: connack.reason,
            receive_maximum: connack.properties.receive_maximum.unwrap_or(u16::MAX),
        },
        Packet::Publish(publish) => Event::Publish(Received {
            topic: publish.topic.to_owned(),
            qos: publish.qos,
            retain: publish.retain,
            packet_id: publish.packet_id,
            payload: publish.payload.to_vec(),
        }),
        Packet::PubAck(ack) => acked(AckKind::PubAck, &ack),
        Packet::PubRec(ack) => acked(AckKind::PubRec, &ack),
        Packet::PubRel(ack) => acked(AckKind::PubRel, &ack),
        Packet::PubComp(ack) => acked(AckKind::PubComp, &ack),
        Packet::SubAck(suback) => {
            Event::SubAck { packet_id: suback.packet_id, reasons: suback.reasons }
        }
        Packet::UnsubAck(unsuback) => Event::UnsubAck { packet_id: unsuback.packet_id },
        Packet::Disconnect(disconnect) => Event::Disconnect(disconnect.reason),
        _ => Event::Other,
    };
    Ok(Some((event, frame.total_len)))
}

const fn acked(kind: AckKind, ack: &Ack<'_>) -> Event {
    Event::Ack { kind, packet_id: ack.packet_id, reason: ack.reason }
}
