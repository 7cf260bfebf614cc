//! A session made from what its owner kept of it.

use tacho_codec::PacketId;

use super::{Session, SessionLimits, outgoing_limits};
use crate::incoming::Incoming;
use crate::lifetime::Lifetime;
use crate::outgoing::Outgoing;
use crate::{Delivery, Payload, Persist, WillState};

/// What there is to know of a session without a connection.
#[derive(Clone, Debug)]
pub struct Restored<M> {
    /// The present time.
    pub now_ns: u64,
    /// The session expiry interval in force when it was last connected.
    pub expiry_s: u32,
    /// When the session ends; `None`: it counts as disconnected now.
    pub ends_at_ns: Option<u64>,
    /// The will that was not published yet.
    pub will: Option<WillState<M>>,
    /// When the will is to be published, if the session does not end before; `None`: its delay
    /// begins now.
    pub will_at_ns: Option<u64>,
    /// The number of the next message; at least one more than any number below.
    pub next_seq: u64,
    /// The outgoing exchanges that are not over.
    pub exchanges: Vec<RestoredExchange<M>>,
    /// The queue: messages and their numbers.
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
    /// How far it came.
    pub stage: ExchangeStage,
    /// The message; not needed once it is released.
    pub delivery: Option<Delivery<M>>,
}

/// How far an outgoing exchange came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeStage {
    /// PUBLISH may have been sent.
    Sent,
    /// PUBREC came.
    Released,
}

impl<M: Payload> Session<M> {
    /// A session without connection, as if it had just been disconnected; its next connect resumes
    /// it. Whatever time has brought meanwhile, [`Session::handle_timeout`] says.
    ///
    /// `persist` hears of exchanges that contradict others, which happens if records were lost.
    #[must_use]
    pub fn restore(
        limits: SessionLimits,
        restored: Restored<M>,
        persist: &mut impl Persist<M>,
    ) -> Self {
        let Restored { now_ns, expiry_s, ends_at_ns, will, will_at_ns, .. } = restored;
        let Restored { next_seq, exchanges, queued, inbound, .. } = restored;
        let outgoing = outgoing_limits(&limits);
        Self {
            outgoing: Outgoing::restore(outgoing, next_seq, exchanges, queued, persist),
            incoming: Incoming::restore(limits.receive_maximum, inbound),
            lifetime: Lifetime::restore(now_ns, expiry_s, ends_at_ns, will, will_at_ns),
            ..Self::new(limits)
        }
    }
}
