//! The kinds of payloads that a plan can ask for.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{JMETER_STAMP_BYTES, Template};

/// The kind of payload. Every payload carries run, stream, sequence number and intended time, and
/// every byte is checked on receipt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Payload {
    /// The binary header and random bytes, see [the module](super).
    Random {
        /// Size, header included; at least
        /// [`Plan::PAYLOAD_BYTES_MIN`](crate::Plan::PAYLOAD_BYTES_MIN).
        bytes: u32,
    },
    /// The binary header and zeros.
    Zeros {
        /// Size, header included; at least
        /// [`Plan::PAYLOAD_BYTES_MIN`](crate::Plan::PAYLOAD_BYTES_MIN).
        bytes: u32,
    },
    /// Text with a printable header: fixed, with fields, from a file or from rows of a table.
    Text(#[serde(with = "crate::wire::shared")] Arc<Template>),
    /// The format of JMeter's MQTT samplers: the send time in milliseconds and `ts_sep_flag`, then
    /// random text of JMeter's alphabet, which begins with the printable header.
    Jmeter {
        /// Size of the random text; at least [`Plan::TEXT_BYTES_MIN`](crate::Plan::TEXT_BYTES_MIN).
        bytes: u32,
        /// Begin with the time and its separator: 24 more bytes.
        timestamp: bool,
    },
}

impl Payload {
    /// Size of the largest message of `client` to `topic`.
    pub fn bytes_max(&self, client: &str, topic: &str) -> usize {
        match self {
            Self::Random { bytes } | Self::Zeros { bytes } => *bytes as usize,
            Self::Text(template) => template.bytes_max(client, topic),
            Self::Jmeter { bytes, timestamp } => {
                *bytes as usize + if *timestamp { JMETER_STAMP_BYTES } else { 0 }
            }
        }
    }
}
