//! Packet types, and the rules for the first byte of a packet.

use crate::{DecodeError, Direction, Version};

/// The type of a packet: the high four bits of its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are the specification's")]
pub enum PacketType {
    Connect = 1,
    ConnAck = 2,
    Publish = 3,
    PubAck = 4,
    PubRec = 5,
    PubRel = 6,
    PubComp = 7,
    Subscribe = 8,
    SubAck = 9,
    Unsubscribe = 10,
    UnsubAck = 11,
    PingReq = 12,
    PingResp = 13,
    Disconnect = 14,
    Auth = 15,
}

impl PacketType {
    /// All types, by number.
    pub const ALL: [Self; 15] = [
        Self::Connect,
        Self::ConnAck,
        Self::Publish,
        Self::PubAck,
        Self::PubRec,
        Self::PubRel,
        Self::PubComp,
        Self::Subscribe,
        Self::SubAck,
        Self::Unsubscribe,
        Self::UnsubAck,
        Self::PingReq,
        Self::PingResp,
        Self::Disconnect,
        Self::Auth,
    ];

    /// The type in a packet's first byte; `None` for the reserved type 0. Flags are ignored.
    #[inline]
    #[must_use]
    pub const fn from_first_byte(first_byte: u8) -> Option<Self> {
        match first_byte >> 4 {
            0 => None,
            number => Some(Self::ALL[number as usize - 1]),
        }
    }

    /// The name in the specification, such as `PUBLISH`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "CONNECT",
            Self::ConnAck => "CONNACK",
            Self::Publish => "PUBLISH",
            Self::PubAck => "PUBACK",
            Self::PubRec => "PUBREC",
            Self::PubRel => "PUBREL",
            Self::PubComp => "PUBCOMP",
            Self::Subscribe => "SUBSCRIBE",
            Self::SubAck => "SUBACK",
            Self::Unsubscribe => "UNSUBSCRIBE",
            Self::UnsubAck => "UNSUBACK",
            Self::PingReq => "PINGREQ",
            Self::PingResp => "PINGRESP",
            Self::Disconnect => "DISCONNECT",
            Self::Auth => "AUTH",
        }
    }

    /// The first byte of a packet of this type; for PUBLISH with all flags zero.
    #[must_use]
    pub const fn first_byte(self) -> u8 {
        let flags = match self {
            Self::PubRel | Self::Subscribe | Self::Unsubscribe => 0b0010,
            _ => 0,
        };
        (self as u8) << 4 | flags
    }

    /// True if a packet of this type may travel in this direction in this version.
    #[must_use]
    pub const fn is_allowed(self, version: Version, direction: Direction) -> bool {
        match self {
            Self::Publish | Self::PubAck | Self::PubRec | Self::PubRel | Self::PubComp => true,
            Self::Connect | Self::Subscribe | Self::Unsubscribe | Self::PingReq => {
                matches!(direction, Direction::ToServer)
            }
            Self::ConnAck | Self::SubAck | Self::UnsubAck | Self::PingResp => {
                matches!(direction, Direction::ToClient)
            }
            Self::Disconnect => version.is_v5() || matches!(direction, Direction::ToServer),
            Self::Auth => version.is_v5(),
        }
    }
}

/// The four acknowledgements of PUBLISH.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AckKind {
    /// Answers a PUBLISH with QoS 1.
    PubAck,
    /// Answers a PUBLISH with QoS 2.
    PubRec,
    /// Answers PUBREC.
    PubRel,
    /// Answers PUBREL.
    PubComp,
}

impl AckKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::PubAck, Self::PubRec, Self::PubRel, Self::PubComp];

    /// The kind with this packet type number.
    #[inline]
    #[must_use]
    pub const fn from_type_number(type_number: u8) -> Option<Self> {
        match type_number {
            4 => Some(Self::PubAck),
            5 => Some(Self::PubRec),
            6 => Some(Self::PubRel),
            7 => Some(Self::PubComp),
            _ => None,
        }
    }

    /// The packet type.
    #[inline]
    #[must_use]
    pub const fn packet_type(self) -> PacketType {
        match self {
            Self::PubAck => PacketType::PubAck,
            Self::PubRec => PacketType::PubRec,
            Self::PubRel => PacketType::PubRel,
            Self::PubComp => PacketType::PubComp,
        }
    }
}

/// Checks the first byte of a packet: type, direction and flags. [`crate::Packet::decode`] does
/// this too; callers use it to refuse a packet before the rest of it arrives.
///
/// # Errors
/// Malformed for the reserved types and wrong flags [MQTT-2.1.3-1], [MQTT-3.3.1-4],
/// [MQTT-3.6.1-1], [MQTT-3.8.1-1], [MQTT-3.10.1-1], [MQTT-3.14.1-1], [MQTT-3.15.1-1]; a protocol
/// error for a packet that may not travel in this direction.
pub fn check_first_byte(
    first_byte: u8,
    version: Version,
    direction: Direction,
) -> Result<PacketType, DecodeError> {
    let packet_type = match PacketType::from_first_byte(first_byte) {
        None => return Err(DecodeError::malformed("packet type 0 is reserved (2.1.2)")),
        Some(PacketType::Auth) if !version.is_v5() => {
            return Err(DecodeError::malformed("packet type 15 is reserved before MQTT 5.0"));
        }
        Some(packet_type) => packet_type,
    };
    if !packet_type.is_allowed(version, direction) {
        return Err(DecodeError::protocol(match direction {
            Direction::ToServer => "a client must not send packets of this type (2.1.2)",
            Direction::ToClient => "a server must not send packets of this type (2.1.2)",
        }));
    }
    if packet_type == PacketType::Publish {
        return Ok(packet_type); // Its flags carry meaning and are checked with the packet.
    }
    // In 3.1 a client may mark these three as retransmitted with the DUP bit.
    let ignored = match packet_type {
        PacketType::PubRel | PacketType::Subscribe | PacketType::Unsubscribe
            if version == Version::V31 =>
        {
            0b1000
        }
        _ => 0,
    };
    if first_byte & !ignored != packet_type.first_byte() {
        return Err(DecodeError::malformed("the fixed header has wrong flags [MQTT-2.1.3-1]"));
    }
    Ok(packet_type)
}
