//! Protocol versions and directions.

use std::fmt;

/// A protocol version of MQTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// MQTT 3.1: protocol name `MQIsdp`, level 3.
    V31,
    /// MQTT 3.1.1: protocol name `MQTT`, level 4.
    V311,
    /// MQTT 5.0: protocol name `MQTT`, level 5.
    V5,
}

impl Version {
    /// All versions, oldest first.
    pub const ALL: [Self; 3] = [Self::V31, Self::V311, Self::V5];

    /// The protocol level (3.1.1 and older) or protocol version (5.0) byte of CONNECT.
    #[must_use]
    pub const fn protocol_level(self) -> u8 {
        match self {
            Self::V31 => 3,
            Self::V311 => 4,
            Self::V5 => 5,
        }
    }

    /// The protocol name string of CONNECT.
    #[must_use]
    pub const fn protocol_name(self) -> &'static str {
        match self {
            Self::V31 => "MQIsdp",
            Self::V311 | Self::V5 => "MQTT",
        }
    }

    /// True for 5.0, the version with properties and reason codes.
    #[must_use]
    pub const fn is_v5(self) -> bool {
        matches!(self, Self::V5)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V31 => "3.1",
            Self::V311 => "3.1.1",
            Self::V5 => "5.0",
        })
    }
}

/// The direction in which a packet travels. Some packets, flags and properties are legal in one
/// direction only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Sent by a client, decoded by a server.
    ToServer,
    /// Sent by a server, decoded by a client.
    ToClient,
}
