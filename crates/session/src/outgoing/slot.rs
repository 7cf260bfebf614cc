//! One packet identifier in use, and the exchange that uses it.

use tacho_codec::{PacketId, QoS};

use crate::{BatchSeq, Delivery, Payload, Persist, Record};

/// The stage of an outgoing exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The identifier is free; the slot is a tombstone in the ring.
    Done,
    /// The identifier belongs to a SUBSCRIBE or UNSUBSCRIBE.
    Reserved,
    /// PUBLISH is unsent or unanswered.
    Publish,
    /// PUBREC arrived: PUBREL is unsent or unanswered.
    Released,
}

/// The packets of an exchange that were sent on this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Neither PUBLISH nor PUBREL.
    Unsent,
    /// PUBLISH: the exchange uses one unit of the peer's receive maximum until it ends.
    Published,
    /// PUBREL of an exchange that was published on an earlier connection: it uses no unit.
    Resumed,
}

/// When a packet was sent: in units of about a millisecond, modulo seven weeks. As small as what a
/// slot has left over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SentAt(u32);

impl SentAt {
    const UNIT_BITS: u32 = 20;

    #[inline]
    pub(crate) const fn new(now_ns: u64) -> Self {
        Self((now_ns >> Self::UNIT_BITS) as u32)
    }

    /// How long ago that was.
    pub(crate) fn age_ns(self, now_ns: u64) -> u64 {
        u64::from(Self::new(now_ns).0.wrapping_sub(self.0)) << Self::UNIT_BITS
    }
}

/// A slot of the window.
#[derive(Debug)]
pub(crate) struct Slot<M> {
    pub(crate) stage: Stage,
    /// PUBLISH was sent at least once, on any connection: a retransmission carries DUP.
    pub(crate) sent: bool,
    /// The packets sent on this connection.
    pub(crate) progress: Progress,
    /// PUBREL is pending in `Outgoing::releases`.
    pub(crate) release_waits: bool,
    /// When the last packet of the exchange was sent, if any was on this connection.
    pub(crate) sent_at: SentAt,
    /// The number of its message; 0 for none.
    pub(crate) seq: u64,
    /// The batch that the next packet of this exchange waits for.
    pub(crate) batch: BatchSeq,
    /// The message; the broker's side drops it once the exchange is released.
    pub(crate) delivery: Option<Delivery<M>>,
}

impl<M> Slot<M> {
    pub(crate) const fn done() -> Self {
        Self::without_message(Stage::Done)
    }

    /// An exchange of an earlier connection that lacks only PUBREL and PUBCOMP.
    pub(crate) fn released(seq: u64) -> Self {
        Self { sent: true, seq, ..Self::without_message(Stage::Released) }
    }

    pub(crate) const fn reserved() -> Self {
        Self::without_message(Stage::Reserved)
    }

    const fn without_message(stage: Stage) -> Self {
        Self {
            stage,
            sent: false,
            progress: Progress::Unsent,
            release_waits: false,
            sent_at: SentAt(0),
            seq: 0,
            batch: BatchSeq::DONE,
            delivery: None,
        }
    }

    #[inline]
    pub(crate) const fn publish(seq: u64, delivery: Delivery<M>) -> Self {
        Self {
            stage: Stage::Publish,
            sent: false,
            progress: Progress::Unsent,
            release_waits: false,
            sent_at: SentAt(0),
            seq,
            batch: BatchSeq::DONE,
            delivery: Some(delivery),
        }
    }

    /// A new connection: nothing was sent on it, and no SUBACK is pending.
    pub(crate) fn rewind(&mut self) {
        self.progress = Progress::Unsent;
        self.release_waits = false;
        if self.stage == Stage::Reserved {
            self.stage = Stage::Done;
        }
    }

    /// Whether it holds a PUBLISH exchange that is not over.
    #[inline]
    pub(crate) const fn is_live(&self) -> bool {
        matches!(self.stage, Stage::Publish | Stage::Released)
    }

    /// Whether PUBLISH or PUBREL still has to be sent on this connection.
    #[inline]
    pub(crate) const fn is_unsent(&self) -> bool {
        self.is_live() && !self.is_on_wire()
    }

    /// Whether PUBLISH or PUBREL was sent on this connection.
    #[inline]
    pub(crate) const fn is_on_wire(&self) -> bool {
        !matches!(self.progress, Progress::Unsent)
    }

    #[inline]
    pub(crate) fn qos(&self) -> Option<QoS> {
        self.delivery.as_ref().map(|delivery| delivery.qos)
    }

    /// PUBLISH is sent now.
    #[inline]
    pub(crate) const fn mark_sent(&mut self, now_ns: u64) {
        self.sent = true;
        self.progress = Progress::Published;
        self.sent_at = SentAt::new(now_ns);
    }

    /// PUBREL of an exchange that was published on an earlier connection is sent now.
    #[inline]
    pub(crate) const fn mark_resumed(&mut self, now_ns: u64) {
        self.progress = Progress::Resumed;
        self.sent_at = SentAt::new(now_ns);
    }

    /// For how long the peer has not answered the last packet; `None` if the next one is due from
    /// this side.
    pub(crate) fn unanswered_ns(&self, now_ns: u64) -> Option<u64> {
        let is_awaited = self.is_live() && self.is_on_wire() && !self.release_waits;
        is_awaited.then(|| self.sent_at.age_ns(now_ns))
    }

    /// From now on only PUBREL is sent, once the returned batch is committed.
    pub(crate) fn release(
        &mut self,
        packet_id: PacketId,
        persist: &mut impl Persist<M>,
    ) -> BatchSeq {
        self.stage = Stage::Released;
        self.batch = persist.persist(Record::Released { seq: self.seq, packet_id });
        self.batch
    }
}

impl<M: Payload> Slot<M> {
    /// Whether its message, if it still has one, is in memory.
    #[inline]
    pub(crate) fn is_loaded(&self) -> bool {
        self.delivery.as_ref().is_none_or(|delivery| delivery.message.is_loaded())
    }
}
