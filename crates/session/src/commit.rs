//! The durability seam: records out, commit tokens back.

use tacho_codec::PacketId;

use crate::Delivery;

/// A point in the commit order of one shard.
///
/// Tokens grow monotonically; a record is durable once its token is not greater than the shard's
/// committed token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitToken(u64);

impl CommitToken {
    /// The token of what needs no waiting.
    pub const DONE: Self = Self(0);

    /// The token number `value` of a shard.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The number of this token.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Takes the records of one session.
///
/// The implementation knows which session it stands for; records carry no session key.
pub trait Persist<M> {
    /// Puts `record` into the next batch and says which commit will make it durable.
    fn persist(&mut self, record: Record<'_, M>) -> CommitToken;
}

/// Keeps nothing: every record is complete at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct InMemory;

impl<M> Persist<M> for InMemory {
    #[inline]
    fn persist(&mut self, _record: Record<'_, M>) -> CommitToken {
        CommitToken::DONE
    }
}

/// One change of a session that recovery needs.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Record<'a, M> {
    /// A message of QoS 1 or 2 was put at the end of the queue.
    Enqueued {
        /// The message.
        delivery: &'a Delivery<M>,
    },
    /// A message of QoS 1 or 2 expired at the head of the queue.
    Expired {
        /// The message.
        delivery: &'a Delivery<M>,
    },
    /// A message of QoS 1 or 2 got its packet identifier and entered the in-flight window.
    Sent {
        /// Its packet identifier.
        packet_id: PacketId,
        /// The message.
        delivery: &'a Delivery<M>,
        /// It was the head of the queue; else it never was in the queue.
        from_queue: bool,
    },
    /// PUBREC arrived for an outgoing message of QoS 2: from now on only PUBREL is sent.
    Released {
        /// Its packet identifier.
        packet_id: PacketId,
    },
    /// An outgoing exchange is over: PUBACK, PUBCOMP, PUBREC with an error, or given up.
    Acked {
        /// The packet identifier, free again.
        packet_id: PacketId,
    },
    /// An incoming message of QoS 2 was accepted: the same identifier is now a duplicate.
    InboundReceived {
        /// Its packet identifier.
        packet_id: PacketId,
    },
    /// PUBREL arrived for an incoming message of QoS 2: the identifier is free again.
    InboundReleased {
        /// The packet identifier.
        packet_id: PacketId,
    },
}
