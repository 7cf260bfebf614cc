//! What cannot be taken in: publishers are refused or held back, before anything is acknowledged,
//! when the memory budget of queued messages is used up, when the journal takes nothing, and when
//! the queue of a receiver is full (see [`full`](super::full)).
//!
//! Once the budget is used up, a QoS 1 or 2 message that would have to be queued is refused before
//! it is acknowledged: an acknowledged one is never dropped for the budget. For the sessions of
//! this shard it is known whether a message would be queued. Another shard that has to queue one
//! says so, and the topic counts as clogged for a while; far above the budget every message for
//! another shard is refused.

use std::sync::Arc;

use tacho_codec::{PacketId, Publish, QoS, ReasonCode, Version};
use tacho_net::ConnId;
use tacho_session::Delivery;

use crate::delivery::Copy;
use crate::keys::SessionSlot;
use crate::mail::Mail;
use crate::memory::{HeldBytes, MESSAGE_BYTES};
use crate::shard::durability::is_retained_durably;
use crate::shard::output::Flow;
use crate::shard::routing::Destinations;
use crate::shard::{Net, Shard};
use crate::subscription::effective_qos;

/// What a message takes in a session's queue or window beside itself.
const PLACE_BYTES: u64 = size_of::<Delivery<Copy>>() as u64 + 24;
/// How long a topic counts as clogged after another shard has said so.
const CLOGGED_NS: u64 = 5_000_000_000;
/// A held-back publisher that tried again no later than this is still the same case.
const HELD_AGAIN_NS: u64 = 5_000_000_000;

/// When the message at which a publisher is held back was tried first and last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BudgetHold {
    since_ns: u64,
    last_ns: u64,
}

impl Shard {
    /// Adds what this shard holds to the shared sums, and notes whether there is room.
    #[inline]
    pub(in crate::shard) fn settle_memory(&mut self, net: &mut Net) {
        let held = self.held_bytes();
        let memory = &self.shared.memory;
        let makes_room = self.admission.ledger.settle(memory, held, net.buffered_bytes());
        if makes_room {
            self.tell_room(net);
        }
        let memory = &self.shared.memory;
        let (queues, buffers) = (memory.queues(), memory.buffers());
        self.admission.overload.set_buffers_full(buffers >= memory.buffers_max);
        // With what is too little to be told, as before a read: or a publisher that is let go on
        // for it would be held back again at once, turn after turn.
        self.admission.queues_full =
            self.admission.ledger.queues_bytes(memory, held.places) >= memory.queues_max;
        self.stats.waiting.set(self.sessions.places());
        self.stats.buffers_bytes.set(net.buffered_bytes() as u64);
        if self.id == 0 {
            self.stats.queues_bytes.set(queues);
            self.stats.memory_bytes.set(queues + buffers);
        }
    }

    /// Whether all buffers together are at their limit at this moment: within a turn,
    /// input is kept for many connections.
    #[cold]
    pub(in crate::shard) fn has_no_room_for_input(&mut self, net: &Net) -> bool {
        let memory = &self.shared.memory;
        self.admission.ledger.settle_buffers(memory, net.buffered_bytes());
        memory.buffers() >= memory.buffers_max
    }

    /// What this shard holds beside messages that wait.
    #[inline]
    pub(in crate::shard) fn held_bytes(&self) -> HeldBytes {
        let retained = self.retained.bytes() + self.retained.len() as u64 * MESSAGE_BYTES as u64;
        HeldBytes { places: self.places_bytes(), retained }
    }

    #[inline]
    fn places_bytes(&self) -> u64 {
        self.sessions.places() * PLACE_BYTES
    }

    /// Bytes that wait in the whole broker, including what this shard has not settled yet.
    #[inline]
    fn queues_bytes(&self) -> u64 {
        self.admission.ledger.queues_bytes(&self.shared.memory, self.places_bytes())
    }

    /// Before the packets of one read: whether the budget still has room.
    #[inline]
    pub(in crate::shard) fn update_budget(&mut self) {
        self.admission.queues_full = self.queues_bytes() >= self.shared.memory.queues_max;
        self.admission.journal_stalled = self.durability.is_stalled();
        self.admission.any_full = self.shared.room.is_any_full();
    }

    /// Far above the budget: what could only perhaps have to wait is refused too.
    pub(in crate::shard) fn is_far_over_budget(&self) -> bool {
        let queues_max = self.shared.memory.queues_max;
        self.queues_bytes() >= queues_max.saturating_add(queues_max / 4)
    }

    /// With the budget used up, the journal stuck or a full queue anywhere: what becomes of a
    /// PUBLISH to `topic`, if it cannot be taken in.
    #[cold]
    pub(in crate::shard) fn refuse_new(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        topic: &str,
        publish: &Publish<'_>,
    ) -> Option<Flow> {
        let packet_id = publish.packet_id?;
        let machine = &self.sessions[slot].machine;
        if machine.knows_inbound(publish.qos, packet_id) {
            return None;
        }
        if !self.must_refuse(net, slot, &Publish { topic, ..*publish }) {
            return None;
        }
        if self.sessions[slot].version() == Version::V5 {
            self.trace_publish_in(net, slot, topic, publish);
            return Some(self.refuse_new_publish(net, conn, slot, publish.qos, packet_id));
        }
        Some(self.hold_for_budget(net, conn, slot))
    }

    /// Whether a PUBLISH cannot be taken in now, which counts then.
    #[cold]
    pub(in crate::shard) fn must_refuse(
        &mut self,
        net: &Net,
        slot: SessionSlot,
        publish: &Publish<'_>,
    ) -> bool {
        let topic = publish.topic;
        let route = self.routing.lookup(topic);
        let clogged = route.clogged_until_ns > net.now_ns();
        let to = route.to.clone();
        if self.admission.journal_stalled && self.would_be_written(slot, topic, publish, &to) {
            self.stats.journal_refused_publishes_total.increment();
        } else if self.admission.queues_full && self.would_wait(&to, publish.qos, clogged) {
            self.stats.refused_publishes_total.increment();
        } else if self.admission.any_full && to.is_full() {
            self.stats.refused_queue_full_total.increment();
        } else {
            return false;
        }
        true
    }

    /// Whether a message would have to wait for one of its receivers.
    fn would_wait(&self, to: &Destinations, qos: QoS, clogged: bool) -> bool {
        let far = self.is_far_over_budget();
        if !to.remote.is_empty() && (clogged || far) {
            return true;
        }
        let group_waits = |group: &Arc<tacho_topic::Group>| {
            group.waiting() > 0 || !self.group_has_room(group) || far
        };
        if to.groups.as_ref().is_some_and(|groups| groups.iter().any(group_waits)) {
            return true;
        }
        to.local.iter().any(|target| {
            effective_qos(qos, target.qos) != QoS::AtMostOnce
                && self
                    .sessions
                    .get(target.session)
                    .is_some_and(|session| !session.machine.takes_now())
        })
    }

    /// Whether a message of QoS 1 or 2 could not be acknowledged before it is in the journal.
    fn would_be_written(
        &self,
        slot: SessionSlot,
        topic: &str,
        publish: &Publish<'_>,
        to: &Destinations,
    ) -> bool {
        let Some(durable) = &self.shared.durable else { return false };
        let qos = publish.qos;
        let is_journaled =
            |slot: SessionSlot| self.sessions.get(slot).is_some_and(|s| s.journal.is_durable());
        qos == QoS::ExactlyOnce && is_journaled(slot)
            || publish.retain && is_retained_durably(durable, topic)
            || to.remote.iter().any(|shard| durable.has_receivers(shard, to.durable))
            || to.groups.iter().flat_map(|groups| groups.iter()).any(|g| g.durable_members() > 0)
            || to.local.iter().any(|target| {
                effective_qos(qos, target.qos) != QoS::AtMostOnce && is_journaled(target.session)
            })
    }

    fn refuse_new_publish(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        qos: QoS,
        packet_id: PacketId,
    ) -> Flow {
        let machine = &mut self.sessions[slot].machine;
        if let Err(error) = machine.handle_publish(qos, Some(packet_id)) {
            return self.end_connection(net, conn, error.reason());
        }
        self.answer_publish(slot, qos, Some(packet_id), ReasonCode::QUOTA_EXCEEDED);
        Flow::Continue
    }

    /// 3.x has no reason code for it: the PUBLISH stays unread until there is room or the client
    /// has been held back for too long. What it acknowledges meanwhile counts, see
    /// `connections::read_ahead`.
    fn hold_for_budget(&mut self, net: &mut Net, conn: ConnId, slot: SessionSlot) -> Flow {
        let now_ns = net.now_ns();
        let patience_ns = u64::from(self.limits().publish_hold_s) * 1_000_000_000;
        let held = self.sessions[slot].pressure.hold();
        if now_ns.saturating_sub(held.last_ns) > HELD_AGAIN_NS {
            held.since_ns = now_ns;
        }
        held.last_ns = now_ns;
        if now_ns - held.since_ns >= patience_ns {
            self.stats.ended_publishers_total.increment();
            return self.end_connection(net, conn, ReasonCode::QUOTA_EXCEEDED);
        }
        Flow::Hold
    }

    /// Another shard had to queue a message to this topic although the budget is used up.
    pub(in crate::shard) fn topic_clogged(&mut self, net: &Net, topic: &str) {
        self.routing.note_clogged(topic, net.now_ns() + CLOGGED_NS);
    }

    /// Tells a publishing shard that its message had to wait, if the budget is used up.
    #[inline]
    pub(in crate::shard) fn tell_if_clogged(
        &self,
        net: &mut Net,
        from: usize,
        topic: &Arc<str>,
        queued_before: u64,
    ) {
        if self.admission.queues_full
            && self.delivery.queued_total() != queued_before
            && from < net.shards()
        {
            net.post(from, Mail::Clogged(Arc::clone(topic)));
        }
    }
}
