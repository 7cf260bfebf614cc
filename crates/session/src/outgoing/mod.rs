//! The outgoing half: from an offered message to the end of its exchange.

mod answers;
mod drain;
mod loading;
mod peer;
mod restore;
mod slot;
mod window;

use std::collections::VecDeque;

use tacho_codec::{PacketId, QoS, ReasonCode};

use crate::on_demand::OnDemand;
use crate::queue::{Overflow, Queue, QueueLevel, Queued};
use crate::{BatchSeq, Counters, Delivery, DropReason, Offer, Payload, Persist, Record, Transmit};
use slot::{SentAt, Slot, Stage};
use window::Window;

/// The limits of the outgoing half.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingLimits {
    pub(crate) queue_len_max: u32,
    pub(crate) queue_bytes_max: u64,
    pub(crate) overflow: Overflow,
    pub(crate) inflight_max: u16,
    pub(crate) queue_qos0_offline: bool,
    /// Keep the message until PUBCOMP instead of PUBREC.
    pub(crate) keep_released: bool,
}

/// A PUBREL of this connection in the order of the PUBRECs [MQTT-4.6.0-4].
#[derive(Debug)]
struct Release {
    packet_id: PacketId,
    reason: ReasonCode,
    batch: BatchSeq,
}

/// The sending side of one session.
#[derive(Debug)]
pub(crate) struct Outgoing<M> {
    window: Window<M>,
    queue: Queue<M>,
    releases: OnDemand<VecDeque<Release>>,
    /// The newest batch that a release waits for.
    released: BatchSeq,
    /// The batch of the last message that expired in the window: nothing behind it is sent before
    /// that is committed.
    lapsed: BatchSeq,
    counters: OnDemand<Counters>,
    /// The number of the next message.
    next_seq: u64,
    /// Units of the peer's receive maximum in use on this connection.
    credit_used: u32,
    /// The number of exchanges that may be open: the smaller of the own limit and the peer's.
    width: u16,
    inflight_max: u16,
    overflow: Overflow,
    queue_qos0_offline: bool,
    keep_released: bool,
    output: Output,
}

/// Whether packets can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    /// There is no connection.
    Disconnected,
    /// The connection accepts packets.
    Open,
    /// The connection accepts no more packets for now.
    Congested,
}

impl<M: Payload> Outgoing<M> {
    pub(crate) fn new(limits: OutgoingLimits) -> Self {
        Self {
            window: Window::new(),
            queue: Queue::new(limits.queue_len_max, limits.queue_bytes_max),
            releases: OnDemand::new(),
            released: BatchSeq::DONE,
            lapsed: BatchSeq::DONE,
            counters: OnDemand::new(),
            next_seq: 1,
            credit_used: 0,
            width: 0,
            inflight_max: limits.inflight_max.max(1),
            overflow: limits.overflow,
            queue_qos0_offline: limits.queue_qos0_offline,
            keep_released: limits.keep_released,
            output: Output::Disconnected,
        }
    }

    /// Starts a connection; everything in flight is retransmitted, in its order [MQTT-4.4.0-1],
    /// [MQTT-4.6.0-1].
    pub(crate) fn connect(&mut self, peer_receive_maximum: u16) {
        self.disconnect();
        // [MQTT-3.3.4-9], [MQTT-4.9.0-1].
        self.width = self.inflight_max.min(peer_receive_maximum).max(1);
        self.output = Output::Open;
        self.window.rewind();
    }

    pub(crate) fn disconnect(&mut self) {
        self.output = Output::Disconnected;
        self.credit_used = 0;
        self.releases.clear();
        self.release_memory();
    }

    /// Drops queue and exchanges, not the counters.
    pub(crate) fn clear(&mut self) {
        self.window.clear();
        self.queue.clear();
        self.releases.clear();
        self.credit_used = 0;
    }

    pub(crate) fn release_memory(&mut self) {
        self.window.release_memory();
        self.queue.release_memory();
        if self.releases.get().is_some_and(VecDeque::is_empty) {
            self.releases.clear();
        }
    }

    #[inline]
    pub(crate) fn counters(&self) -> &Counters {
        self.counters.get().unwrap_or(&Counters::NONE)
    }

    /// The counters, one of which is about to count.
    pub(crate) fn count(&mut self) -> &mut Counters {
        self.counters.get_or_default()
    }

    /// Without a connection it has no effect: the next one starts uncongested.
    pub(crate) const fn set_congested(&mut self, congested: bool) {
        if self.is_connected() {
            self.output = if congested { Output::Congested } else { Output::Open };
        }
    }

    #[inline]
    pub(crate) const fn is_congested(&self) -> bool {
        matches!(self.output, Output::Congested)
    }

    #[inline]
    const fn is_connected(&self) -> bool {
        !matches!(self.output, Output::Disconnected)
    }

    pub(crate) fn queue_len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) const fn next_seq(&self) -> u64 {
        self.next_seq
    }

    pub(crate) const fn queue_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    pub(crate) fn queue_level(&self) -> QueueLevel {
        self.queue.level()
    }

    pub(crate) const fn overflow(&self) -> Overflow {
        self.overflow
    }

    pub(crate) const fn set_overflow(&mut self, overflow: Overflow) {
        self.overflow = overflow;
    }

    pub(crate) const fn set_queue_len_max(&mut self, len_max: u32) {
        self.queue.set_len_max(len_max);
    }

    pub(crate) const fn inflight_len(&self) -> usize {
        self.window.live()
    }

    pub(crate) const fn inflight_max(&self) -> usize {
        self.width as usize
    }

    /// For how long the peer has not answered the oldest packet sent on this connection; `None` if
    /// it has answered all.
    pub(crate) fn unanswered_ns(&self, now_ns: u64) -> Option<u64> {
        self.window.slots().filter_map(|slot| slot.unanswered_ns(now_ns)).max()
    }

    /// Whether a message of QoS 1 or 2 would enter the window at once.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.output == Output::Open && self.queue.is_empty() && self.takes_more()
    }

    #[inline]
    pub(crate) fn offer(
        &mut self,
        now_ns: u64,
        delivery: Delivery<M>,
        persist: &mut impl Persist<M>,
    ) -> Offer<M> {
        if delivery.is_expired(now_ns) {
            return self.dropped(DropReason::Expired);
        }
        if delivery.qos == QoS::AtMostOnce {
            return self.offer_qos0(now_ns, delivery, persist);
        }
        if self.is_open() && self.window.make_room(self.inflight_max()) {
            return self.admit_and_send(now_ns, delivery, persist);
        }
        self.enqueue(now_ns, delivery, persist)
    }

    /// The reason why `offer` would drop the message now.
    pub(crate) fn refusal(&self, now_ns: u64, delivery: &Delivery<M>) -> Option<DropReason> {
        if delivery.is_expired(now_ns) {
            return Some(DropReason::Expired);
        }
        let queued = match self.output {
            _ if delivery.qos != QoS::AtMostOnce => !self.is_open(),
            Output::Open => self.queue.holds_qos0(),
            Output::Congested => return Some(DropReason::NoCredit),
            Output::Disconnected if self.queue_qos0_offline => true,
            Output::Disconnected => return Some(DropReason::Offline),
        };
        if queued { self.queue_refusal(delivery) } else { None }
    }

    /// The reason why a message for the queue would be dropped now.
    fn queue_refusal(&self, delivery: &Delivery<M>) -> Option<DropReason> {
        let reason = self.queue.refusal(delivery)?;
        let is_dropped = match self.overflow {
            _ if delivery.qos == QoS::AtMostOnce => true,
            Overflow::DropNewest => true,
            Overflow::DropOldest => !self.queue.could_hold(delivery),
            Overflow::Keep => false,
        };
        is_dropped.then_some(reason)
    }

    #[inline]
    fn offer_qos0(
        &mut self,
        now_ns: u64,
        delivery: Delivery<M>,
        persist: &mut impl Persist<M>,
    ) -> Offer<M> {
        match self.output {
            Output::Open => {}
            Output::Congested => return self.dropped(DropReason::NoCredit),
            Output::Disconnected if self.queue_qos0_offline => {
                return self.enqueue(now_ns, delivery, persist);
            }
            Output::Disconnected => return self.dropped(DropReason::Offline),
        }
        if self.queue.holds_qos0() || !delivery.message.is_loaded() {
            return self.enqueue(now_ns, delivery, persist);
        }
        Offer::SendNow(Transmit::Publish { delivery, packet_id: None, dup: false })
    }

    /// Puts a message into the window, and sends it if no message precedes it.
    #[inline]
    fn admit_and_send(
        &mut self,
        now_ns: u64,
        delivery: Delivery<M>,
        persist: &mut impl Persist<M>,
    ) -> Offer<M> {
        let leaves_now =
            self.window.is_sent() && self.lapsed == BatchSeq::DONE && delivery.message.is_loaded();
        let copy = if leaves_now { Some(delivery.clone()) } else { None };
        let entry = Queued { seq: self.take_seq(), delivery };
        let (packet_id, batch) = self.admit(entry, false, persist);
        match copy {
            Some(delivery) if batch == BatchSeq::DONE => {
                self.window.send_newest(now_ns);
                self.credit_used += 1;
                let packet_id = Some(packet_id);
                Offer::SendNow(Transmit::Publish { delivery, packet_id, dup: false })
            }
            _ => Offer::Queued,
        }
    }

    /// Gives a message an unused identifier [MQTT-2.2.1-4], [MQTT-4.3.2-1], [MQTT-4.3.3-1]. Only
    /// QoS 2 waits for the commit of that record.
    #[inline]
    fn admit(
        &mut self,
        Queued { seq, delivery }: Queued<M>,
        from_queue: bool,
        persist: &mut impl Persist<M>,
    ) -> (PacketId, BatchSeq) {
        let waits = delivery.qos == QoS::ExactlyOnce;
        let (packet_id, slot) = self.window.push(Slot::publish(seq, delivery));
        if let Some(delivery) = &slot.delivery {
            let batch = persist.persist(Record::Sent { seq, packet_id, delivery, from_queue });
            if waits {
                slot.batch = batch;
            }
        }
        (packet_id, slot.batch)
    }

    fn enqueue(
        &mut self,
        now_ns: u64,
        delivery: Delivery<M>,
        persist: &mut impl Persist<M>,
    ) -> Offer<M> {
        if self.queue.refusal(&delivery).is_some() {
            self.drop_expired(now_ns, persist);
        }
        if let Some(reason) = self.queue_refusal(&delivery) {
            return self.dropped(reason);
        }
        if self.overflow == Overflow::DropOldest {
            self.evict_for(&delivery, persist);
        }
        let entry = Queued { seq: self.take_seq(), delivery };
        persist.persist(Record::Enqueued { seq: entry.seq, delivery: &entry.delivery });
        self.queue.push(entry);
        Offer::Queued
    }

    /// Makes room for a message in a full queue.
    fn evict_for(&mut self, delivery: &Delivery<M>, persist: &mut impl Persist<M>) {
        let Some(reason) = self.queue.refusal(delivery) else { return };
        for Queued { seq, delivery } in self.queue.evict_for(delivery) {
            persist.persist(Record::Discarded { seq, delivery: &delivery });
            self.count().count_drop(reason);
        }
    }

    #[inline]
    const fn take_seq(&mut self) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        seq
    }

    /// Drops expired messages at the head of the queue.
    pub(crate) fn drop_expired(&mut self, now_ns: u64, persist: &mut impl Persist<M>) {
        while self.queue.front().is_some_and(|delivery| delivery.is_expired(now_ns)) {
            let is_reported = self.queue.is_departing();
            let Some(Queued { seq, delivery }) = self.queue.pop() else { return };
            if !is_reported {
                persist.persist(Record::Expired { seq, delivery: &delivery });
            }
            self.count().count_drop(DropReason::Expired);
        }
    }

    fn dropped(&mut self, reason: DropReason) -> Offer<M> {
        self.count().count_drop(reason);
        Offer::Dropped(reason)
    }

    /// Whether `poll` would yield a packet or drop a message.
    #[inline]
    pub(crate) fn has_output(&self, committed: BatchSeq) -> bool {
        if !self.is_connected() {
            return false;
        }
        if self.has_release(committed) {
            return true;
        }
        let unsent = if self.window.is_sent() { None } else { self.window.peek_unsent() };
        if unsent.is_some_and(|slot| self.may_send(slot, committed)) {
            return true;
        }
        let is_stopped = unsent.is_some_and(|slot| !slot.is_loaded());
        if is_stopped && self.lapsed <= committed && self.has_release_behind(committed) {
            return true;
        }
        self.queue.front().is_some_and(|delivery| match delivery.qos {
            QoS::AtMostOnce => {
                let waits = self.queue.departing_batch().is_some_and(|batch| batch > committed);
                delivery.message.is_loaded() && !waits
            }
            _ => self.takes_more(),
        })
    }

    /// Whether the window accepts a message from the queue.
    #[inline]
    fn takes_more(&self) -> bool {
        self.window.live() < self.inflight_max() && self.window.has_room(self.inflight_max())
    }

    #[inline]
    fn may_send(&self, slot: &Slot<M>, committed: BatchSeq) -> bool {
        let may_publish = || slot.is_loaded() && self.credit_used < u32::from(self.width);
        slot.batch.max(self.lapsed) <= committed && (slot.stage == Stage::Released || may_publish())
    }

    /// The next PUBLISH or PUBREL.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        now_ns: u64,
        committed: BatchSeq,
        persist: &mut impl Persist<M>,
    ) -> Option<Transmit<M>> {
        if !self.is_connected() {
            return None;
        }
        if self.releases.get().is_some()
            && let Some(transmit) = self.poll_release(now_ns, committed)
        {
            return Some(transmit);
        }
        let front = loop {
            if !self.queue.is_empty() {
                self.fill_window(now_ns, persist);
            }
            if !self.window.is_sent()
                && let Some(transmit) = self.poll_window(now_ns, committed, persist)
            {
                return Some(transmit);
            }
            let front = self.queue.front()?;
            match front.qos {
                QoS::AtMostOnce => break front,
                // A message that just expired in the window has made room for a queued one.
                _ if self.takes_more() => {}
                _ => return None,
            }
        };
        if !front.message.is_loaded() {
            return None;
        }
        if !self.queue.is_departing() {
            self.queue.depart(|Queued { seq, delivery }| {
                persist.persist(Record::Dispatched { seq: *seq, delivery })
            });
        }
        if self.queue.departing_batch().is_some_and(|batch| batch > committed) {
            return None;
        }
        let Queued { delivery, .. } = self.queue.pop()?;
        Some(Transmit::Publish { delivery, packet_id: None, dup: false })
    }

    /// Whether the oldest release may be sent.
    #[inline]
    fn has_release(&self, committed: BatchSeq) -> bool {
        let oldest = self.releases.get().and_then(VecDeque::front);
        oldest.is_some_and(|release| release.batch <= committed)
    }

    fn poll_release(&mut self, now_ns: u64, committed: BatchSeq) -> Option<Transmit<M>> {
        while self.has_release(committed) {
            let Release { packet_id, reason, .. } = self.releases.get_mut()?.pop_front()?;
            if reason == ReasonCode::SUCCESS {
                // PUBCOMP may have arrived before PUBREL was sent; then nothing is to be released.
                let slot = self.window.get_mut(packet_id).filter(|slot| slot.release_waits);
                let Some(slot) = slot else { continue };
                slot.release_waits = false;
                slot.sent_at = SentAt::new(now_ns);
            }
            return Some(Transmit::PubRel { packet_id, reason });
        }
        None
    }

    /// Moves messages from the queue into the window, so that their commits overlap.
    fn fill_window(&mut self, now_ns: u64, persist: &mut impl Persist<M>) {
        self.drop_expired(now_ns, persist);
        while self.window.live() < self.inflight_max()
            && self.queue.front().is_some_and(|delivery| delivery.qos != QoS::AtMostOnce)
            && self.window.make_room(self.inflight_max())
        {
            let Some(entry) = self.queue.pop() else { return };
            self.admit(entry, true, persist);
            self.drop_expired(now_ns, persist);
        }
    }

    #[inline]
    fn poll_window(
        &mut self,
        now_ns: u64,
        committed: BatchSeq,
        persist: &mut impl Persist<M>,
    ) -> Option<Transmit<M>> {
        let credit_left = self.credit_used < u32::from(self.width);
        let transmit = loop {
            if self.lapsed > committed {
                return None;
            }
            self.lapsed = BatchSeq::DONE;
            let (packet_id, slot) = self.window.next_unsent()?;
            if slot.batch > committed {
                return None;
            }
            if slot.stage == Stage::Released {
                slot.mark_resumed(now_ns);
                break Transmit::PubRel { packet_id, reason: ReasonCode::SUCCESS };
            }
            if !credit_left {
                return None;
            }
            let delivery = slot.delivery.as_ref()?;
            // A delivery that was started continues after its expiry [MQTT-3.3.2-5],
            // [MQTT-4.3.3-7].
            if !slot.sent && delivery.is_expired(now_ns) {
                self.expire(packet_id, persist);
                continue;
            }
            if !delivery.message.is_loaded() {
                return self.poll_release_behind(now_ns, committed);
            }
            let (dup, delivery) = (slot.sent, delivery.clone());
            slot.mark_sent(now_ns);
            self.credit_used += 1;
            break Transmit::Publish { delivery, packet_id: Some(packet_id), dup };
        };
        self.window.advance();
        Some(transmit)
    }

    /// A message expired in the window, before it was sent for the first time.
    #[cold]
    fn expire(&mut self, packet_id: PacketId, persist: &mut impl Persist<M>) {
        if let Some(slot) = self.window.finish(packet_id) {
            self.lapsed = persist.persist(Record::Lapsed { seq: slot.seq, packet_id });
            self.count().count_drop(DropReason::Expired);
        }
    }

    /// Reserves an identifier for SUBSCRIBE or UNSUBSCRIBE; `None` if none is free.
    pub(crate) fn reserve_id(&mut self) -> Option<PacketId> {
        let has_room = self.window.make_room(self.inflight_max());
        has_room.then(|| self.window.push(Slot::reserved()).0)
    }

    /// Frees an identifier of `reserve_id`; false if it is not one.
    pub(crate) fn release_id(&mut self, packet_id: PacketId) -> bool {
        let is_reserved =
            self.window.get_mut(packet_id).is_some_and(|slot| slot.stage == Stage::Reserved);
        is_reserved && self.window.finish(packet_id).is_some()
    }
}
