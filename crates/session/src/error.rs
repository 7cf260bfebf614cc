//! Protocol errors of the peer.

use std::fmt;

use tacho_codec::ReasonCode;

/// The peer violated the protocol; its connection has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolError {
    reason: ReasonCode,
    sentence: &'static str,
}

impl ProtocolError {
    pub(crate) const fn new(reason: ReasonCode, sentence: &'static str) -> Self {
        Self { reason, sentence }
    }

    /// The reason code for DISCONNECT (MQTT 5.0).
    #[must_use]
    pub const fn reason(&self) -> ReasonCode {
        self.reason
    }

    /// A description, for the Reason String of DISCONNECT.
    #[must_use]
    pub const fn sentence(&self) -> &'static str {
        self.sentence
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence)
    }
}

impl std::error::Error for ProtocolError {}
