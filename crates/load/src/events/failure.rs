//! Why a client failed.

use std::{fmt, io};

use rustix::io::Errno;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use tacho_codec::ReasonCode;

use crate::plan::local_port_range;

/// Why a client failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Failure {
    /// The connection could not be opened: TCP, TLS or WebSocket.
    #[error("cannot connect: {0}")]
    Connect(ConnectError),
    /// No CONNACK in time.
    #[error("no CONNACK within {waited_ms} ms")]
    ConnectTimeout {
        /// Time waited.
        waited_ms: u64,
    },
    /// The broker refused the connection.
    #[error("the broker refused the connection: {0}")]
    Refused(#[serde(with = "crate::wire::reason")] ReasonCode),
    /// The broker refused a topic filter.
    #[error("the broker refused the filter {filter}: {reason}")]
    SubscribeRefused {
        /// The filter.
        filter: String,
        /// The SUBACK's code.
        #[serde(with = "crate::wire::reason")]
        reason: ReasonCode,
    },
    /// No SUBACK in time.
    #[error("no SUBACK within {waited_ms} ms")]
    SubscribeTimeout {
        /// Time waited.
        waited_ms: u64,
    },
    /// The broker sent DISCONNECT.
    #[error("the broker disconnected the client: {0}")]
    Disconnected(#[serde(with = "crate::wire::reason")] ReasonCode),
    /// The broker closed the connection without a DISCONNECT.
    #[error("the broker closed the connection")]
    Closed,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The broker violated the protocol.
    #[error("the broker broke the protocol: {0}")]
    Protocol(String),
    /// The broker sent a packet that is larger than the client accepts.
    #[error("the broker sent {packet}, and the client accepts {limit_bytes} bytes")]
    PacketTooLarge {
        /// The packet.
        packet: OversizedPacket,
        /// The limit.
        limit_bytes: u32,
    },
    /// The client's incomplete packet did not fit into the budget of all clients.
    #[error(
        "the broker sent a part of {packet}, and incomplete packets exceed the budget of {budget_bytes} bytes"
    )]
    ReceiveBudget {
        /// The packet.
        packet: OversizedPacket,
        /// The budget of the client's thread.
        budget_bytes: u64,
    },
    /// No PINGRESP in time.
    #[error("no answer to PINGREQ")]
    PingTimeout,
    /// The client reconnected, and the broker no longer had its session.
    #[error("the broker has lost the client's session")]
    SessionLost,
    /// The broker refused a PUBLISH (reported once per client and reason).
    #[error("the broker refused a message: {0}")]
    PublishRefused(#[serde(with = "crate::wire::reason")] ReasonCode),
}

/// A packet that was not received, by its fixed header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OversizedPacket {
    /// Its type in the specification, such as `PUBLISH`.
    pub name: &'static str,
    /// Its size as announced; 0 when the header was incomplete.
    pub bytes: u32,
}

/// As a pair of the two.
impl Serialize for OversizedPacket {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (self.name, self.bytes).serialize(to)
    }
}

impl<'de> Deserialize<'de> for OversizedPacket {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (name, bytes) = <(&str, u32)>::deserialize(from)?;
        let name = crate::wire::packet_name(name);
        Ok(Self { name: name.ok_or_else(|| de::Error::custom("no packet's name"))?, bytes })
    }
}

impl fmt::Display for OversizedPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.name, self.bytes)
    }
}

impl Failure {
    /// Whether the client is lost. Refused filters and messages leave it connected.
    pub const fn is_final(&self) -> bool {
        !matches!(self, Self::SubscribeRefused { .. } | Self::SessionLost | Self::PublishRefused(_))
    }
}

/// Whether the reason of a refusal will pass by itself.
pub(crate) const fn is_temporary(reason: ReasonCode) -> bool {
    matches!(
        reason,
        ReasonCode::SERVER_UNAVAILABLE
            | ReasonCode::SERVER_BUSY
            | ReasonCode::QUOTA_EXCEEDED
            | ReasonCode::CONNECTION_RATE_EXCEEDED
    )
}

/// Why a connection could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct ConnectError {
    /// The cause, as far as programs distinguish it.
    pub cause: ConnectCause,
    /// What happened, and what to do where that is not obvious.
    pub message: String,
}

/// The cause of a [`ConnectError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConnectCause {
    /// This machine has no file descriptors left for further connections.
    DescriptorsExhausted,
    /// This machine has no local ports left for further connections.
    PortsExhausted,
    /// Anything else: the network, the broker, TLS or WebSocket.
    Other,
}

impl ConnectCause {
    /// Whether this machine, and not the broker, has run out of a resource.
    pub const fn is_exhaustion(self) -> bool {
        matches!(self, Self::DescriptorsExhausted | Self::PortsExhausted)
    }
}

impl ConnectError {
    /// An error whose cause programs need not distinguish.
    pub fn other(message: impl Into<String>) -> Self {
        Self { cause: ConnectCause::Other, message: message.into() }
    }
}

impl From<&io::Error> for ConnectError {
    fn from(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::MFILE | Errno::NFILE) => Self {
                cause: ConnectCause::DescriptorsExhausted,
                message: format!("{error}; raise the limit of open files (ulimit -n)"),
            },
            // bind() to a source address returns EADDRINUSE when no port is left.
            Some(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => {
                let (first, last) = local_port_range();
                Self {
                    cause: ConnectCause::PortsExhausted,
                    message: format!(
                        "{error}; local ports are exhausted ({first} to {last}): widen \
                         net.ipv4.ip_local_port_range, or use more source or target addresses"
                    ),
                }
            }
            _ => Self::other(error.to_string()),
        }
    }
}
