//! The durability seam: records out, the numbers of their record batches back.

use tacho_codec::PacketId;

use crate::Delivery;

/// The number of a record batch: the records that a shard appends while it handles one event.
///
/// Numbers grow monotonically within a shard. A record is durable once its batch is not greater
/// than the newest batch that the shard knows to be committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchSeq(u64);

impl BatchSeq {
    /// The batch of a promise that needs no commit.
    pub const DONE: Self = Self(0);

    /// Batch number `value` of a shard.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The number of this batch.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Takes the records of one session.
///
/// The implementation knows its session; records carry no session key. It may lose records that are
/// not committed, but never a record in front of one that it keeps.
pub trait Persist<M> {
    /// Appends `record` to the current batch and returns the number of that batch.
    fn persist(&mut self, record: Record<'_, M>) -> BatchSeq;
}

/// Stores nothing: every record counts as committed at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct InMemory;

impl<M> Persist<M> for InMemory {
    #[inline]
    fn persist(&mut self, _record: Record<'_, M>) -> BatchSeq {
        BatchSeq::DONE
    }
}

/// One change of a session that recovery needs.
///
/// Every message that is queued or gets a packet identifier has a number, `seq`: they begin with 1
/// and grow with the order of sending. Replayed in their order, the records yield the content of
/// [`crate::server::Restored`]: [`Record::Enqueued`] and [`Record::Sent`] create an entry or change
/// it, [`Record::Released`] changes it, and one of [`Record::Acked`],
/// [`Record::Lapsed`], [`Record::Expired`], [`Record::Dispatched`], [`Record::Discarded`] and
/// [`Record::Removed`] ends it.
///
/// The session waits for the commits of [`Record::Sent`] of QoS 2, [`Record::Released`],
/// [`Record::Lapsed`], [`Record::Dispatched`], [`Record::InboundReceived`] and
/// [`Record::InboundReleased`].
///
/// A clean start or the end of a session drops the whole state and has no records: the owner drops
/// all entries at once.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Record<'a, M> {
    /// A message was put at the end of the queue.
    Enqueued {
        /// Its number.
        seq: u64,
        /// The message.
        delivery: &'a Delivery<M>,
    },
    /// A message of QoS 1 or 2 got its packet identifier and entered the in-flight window.
    Sent {
        /// Its number.
        seq: u64,
        /// Its packet identifier.
        packet_id: PacketId,
        /// The message.
        delivery: &'a Delivery<M>,
        /// It was the head of the queue; otherwise it was never in the queue.
        from_queue: bool,
    },
    /// PUBREC arrived for an outgoing message of QoS 2: from now on only PUBREL is sent.
    Released {
        /// The number of the message.
        seq: u64,
        /// Its packet identifier.
        packet_id: PacketId,
    },
    /// An outgoing exchange is over: PUBACK, PUBCOMP, PUBREC with an error, or abandoned.
    Acked {
        /// The number of the message.
        seq: u64,
        /// The packet identifier, free again.
        packet_id: PacketId,
    },
    /// A message expired in the window before it was sent. Nothing behind it is sent before this
    /// record is committed: if the message came back after a crash, it would be out of order.
    Lapsed {
        /// Its number.
        seq: u64,
        /// The packet identifier, free again.
        packet_id: PacketId,
    },
    /// A message expired in the queue.
    Expired {
        /// Its number.
        seq: u64,
        /// The message.
        delivery: &'a Delivery<M>,
    },
    /// A message of QoS 0 leaves the queue for the connection once this record is committed.
    Dispatched {
        /// Its number.
        seq: u64,
        /// The message.
        delivery: &'a Delivery<M>,
    },
    /// A message in the queue was discarded: it cannot be loaded, or a newer one took its place in
    /// a full queue.
    Discarded {
        /// Its number.
        seq: u64,
        /// The message.
        delivery: &'a Delivery<M>,
    },
    /// The owner took a message out of the queue or the window, to give it to another session.
    Removed {
        /// Its number.
        seq: u64,
        /// The message.
        delivery: &'a Delivery<M>,
    },
    /// An incoming message of QoS 2 was received: the same identifier is now a duplicate. Either
    /// this record and the records of the message both survive, or neither does.
    InboundReceived {
        /// Its packet identifier.
        packet_id: PacketId,
    },
    /// An incoming identifier of QoS 2 is free again: PUBREL arrived, or the message was refused.
    InboundReleased {
        /// The packet identifier.
        packet_id: PacketId,
    },
}
