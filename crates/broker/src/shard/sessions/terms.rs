//! What a session's peer accepts, as it said when it connected.

use tacho_codec::{Packet, Publish, Version};

use crate::shard::output::encode_within;

/// What the peer of a session accepts.
#[derive(Clone, Copy, Debug)]
pub(in crate::shard) struct PeerTerms {
    version: Version,
    packet_size_max: u32,
    publishes: PublishForm,
    explanations: Explanations,
}

/// How a PUBLISH to the peer comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shard) enum PublishForm {
    /// As for every client of its version.
    Common,
    /// The client named a Maximum Packet Size or accepts topic aliases: each PUBLISH is made to
    /// suit it.
    Fitted,
    /// By the rules of a bridge.
    Mapped,
}

/// Whether answers have reason strings and user properties [MQTT-3.1.2-29].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shard) enum Explanations {
    Wanted,
    Unwanted,
}

impl PeerTerms {
    /// Those of a session that has had no connection.
    pub(super) const NONE: Self = Self {
        version: Version::V5,
        packet_size_max: u32::MAX,
        publishes: PublishForm::Common,
        explanations: Explanations::Wanted,
    };

    /// The terms of a client.
    pub(in crate::shard) const fn of_client(
        version: Version,
        packet_size_max: u32,
        has_aliases: bool,
        explanations: Explanations,
    ) -> Self {
        let is_common = packet_size_max == u32::MAX && !has_aliases;
        let publishes = if is_common { PublishForm::Common } else { PublishForm::Fitted };
        Self { version, packet_size_max, publishes, explanations }
    }

    /// The terms of another broker that a bridge connects to.
    pub(in crate::shard) const fn of_broker(version: Version, packet_size_max: u32) -> Self {
        let (publishes, explanations) = (PublishForm::Mapped, Explanations::Wanted);
        Self { version, packet_size_max, publishes, explanations }
    }

    /// The same, in another version.
    pub(super) const fn with_version(self, version: Version) -> Self {
        Self { version, ..self }
    }

    #[inline]
    pub(in crate::shard) const fn version(&self) -> Version {
        self.version
    }

    #[inline]
    pub(in crate::shard) const fn publishes(&self) -> PublishForm {
        self.publishes
    }

    /// The Maximum Packet Size; `u32::MAX` when the peer named none.
    #[inline]
    pub(in crate::shard) const fn packet_size_max(&self) -> u32 {
        self.packet_size_max
    }

    /// Whether the packet is within the Maximum Packet Size [MQTT-3.1.2-24].
    pub(in crate::shard) fn take(&self, publish: &Publish<'_>) -> bool {
        self.packet_size_max == u32::MAX
            || publish
                .encoded_len(self.version)
                .is_ok_and(|len| len <= self.packet_size_max as usize)
    }

    /// Appends an answer to `out` in the form that the peer accepts. False if it is too large in
    /// any form; then nothing is appended.
    pub(in crate::shard) fn encode_answer(&self, packet: Packet<'_>, out: &mut Vec<u8>) -> bool {
        let packet = match self.explanations {
            Explanations::Wanted => packet,
            Explanations::Unwanted => packet.without_problem_information(),
        };
        encode_within(packet, self.version, self.packet_size_max, out)
    }
}
