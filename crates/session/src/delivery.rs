//! Messages for the peer, and the packets that a session asks its owner to write.

use std::sync::Arc;

use tacho_codec::{AckKind, PacketId, QoS, ReasonCode};

use crate::DropReason;

/// The subscription identifiers of one delivery: up to one is stored inline, more are behind a
/// reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionIdList(Ids);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Ids {
    /// 0 stands for none: the protocol has no identifier 0.
    Few(u32),
    Many(Arc<[u32]>),
}

impl Default for Ids {
    fn default() -> Self {
        Self::Few(0)
    }
}

impl SubscriptionIdList {
    /// No identifier.
    pub const NONE: Self = Self(Ids::Few(0));

    /// One identifier; 0 means none.
    #[must_use]
    pub const fn one(id: u32) -> Self {
        Self(Ids::Few(id))
    }

    /// Adds an identifier; 0 is ignored. Allocates from the second one on.
    pub fn push(&mut self, id: u32) {
        if id == 0 {
            return;
        }
        self.0 = match &self.0 {
            Ids::Few(0) => Ids::Few(id),
            Ids::Few(first) => Ids::Many(Arc::from([*first, id])),
            Ids::Many(ids) => Ids::Many(ids.iter().copied().chain([id]).collect()),
        };
    }

    /// The identifiers, in the order of insertion.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        match &self.0 {
            Ids::Few(0) => &[],
            Ids::Few(id) => std::slice::from_ref(id),
            Ids::Many(ids) => ids,
        }
    }

    /// Whether there is none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        matches!(self.0, Ids::Few(0))
    }
}

impl FromIterator<u32> for SubscriptionIdList {
    fn from_iter<I: IntoIterator<Item = u32>>(ids: I) -> Self {
        let mut list = Self::NONE;
        ids.into_iter().for_each(|id| list.push(id));
        list
    }
}

/// One message for one receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<M> {
    /// The message itself.
    pub message: M,
    /// The QoS of this delivery: the lower one of publication and subscription.
    pub qos: QoS,
    /// The RETAIN flag for this receiver.
    pub retain: bool,
    /// The identifiers of the subscriptions that matched.
    pub subscription_ids: SubscriptionIdList,
    /// The size of the message against the byte limit of the queue.
    pub size_bytes: u32,
    /// When the message expires on the clock of `now_ns`; `u64::MAX` means never.
    pub expires_at_ns: u64,
}

impl<M> Delivery<M> {
    /// A delivery without retain flag, subscription identifiers, size or expiry.
    #[inline]
    pub const fn new(qos: QoS, message: M) -> Self {
        Self {
            message,
            qos,
            retain: false,
            subscription_ids: SubscriptionIdList::NONE,
            size_bytes: 0,
            expires_at_ns: u64::MAX,
        }
    }

    /// Whole seconds left before the message expires, at least 1; `None` if it never does.
    ///
    /// This is the Message Expiry Interval to send (MQTT 5.0, 3.3.2.3.3).
    #[must_use]
    pub fn expiry_left_s(&self, now_ns: u64) -> Option<u32> {
        (self.expires_at_ns != u64::MAX).then(|| {
            let left_s = self.expires_at_ns.saturating_sub(now_ns).div_ceil(1_000_000_000);
            u32::try_from(left_s).unwrap_or(u32::MAX).max(1)
        })
    }

    #[inline]
    pub(crate) const fn is_expired(&self, now_ns: u64) -> bool {
        self.expires_at_ns <= now_ns
    }
}

/// A packet to write on the session's connection, in the order of polling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmit<M> {
    /// PUBLISH.
    Publish {
        /// The message and its delivery options.
        delivery: Delivery<M>,
        /// Present for QoS 1 and 2.
        packet_id: Option<PacketId>,
        /// The DUP flag: this is a retransmission after a resume.
        dup: bool,
    },
    /// PUBACK, PUBREC or PUBCOMP.
    Ack {
        /// The packet type.
        kind: AckKind,
        /// The identifier that it answers.
        packet_id: PacketId,
        /// Its reason code; MQTT 3.x has none on the wire.
        reason: ReasonCode,
    },
    /// PUBREL.
    PubRel {
        /// The identifier that it releases.
        packet_id: PacketId,
        /// Its reason code; MQTT 3.x has none on the wire.
        reason: ReasonCode,
    },
}

/// The result of offering a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer<M> {
    /// Write this packet now; no other packet precedes it.
    SendNow(Transmit<M>),
    /// `poll_transmit` yields it later.
    Queued,
    /// It was dropped and counted.
    Dropped(DropReason),
}
