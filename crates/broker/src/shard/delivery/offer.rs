//! A session is offered a message, and its output moves to its connection.

use tacho_codec::QoS;
use tacho_net::ConnId;
use tacho_session::{BatchSeq, Delivery, DropReason, Offer};

use crate::delivery::{Body, Copy};
use crate::keys::SessionSlot;
use crate::shard::sessions::DroppedInKeeping;
use crate::shard::{Net, Shard};

/// Output of a connection from which on it is written before its turn: less with each write would
/// cost more.
const WRITE_EARLY_BYTES: usize = 64 * 1024;

/// Packets of a session that leave together however late it is: fewer with each write would cost
/// more.
const AT_ONCE_MAX: usize = 256;

/// What became of a message that a session was given.
#[derive(Clone, Copy, Debug)]
pub(in crate::shard) struct Offered {
    /// It was sent or has a place in the queue.
    pub(in crate::shard) is_taken: bool,
    /// It is safe once this is committed.
    pub(in crate::shard) batch: BatchSeq,
}

impl Offered {
    const DROPPED: Self = Self { is_taken: false, batch: BatchSeq::DONE };
    const TAKEN: Self = Self { is_taken: true, batch: BatchSeq::DONE };
}

impl Shard {
    /// Gives a session one message: sent at once if it can be, else queued or dropped by the
    /// session's limits.
    #[inline]
    pub(in crate::shard) fn offer(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        delivery: Delivery<Copy>,
    ) -> Offered {
        let now_ns = net.now_ns();
        if self.traces.are_on()
            && let Body::Here(message) = &delivery.message.message
        {
            self.note_offered(net, slot, &message.header().topic);
        }
        let connection = self.sessions[slot].connection();
        if let Some(conn) = connection {
            let mut output_bytes = net.output_bytes(conn);
            if output_bytes > WRITE_EARLY_BYTES {
                // What waits for its turn to be written must not count as unread.
                output_bytes = net.write_early(conn);
            }
            if output_bytes > self.shared.limits.output_bytes_max {
                // Until the loop says that the output has drained.
                self.output_blocked(net, slot);
            }
            if output_bytes > self.shared.overload.slow_reader_bytes
                && self.sheds(net, (slot, conn, output_bytes), delivery.qos)
            {
                return Offered::DROPPED;
            }
        }
        let session = &mut self.sessions[slot];
        if session.journal.has_places() {
            return self.offer_durably(net, slot, delivery);
        }
        let offer = self.durability.act(slot, session.subject(), |machine, recorder| {
            machine.offer(now_ns, delivery, recorder)
        });
        self.offered(net, slot, offer)
    }

    /// The same for a durable session: the message gets a place in its queue of the journal. Or for
    /// one in memory whose message may have a place in the queue of a group.
    fn offer_durably(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        mut delivery: Delivery<Copy>,
    ) -> Offered {
        let now_ns = net.now_ns();
        self.store(now_ns, slot, &mut delivery);
        let (offer, batch) = self.act(slot, |machine, recorder| {
            (machine.offer(now_ns, delivery, recorder), recorder.written())
        });
        Offered { batch, ..self.offered(net, slot, offer) }
    }

    #[inline]
    fn offered(&mut self, net: &mut Net, slot: SessionSlot, offer: Offer<Copy>) -> Offered {
        match offer {
            Offer::SendNow(transmit) => {
                if let Some(conn) = self.sessions[slot].connection() {
                    self.transmit(net, slot, conn, transmit);
                }
            }
            Offer::Queued => {
                self.delivery.queued_total += 1;
                self.trace_queued(net, slot);
                self.sessions.count_places(slot);
                self.count_dropped(net, slot);
            }
            Offer::Dropped(reason) => {
                self.count_drop(net, slot, reason);
                return Offered::DROPPED;
            }
        }
        Offered::TAKEN
    }

    /// A slow reader is offered a message: whether it is shed.
    #[cold]
    fn sheds(
        &mut self,
        net: &Net,
        (slot, conn, output_bytes): (SessionSlot, ConnId, usize),
        qos: QoS,
    ) -> bool {
        if qos != QoS::AtMostOnce {
            if self.admission.buffers_full() {
                self.end_slow_reader(conn);
            }
            return false;
        }
        if !self.admission.buffers_full() && output_bytes <= self.admission.shed_above_bytes() {
            return false;
        }
        self.stats.dropped_overload_total.increment();
        self.trace_shed(net, slot, "QoS 0 to a slow reader, and the broker sheds load");
        self.sessions[slot].pressure.message_shed();
        self.note_drop(net, slot);
        true
    }

    #[cold]
    fn count_drop(&mut self, net: &Net, slot: SessionSlot, reason: DropReason) {
        self.trace_dropped(net, slot, reason);
        match reason {
            DropReason::Expired => self.count_dropped(net, slot),
            DropReason::Offline => self.stats.dropped_offline_total.increment(),
            DropReason::Denied => self.stats.denied_deliveries_total.increment(),
            DropReason::PacketTooLarge => self.stats.dropped_too_large_total.increment(),
            DropReason::NoCredit => {
                self.stats.dropped_output_full_total.increment();
                self.note_drop(net, slot);
            }
            DropReason::QueueFull | DropReason::QueueBytesFull => {
                self.count_dropped(net, slot);
                self.end_if_so_configured(slot);
            }
        }
    }

    /// Counts what the session's machine has dropped of what it kept, and for its full queue.
    #[inline]
    pub(in crate::shard) fn count_dropped(&mut self, net: &Net, slot: SessionSlot) {
        let DroppedInKeeping { expired, queue_full } = self.sessions[slot].take_dropped();
        if expired > 0 {
            self.stats.dropped_expired_total.add(expired);
        }
        if queue_full > 0 {
            self.stats.dropped_queue_full_total.add(queue_full);
            self.note_drop(net, slot);
        }
    }

    /// Moves a session's waiting output to its connection, up to the high-water mark, and not much
    /// more than what is left of the turn.
    pub(in crate::shard) fn pump(&mut self, net: &mut Net, slot: SessionSlot) {
        let now_ns = net.now_ns();
        let committed = self.durability.committed();
        let mut written = 0;
        loop {
            let Some(session) = self.sessions.get_mut(slot) else { return };
            let Some(conn) = session.connection() else { return };
            if net.output_bytes(conn) > self.shared.limits.output_bytes_max {
                self.output_blocked(net, slot);
                break;
            }
            let next = self.durability.act(slot, session.subject(), |machine, recorder| {
                machine.poll_transmit(now_ns, committed, recorder)
            });
            match next {
                Some(transmit) => self.transmit(net, slot, conn, transmit),
                None => break,
            }
            written += 1;
            if !net.charge(1) && written >= AT_ONCE_MAX {
                // The rest follows once this is written.
                net.await_drained(conn);
                break;
            }
        }
        if self.sessions.settle(slot) {
            self.continue_session(net, slot);
        }
    }

    /// What a session needs beside its output, which is rare: dropped messages are counted, stored
    /// ones loaded, replays and changes of memberships go on.
    #[inline(never)]
    fn continue_session(&mut self, net: &mut Net, slot: SessionSlot) {
        self.count_dropped(net, slot);
        if self.sessions[slot].journal.has_stored() {
            self.load(net, slot);
        }
        if self.sessions[slot].replays.are_under_way() {
            self.continue_replay(net, slot);
        }
        if !self.sessions[slot].memberships.is_empty() {
            self.update_memberships(net, slot);
        }
    }
}
