//! The errors of decoding and of encoding.

use std::fmt;

use crate::ReasonCode;

/// Why bytes are not a legal packet. The connection that they arrived on must be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeError {
    /// The code to put into DISCONNECT, or into CONNACK before acceptance (5.0 only).
    pub reason: ReasonCode,
    /// A short description, with the violated conformance statement if there is one.
    pub message: &'static str,
}

impl DecodeError {
    #[cold]
    pub(crate) const fn new(reason: ReasonCode, message: &'static str) -> Self {
        Self { reason, message }
    }

    #[cold]
    pub(crate) const fn malformed(message: &'static str) -> Self {
        Self::new(ReasonCode::MALFORMED_PACKET, message)
    }

    #[cold]
    pub(crate) const fn protocol(message: &'static str) -> Self {
        Self::new(ReasonCode::PROTOCOL_ERROR, message)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.name(), self.message)
    }
}

impl std::error::Error for DecodeError {}

/// Why a packet cannot be encoded. The output buffer is left unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// A string or binary field is longer than 65,535 bytes.
    FieldTooLong,
    /// A user property contains a forbidden character, such as U+0000.
    InvalidText,
    /// The packet or a property block exceeds the largest variable byte integer (268,435,455).
    PacketTooLarge,
    /// A PUBLISH with QoS above 0 has no packet identifier, or one with QoS 0 has one.
    PacketIdMismatch,
    /// A subscription identifier is zero or above 268,435,455.
    SubscriptionIdOutOfRange,
    /// SUBSCRIBE, UNSUBSCRIBE, SUBACK or UNSUBACK without an entry.
    NoEntries,
    /// The packet type does not exist in this version (AUTH before 5.0).
    NotInVersion,
    /// A password without a user name, which only 5.0 allows.
    PasswordWithoutUsername,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FieldTooLong => "a field is longer than 65535 bytes",
            Self::InvalidText => "a string contains a forbidden character",
            Self::PacketTooLarge => "the packet is longer than 268435455 bytes",
            Self::PacketIdMismatch => "QoS 1 and 2 need a packet identifier, QoS 0 must have none",
            Self::SubscriptionIdOutOfRange => "a subscription identifier must be 1 to 268435455",
            Self::NoEntries => "the packet needs at least one entry",
            Self::NotInVersion => "the packet type does not exist in this protocol version",
            Self::PasswordWithoutUsername => "a password without a user name needs MQTT 5.0",
        })
    }
}

impl std::error::Error for EncodeError {}
