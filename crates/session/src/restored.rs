//! The state of a session that was stored and is restored.

use tacho_codec::PacketId;

use crate::{Delivery, WillState};

/// The state of a session without a connection.
#[derive(Clone, Debug)]
pub struct Restored<M> {
    /// The present time.
    pub now_ns: u64,
    /// The session expiry interval of its last connection.
    pub expiry_s: u32,
    /// When the session ends; `None` if its expiry interval starts now.
    pub ends_at_ns: Option<u64>,
    /// The will that is not published yet.
    pub will: Option<WillState<M>>,
    /// When to publish the will, unless the session ends before; `None` if its delay starts now.
    pub will_at_ns: Option<u64>,
    /// The number of the next message, greater than any number below.
    pub next_seq: u64,
    /// The outgoing exchanges that are not over.
    pub exchanges: Vec<RestoredExchange<M>>,
    /// The queue: numbers and messages.
    pub queued: Vec<(u64, Delivery<M>)>,
    /// The incoming messages of QoS 2 that wait for PUBREL.
    pub inbound: Vec<PacketId>,
}

/// An outgoing exchange of QoS 1 or 2 that is not over.
#[derive(Clone, Debug)]
pub struct RestoredExchange<M> {
    /// The number of its message.
    pub seq: u64,
    /// Its packet identifier.
    pub packet_id: PacketId,
    /// Its progress.
    pub stage: ExchangeStage,
    /// The message; not needed once the exchange is released.
    pub delivery: Option<Delivery<M>>,
}

/// The progress of an outgoing exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeStage {
    /// PUBLISH may have been sent.
    Sent,
    /// PUBREC arrived.
    Released,
}
