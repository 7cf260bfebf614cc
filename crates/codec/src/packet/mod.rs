//! The packets.

pub(crate) mod ack;
pub(crate) mod announced;
pub(crate) mod auth;
pub(crate) mod bridge_bit;
pub(crate) mod connack;
pub(crate) mod connect;
pub(crate) mod disconnect;
pub(crate) mod kind;
pub(crate) mod publish;
mod reason_properties;
mod reasons;
pub(crate) mod suback;
pub(crate) mod subscribe;
pub(crate) mod unsuback;
pub(crate) mod unsubscribe;
pub(crate) mod will;

use crate::{
    Ack, AckKind, Auth, ConnAck, Connect, DecodeError, Direction, Disconnect, EncodeError, Frame,
    PacketType, Publish, SubAck, Subscribe, UnsubAck, Unsubscribe, UserProperties, Version,
    check_first_byte,
};

/// Any packet, borrowing its strings and payload from the buffer it was decoded from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the packet of its name")]
pub enum Packet<'a> {
    Connect(Connect<'a>),
    ConnAck(ConnAck<'a>),
    Publish(Publish<'a>),
    PubAck(Ack<'a>),
    PubRec(Ack<'a>),
    PubRel(Ack<'a>),
    PubComp(Ack<'a>),
    Subscribe(Subscribe<'a>),
    SubAck(SubAck<'a>),
    Unsubscribe(Unsubscribe<'a>),
    UnsubAck(UnsubAck<'a>),
    PingReq,
    PingResp,
    Disconnect(Disconnect<'a>),
    Auth(Auth<'a>),
}

impl<'a> Packet<'a> {
    /// Decodes a packet that travels in `direction` on a connection of `version`.
    ///
    /// A CONNECT names its own version; then `version` is ignored.
    ///
    /// # Errors
    /// The violated rule, with the reason code to close the connection with.
    pub fn decode(
        frame: &Frame<'a>,
        version: Version,
        direction: Direction,
    ) -> Result<Self, DecodeError> {
        Self::decode_bounded(frame, version, direction, usize::MAX)
    }

    /// [`Packet::decode`] of a SUBSCRIBE or UNSUBSCRIBE with at most `filters_max` filters; one
    /// with more is refused with [`QUOTA_EXCEEDED`](crate::ReasonCode::QUOTA_EXCEEDED) before more
    /// is read of it, so that neither time nor memory grows with the packet.
    ///
    /// # Errors
    /// The same, and too many filters.
    pub fn decode_bounded(
        frame: &Frame<'a>,
        version: Version,
        direction: Direction,
        filters_max: usize,
    ) -> Result<Self, DecodeError> {
        let packet_type = check_first_byte(frame.first_byte, version, direction)?;
        if packet_type != PacketType::Connect {
            frame.check_header_len(version)?;
        }
        Ok(match packet_type {
            PacketType::Connect => Self::Connect(Connect::decode(frame)?),
            PacketType::ConnAck => Self::ConnAck(ConnAck::decode(frame, version)?),
            PacketType::Publish => Self::Publish(Publish::decode(frame, version, direction)?),
            PacketType::PubAck => Self::PubAck(Ack::decode(frame, AckKind::PubAck, version)?),
            PacketType::PubRec => Self::PubRec(Ack::decode(frame, AckKind::PubRec, version)?),
            PacketType::PubRel => Self::PubRel(Ack::decode(frame, AckKind::PubRel, version)?),
            PacketType::PubComp => Self::PubComp(Ack::decode(frame, AckKind::PubComp, version)?),
            PacketType::Subscribe => {
                Self::Subscribe(Subscribe::decode_bounded(frame, version, filters_max)?)
            }
            PacketType::SubAck => Self::SubAck(SubAck::decode(frame, version)?),
            PacketType::Unsubscribe => {
                Self::Unsubscribe(Unsubscribe::decode_bounded(frame, version, filters_max)?)
            }
            PacketType::UnsubAck => Self::UnsubAck(UnsubAck::decode(frame, version)?),
            PacketType::PingReq => empty(frame, Self::PingReq)?,
            PacketType::PingResp => empty(frame, Self::PingResp)?,
            PacketType::Disconnect => {
                Self::Disconnect(Disconnect::decode(frame, version, direction)?)
            }
            PacketType::Auth => Self::Auth(Auth::decode(frame, direction)?),
        })
    }

    /// Appends the packet to `out`. Properties and reason codes that the version does not have are
    /// omitted. A CONNECT is encoded in its own version.
    ///
    /// # Errors
    /// See [`EncodeError`]; `out` is then unchanged.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::Connect(packet) => packet.encode(out),
            Self::ConnAck(packet) => packet.encode(version, out),
            Self::Publish(packet) => packet.encode(version, out),
            Self::PubAck(packet) => packet.encode(AckKind::PubAck, version, out),
            Self::PubRec(packet) => packet.encode(AckKind::PubRec, version, out),
            Self::PubRel(packet) => packet.encode(AckKind::PubRel, version, out),
            Self::PubComp(packet) => packet.encode(AckKind::PubComp, version, out),
            Self::Subscribe(packet) => packet.encode(version, out),
            Self::SubAck(packet) => packet.encode(version, out),
            Self::Unsubscribe(packet) => packet.encode(version, out),
            Self::UnsubAck(packet) => packet.encode(version, out),
            Self::PingReq => {
                out.extend_from_slice(&[0xC0, 0x00]);
                Ok(())
            }
            Self::PingResp => {
                out.extend_from_slice(&[0xD0, 0x00]);
                Ok(())
            }
            Self::Disconnect(packet) => packet.encode(version, out),
            Self::Auth(packet) => packet.encode(version, out),
        }
    }

    /// How many bytes [`Packet::encode`] would append.
    ///
    /// # Errors
    /// The same as [`Packet::encode`].
    pub fn encoded_len(&self, version: Version) -> Result<usize, EncodeError> {
        match self {
            Self::Connect(packet) => packet.encoded_len(),
            Self::ConnAck(packet) => packet.encoded_len(version),
            Self::Publish(packet) => packet.encoded_len(version),
            Self::PubAck(packet)
            | Self::PubRec(packet)
            | Self::PubRel(packet)
            | Self::PubComp(packet) => packet.encoded_len(version),
            Self::Subscribe(packet) => packet.encoded_len(version),
            Self::SubAck(packet) => packet.encoded_len(version),
            Self::Unsubscribe(packet) => packet.encoded_len(version),
            Self::UnsubAck(packet) => packet.encoded_len(version),
            Self::PingReq | Self::PingResp => Ok(2),
            Self::Disconnect(packet) => packet.encoded_len(version),
            Self::Auth(packet) => packet.encoded_len(version),
        }
    }

    /// The packet without reason string and user properties, which are diagnostic only.
    ///
    /// Used for a client that asked for no problem information, on all packets but CONNACK and
    /// DISCONNECT [MQTT-3.1.2-29], and for every answer that would otherwise exceed the receiver's
    /// maximum packet size ([MQTT-3.2.2-19], [MQTT-3.4.2-2] and similar). Requests and PUBLISH are
    /// returned unchanged.
    #[must_use]
    pub const fn without_problem_information(mut self) -> Self {
        let (reason_string, user_properties) = match &mut self {
            Self::PubAck(ack) | Self::PubRec(ack) | Self::PubRel(ack) | Self::PubComp(ack) => {
                (&mut ack.reason_string, &mut ack.user_properties)
            }
            Self::ConnAck(ConnAck { properties, .. }) => {
                (&mut properties.reason_string, &mut properties.user_properties)
            }
            Self::SubAck(suback) => (&mut suback.reason_string, &mut suback.user_properties),
            Self::UnsubAck(unsuback) => {
                (&mut unsuback.reason_string, &mut unsuback.user_properties)
            }
            Self::Disconnect(disconnect) => {
                (&mut disconnect.reason_string, &mut disconnect.user_properties)
            }
            Self::Auth(auth) => (&mut auth.reason_string, &mut auth.user_properties),
            Self::Connect(_)
            | Self::Publish(_)
            | Self::Subscribe(_)
            | Self::Unsubscribe(_)
            | Self::PingReq
            | Self::PingResp => return self,
        };
        *reason_string = None;
        *user_properties = UserProperties::EMPTY;
        self
    }

    /// The type of the packet.
    #[must_use]
    pub const fn packet_type(&self) -> PacketType {
        match self {
            Self::Connect(_) => PacketType::Connect,
            Self::ConnAck(_) => PacketType::ConnAck,
            Self::Publish(_) => PacketType::Publish,
            Self::PubAck(_) => PacketType::PubAck,
            Self::PubRec(_) => PacketType::PubRec,
            Self::PubRel(_) => PacketType::PubRel,
            Self::PubComp(_) => PacketType::PubComp,
            Self::Subscribe(_) => PacketType::Subscribe,
            Self::SubAck(_) => PacketType::SubAck,
            Self::Unsubscribe(_) => PacketType::Unsubscribe,
            Self::UnsubAck(_) => PacketType::UnsubAck,
            Self::PingReq => PacketType::PingReq,
            Self::PingResp => PacketType::PingResp,
            Self::Disconnect(_) => PacketType::Disconnect,
            Self::Auth(_) => PacketType::Auth,
        }
    }
}

fn empty<'a>(frame: &Frame<'_>, packet: Packet<'a>) -> Result<Packet<'a>, DecodeError> {
    if frame.body.is_empty() {
        Ok(packet)
    } else {
        Err(DecodeError::malformed("a ping has a body (3.12.1)"))
    }
}
