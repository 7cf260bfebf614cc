//! One packet identifier in use, and what it is used for.

use tacho_codec::{PacketId, QoS};

use crate::{BatchSeq, Delivery, Payload, Persist, Record};

/// Where an outgoing exchange stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The identifier is free; the slot only keeps the arithmetic right.
    Done,
    /// The identifier belongs to a SUBSCRIBE or UNSUBSCRIBE.
    Reserved,
    /// PUBLISH is to be sent or unanswered.
    Publish,
    /// PUBREC came: PUBREL is to be sent or unanswered.
    Released,
}

/// A slot of the window.
#[derive(Debug)]
pub(crate) struct Slot<M> {
    pub(crate) stage: Stage,
    /// PUBLISH was sent at least once, on any connection: the next time it carries DUP.
    pub(crate) sent: bool,
    /// It uses one unit of the peer's receive maximum on this connection.
    pub(crate) uses_credit: bool,
    /// PUBLISH or PUBREL was sent on this connection.
    pub(crate) on_wire: bool,
    /// PUBREL waits among the releases of this connection.
    pub(crate) release_waits: bool,
    /// The number of its message; 0 for none.
    pub(crate) seq: u64,
    /// The next packet of this exchange waits for this commit.
    pub(crate) batch: BatchSeq,
    /// The message; the broker drops it once the exchange is released.
    pub(crate) delivery: Option<Delivery<M>>,
}

impl<M> Slot<M> {
    pub(crate) const fn done() -> Self {
        Self::without_message(Stage::Done)
    }

    /// An exchange of an earlier connection of which only PUBREL and PUBCOMP are missing.
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
            uses_credit: false,
            on_wire: false,
            release_waits: false,
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
            uses_credit: false,
            on_wire: false,
            release_waits: false,
            seq,
            batch: BatchSeq::DONE,
            delivery: Some(delivery),
        }
    }

    /// A new connection: nothing was sent on it, and it owes no SUBACK.
    pub(crate) fn rewind(&mut self) {
        self.uses_credit = false;
        self.on_wire = false;
        self.release_waits = false;
        if self.stage == Stage::Reserved {
            self.stage = Stage::Done;
        }
    }

    /// It holds a PUBLISH exchange that is not over.
    #[inline]
    pub(crate) const fn is_live(&self) -> bool {
        matches!(self.stage, Stage::Publish | Stage::Released)
    }

    /// PUBLISH or PUBREL has to be sent on this connection, if its turn has not come yet.
    #[inline]
    pub(crate) const fn is_unsent(&self) -> bool {
        self.is_live() && !self.on_wire
    }

    #[inline]
    pub(crate) fn qos(&self) -> Option<QoS> {
        self.delivery.as_ref().map(|delivery| delivery.qos)
    }

    /// PUBLISH leaves now.
    #[inline]
    pub(crate) const fn mark_sent(&mut self) {
        self.sent = true;
        self.on_wire = true;
        self.uses_credit = true;
    }

    /// From now on only PUBREL is sent, after the commit that is returned.
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
    /// Its message, if it still has one, is here and not only known.
    #[inline]
    pub(crate) fn is_loaded(&self) -> bool {
        self.delivery.as_ref().is_none_or(|delivery| delivery.message.is_loaded())
    }
}
