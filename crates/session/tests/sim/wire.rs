//! Packets as bytes, encoded by the codec crate.

use std::num::NonZeroU16;

use tacho_codec::{
    Ack, AckKind, ConnAck, ConnAckProperties, Connect, ConnectProperties, Direction, Packet,
    PacketId, Publish, PublishProperties, QoS, ReasonCode, Version, split_frame,
};
use tacho_session::AliasOut;

use crate::ledger::{Msg, TOPICS};
pub(crate) use tacho_testkit::packets::ack;
use tacho_testkit::packets::encode;

/// A packet without borrowed parts, as the simulation needs it.
#[derive(Debug)]
pub(crate) enum Event {
    Connect { clean_start: bool, receive_maximum: u16, alias_max: u16, keep_alive_s: u16 },
    ConnAck { session_present: bool, receive_maximum: u16, alias_max: u16 },
    Publish { id: u32, qos: QoS, packet_id: Option<PacketId>, topic: String, alias: Alias },
    Ack { kind: AckKind, packet_id: PacketId, reason: ReasonCode },
    PingReq,
    PingResp,
}

pub(crate) type Alias = Option<NonZeroU16>;

pub(crate) fn connect(
    version: Version,
    clean_start: bool,
    receive_maximum: u16,
    alias_max: u16,
    keep_alive_s: u16,
) -> Vec<u8> {
    let v5 = version == Version::V5;
    let properties = ConnectProperties {
        session_expiry_s: v5.then_some(u32::MAX),
        receive_maximum: v5.then_some(receive_maximum),
        topic_alias_maximum: v5.then_some(alias_max),
        ..ConnectProperties::default()
    };
    let client_id = "sim";
    let connect = Connect {
        version,
        clean_start,
        keep_alive_s,
        client_id,
        username: None,
        password: None,
        will: None,
        properties,
    };
    encode(&Packet::Connect(connect), version)
}

pub(crate) fn connack(
    version: Version,
    session_present: bool,
    receive_maximum: u16,
    alias_max: u16,
) -> Vec<u8> {
    let v5 = version == Version::V5;
    let properties = ConnAckProperties {
        receive_maximum: v5.then_some(receive_maximum),
        topic_alias_maximum: v5.then_some(alias_max),
        ..ConnAckProperties::default()
    };
    let connack = ConnAck { session_present, reason: ReasonCode::SUCCESS, properties };
    encode(&Packet::ConnAck(connack), version)
}

pub(crate) fn publish(
    version: Version,
    Msg { id, topic }: Msg,
    qos: QoS,
    packet_id: Option<PacketId>,
    dup: bool,
    alias: AliasOut,
) -> Vec<u8> {
    let (topic, topic_alias) = match alias {
        AliasOut::None => (TOPICS[topic], None),
        AliasOut::Use(alias) => ("", Some(alias)),
        AliasOut::Define(alias) => (TOPICS[topic], Some(alias)),
    };
    let mut payload = id.to_be_bytes().to_vec();
    payload.resize(4 + id as usize % 40, 0xA5);
    let properties = PublishProperties { topic_alias, ..PublishProperties::default() };
    let retain = false;
    let publish = Publish { dup, qos, retain, topic, packet_id, properties, payload: &payload };
    encode(&Packet::Publish(publish), version)
}

pub(crate) fn ping(version: Version, direction: Direction) -> Vec<u8> {
    let packet = match direction {
        Direction::ToServer => Packet::PingReq,
        Direction::ToClient => Packet::PingResp,
    };
    encode(&packet, version)
}

/// The first packet in `bytes`, and its length.
pub(crate) fn decode(
    bytes: &[u8],
    version: Version,
    direction: Direction,
) -> Option<(Event, usize)> {
    let frame = split_frame(bytes, 1 << 20).expect("the network keeps bytes in order")?;
    let packet = Packet::decode(&frame, version, direction).expect("both sides send legal packets");
    let event = match packet {
        Packet::Connect(connect) => Event::Connect {
            clean_start: connect.clean_start,
            receive_maximum: connect.properties.receive_maximum.unwrap_or(u16::MAX),
            alias_max: connect.properties.topic_alias_maximum.unwrap_or(0),
            keep_alive_s: connect.keep_alive_s,
        },
        Packet::ConnAck(connack) => Event::ConnAck {
            session_present: connack.session_present,
            receive_maximum: connack.properties.receive_maximum.unwrap_or(u16::MAX),
            alias_max: connack.properties.topic_alias_maximum.unwrap_or(0),
        },
        Packet::Publish(publish) => Event::Publish {
            id: u32::from_be_bytes(publish.payload[..4].try_into().expect("four bytes")),
            qos: publish.qos,
            packet_id: publish.packet_id,
            topic: publish.topic.to_owned(),
            alias: publish.properties.topic_alias,
        },
        Packet::PubAck(ack) => event(AckKind::PubAck, &ack),
        Packet::PubRec(ack) => event(AckKind::PubRec, &ack),
        Packet::PubRel(ack) => event(AckKind::PubRel, &ack),
        Packet::PubComp(ack) => event(AckKind::PubComp, &ack),
        Packet::PingReq => Event::PingReq,
        Packet::PingResp => Event::PingResp,
        other => panic!("the simulation never sends {other:?}"),
    };
    Some((event, frame.total_len))
}

const fn event(kind: AckKind, ack: &Ack<'_>) -> Event {
    Event::Ack { kind, packet_id: ack.packet_id, reason: ack.reason }
}
