//! Why a client cannot go on.

use std::io;
use std::net::SocketAddr;

use tacho_codec::{EncodeError, ReasonCode};

/// An error of a client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No address of the broker takes the connection.
    #[error("cannot connect to {address}: {error}")]
    Connect {
        /// The last one that was tried.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The broker refuses the client.
    #[error("the broker refuses the connection: {reason}{}", words(.text.as_deref()))]
    Refused {
        /// Of the CONNACK.
        reason: ReasonCode,
        /// What the broker says about it.
        text: Option<String>,
    },
    /// The broker does not answer in time.
    #[error("the broker did not answer in time")]
    Silent,
    /// The connection has ended.
    #[error("{0}")]
    Lost(String),
    /// What should be sent is no MQTT.
    #[error("{0}")]
    Unsendable(#[from] EncodeError),
    /// More subscriptions wait for their answer than there are packet identifiers.
    #[error("too many subscriptions wait for an answer")]
    NoIdentifier,
    /// The caller's stop flag was raised.
    #[error("stopped")]
    Stopped,
}

/// A text of the broker, which may have any characters, as part of a line.
fn words(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!(" ({})", text.escape_debug()))
}

impl ClientError {
    /// Whether another try may help: the connection was lost or could not be made.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::Silent | Self::Lost(_))
    }
}
