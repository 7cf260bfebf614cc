//! Decodes with `mqtt-protocol-core`.

use mqtt_protocol_core::mqtt::packet::{v3_1_1, v5_0};
use mqtt_protocol_core::mqtt::result_code::MqttError;
use tacho_codec::{PacketType, Version, split_frame};

macro_rules! rewrite {
    ($parsed:expr, $len:expr) => {{
        let (packet, len) = $parsed?;
        assert_eq!(len, $len, "all bytes are consumed");
        packet.to_continuous_buffer()
    }};
}

/// Decodes one packet and encodes it again.
pub(crate) fn parse_and_write(bytes: &[u8], version: Version) -> Result<Vec<u8>, MqttError> {
    let frame = split_frame(bytes, u32::MAX).unwrap().unwrap();
    let packet_type = PacketType::from_first_byte(frame.first_byte).unwrap();
    let flags = frame.first_byte & 0x0F;
    if version.is_v5() {
        v5(packet_type, flags, frame.body)
    } else {
        v311(packet_type, flags, frame.body)
    }
}

fn v5(packet_type: PacketType, flags: u8, body: &[u8]) -> Result<Vec<u8>, MqttError> {
    let len = body.len();
    Ok(match packet_type {
        PacketType::Connect => rewrite!(v5_0::Connect::parse(body), len),
        PacketType::ConnAck => rewrite!(v5_0::Connack::parse(body), len),
        PacketType::Publish => rewrite!(v5_0::Publish::parse(flags, body.into()), len),
        PacketType::PubAck => rewrite!(v5_0::Puback::parse(body), len),
        PacketType::PubRec => rewrite!(v5_0::Pubrec::parse(body), len),
        PacketType::PubRel => rewrite!(v5_0::Pubrel::parse(body), len),
        PacketType::PubComp => rewrite!(v5_0::Pubcomp::parse(body), len),
        PacketType::Subscribe => rewrite!(v5_0::Subscribe::parse(body), len),
        PacketType::SubAck => rewrite!(v5_0::Suback::parse(body), len),
        PacketType::Unsubscribe => rewrite!(v5_0::Unsubscribe::parse(body), len),
        PacketType::UnsubAck => rewrite!(v5_0::Unsuback::parse(body), len),
        PacketType::PingReq => rewrite!(v5_0::Pingreq::parse(body), len),
        PacketType::PingResp => rewrite!(v5_0::Pingresp::parse(body), len),
        PacketType::Disconnect => rewrite!(v5_0::Disconnect::parse(body), len),
        PacketType::Auth => rewrite!(v5_0::Auth::parse(body), len),
    })
}

fn v311(packet_type: PacketType, flags: u8, body: &[u8]) -> Result<Vec<u8>, MqttError> {
    let len = body.len();
    Ok(match packet_type {
        PacketType::Connect => rewrite!(v3_1_1::Connect::parse(body), len),
        PacketType::ConnAck => rewrite!(v3_1_1::Connack::parse(body), len),
        PacketType::Publish => rewrite!(v3_1_1::Publish::parse(flags, body.into()), len),
        PacketType::PubAck => rewrite!(v3_1_1::Puback::parse(body), len),
        PacketType::PubRec => rewrite!(v3_1_1::Pubrec::parse(body), len),
        PacketType::PubRel => rewrite!(v3_1_1::Pubrel::parse(body), len),
        PacketType::PubComp => rewrite!(v3_1_1::Pubcomp::parse(body), len),
        PacketType::Subscribe => rewrite!(v3_1_1::Subscribe::parse(body), len),
        PacketType::SubAck => rewrite!(v3_1_1::Suback::parse(body), len),
        PacketType::Unsubscribe => rewrite!(v3_1_1::Unsubscribe::parse(body), len),
        PacketType::UnsubAck => rewrite!(v3_1_1::Unsuback::parse(body), len),
        PacketType::PingReq => rewrite!(v3_1_1::Pingreq::parse(body), len),
        PacketType::PingResp => rewrite!(v3_1_1::Pingresp::parse(body), len),
        PacketType::Disconnect => rewrite!(v3_1_1::Disconnect::parse(body), len),
        PacketType::Auth => return Err(MqttError::MalformedPacket),
    })
}
