//! Messages going out: fan-out to local sessions, and a session's output to its connection.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use tacho_codec::{Ack, AckKind, PacketId, Publish, QoS, Version};
use tacho_net::ConnId;
use tacho_session::{AliasOut, BatchSeq, Delivery, DropReason, Offer, Transmit};

use super::distribution::{Acknowledge, Receipt};
use super::publish::effective_qos;
use super::recorder::act;
use super::session::{Body, Copy, NO_GROUP, Session};
use super::{Net, Shard};
use crate::message::{Message, SharedPayload};
use crate::subscription::{Scope, Target};

/// Payloads from this size on go to the socket by reference instead of being copied.
pub(super) const BY_REFERENCE_BYTES: usize = 4096;

/// A fan-out looks at no more unfinished ones than this to see whether it may overtake them.
const OVERTAKEN_MAX: usize = 16;

/// A message and how far its fan-out has come.
#[derive(Debug)]
pub(crate) struct FanOut {
    message: Message,
    targets: Rc<[Target]>,
    position: usize,
    acknowledge: Option<Acknowledge>,
    /// It is a part of a message's distribution.
    pub(super) receipt: Option<Receipt>,
    /// The last of what was written for it.
    pub(super) batch: BatchSeq,
    /// The newest session when the targets were matched. A later one may have got the slot of a
    /// target that ended meanwhile.
    newest_session: u32,
}

impl FanOut {
    pub(crate) fn new(
        message: Message,
        targets: Rc<[Target]>,
        acknowledge: Option<Acknowledge>,
    ) -> Self {
        Self {
            message,
            targets,
            position: 0,
            acknowledge,
            receipt: None,
            batch: BatchSeq::DONE,
            newest_session: 0,
        }
    }
}

/// What became of a message that a session was given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offered {
    /// It was sent or has a place in the queue.
    pub(super) is_taken: bool,
    /// It is safe once this is committed.
    pub(super) batch: BatchSeq,
}

impl Offered {
    const DROPPED: Self = Self { is_taken: false, batch: BatchSeq::DONE };
    const TAKEN: Self = Self { is_taken: true, batch: BatchSeq::DONE };
}

impl Shard {
    /// Delivers to all targets at once, unless this one is larger than what is left of the turn, or
    /// must not overtake an unfinished one: then it waits its turn, so that order never breaks.
    #[inline]
    pub(super) fn fan_out(&mut self, net: &mut Net, mut fan_out: FanOut) {
        let targets_len = fan_out.targets.len();
        fan_out.newest_session = self.next_generation;
        if self.finishes_now(&fan_out.message, targets_len) {
            self.deliveries_left = self.deliveries_left.saturating_sub(targets_len);
            let finished = self.advance(net, &mut fan_out, usize::MAX);
            debug_assert!(finished, "an unlimited budget suffices");
        } else {
            self.fan_outs.push_back(fan_out);
        }
    }

    /// Whether a message that is fanned out now reaches all its targets in this turn.
    ///
    /// One that is for a single session costs less to deliver, journal and all, than to note as not
    /// yet distributed: where there is a journal it does not wait for the next turn.
    #[inline]
    pub(super) fn finishes_now(&self, message: &Message, targets_len: usize) -> bool {
        let left = self.deliveries_left.max(usize::from(self.journal.is_some()));
        targets_len <= left && self.may_overtake(message)
    }

    /// Whether a message needs not wait for the unfinished fan-outs: all have other topics and
    /// other publishers. So order holds by topic [MQTT-4.6.0-6] and acknowledgements leave in the
    /// order of a client's publishes [MQTT-4.6.0-2], but one message to very many receivers costs
    /// other clients no more than a turn.
    #[inline]
    fn may_overtake(&self, message: &Message) -> bool {
        self.fan_outs.is_empty() || self.is_unrelated(message)
    }

    #[cold]
    fn is_unrelated(&self, message: &Message) -> bool {
        let header = message.header();
        self.fan_outs.len() <= OVERTAKEN_MAX
            && self.fan_outs.iter().all(|unfinished| {
                let other = unfinished.message.header();
                other.source != header.source && other.topic != header.topic
            })
    }

    /// Goes on with the unfinished fan-outs, first in first out, within the turn's budget.
    pub(super) fn continue_fan_outs(&mut self, net: &mut Net) {
        let mut budget = self.limits().deliveries_per_turn_max;
        self.deliveries_left = budget;
        while budget > 0
            && let Some(mut fan_out) = self.fan_outs.pop_front()
        {
            let before = fan_out.position;
            let publisher = fan_out.acknowledge;
            if !self.advance(net, &mut fan_out, budget) {
                self.fan_outs.push_front(fan_out);
                return;
            }
            // An empty fan-out costs a little too.
            budget = budget.saturating_sub((fan_out.position - before).max(1));
            if let Some(publisher) = publisher
                && self.is_session(publisher)
            {
                self.pump(net, publisher.slot);
            }
        }
        if self.fan_outs.is_empty() && self.fan_outs.capacity() > 1024 {
            self.fan_outs = VecDeque::new();
        }
    }

    /// Delivers to up to `budget` more targets; true when none is left.
    fn advance(&mut self, net: &mut Net, fan_out: &mut FanOut, budget: usize) -> bool {
        let end = fan_out.targets.len().min(fan_out.position.saturating_add(budget));
        let source = fan_out.message.header().source;
        let is_retained = fan_out.message.header().retain;
        let routed_version = fan_out.message.header().routed_version;
        if end - fan_out.position > 1 {
            self.heads.begin(&fan_out.message);
        }
        for target in &fan_out.targets[fan_out.position..end] {
            let Some(session) = self.sessions.get(target.session as usize) else { continue };
            if session.generation.wrapping_sub(fan_out.newest_session).cast_signed() > 0 {
                continue;
            }
            if is_retained && routed_version < target.since {
                continue;
            }
            // [MQTT-3.8.3-3].
            let own = target.scope != Scope::Everyone && session.source == source;
            match target.scope {
                Scope::Others | Scope::Bridge if own => continue,
                Scope::Own if !own => continue,
                Scope::Bridge => {
                    let batch = self.deliver_to_bridge(net, target, &fan_out.message);
                    fan_out.batch = fan_out.batch.max(batch);
                }
                _ => {
                    let batch = self.deliver_to(net, target, &fan_out.message);
                    fan_out.batch = fan_out.batch.max(batch);
                }
            }
        }
        fan_out.position = end;
        self.heads.end();
        if end < fan_out.targets.len() {
            return false;
        }
        if let Some(publisher) = fan_out.acknowledge
            && self.is_session(publisher)
        {
            self.accept_from(publisher, fan_out.batch);
        }
        if let Some(receipt) = fan_out.receipt {
            self.part_ended(net, receipt, fan_out.batch);
        }
        true
    }

    #[inline]
    fn deliver_to(&mut self, net: &mut Net, target: &Target, message: &Message) -> BatchSeq {
        let header = message.header();
        let delivery = Delivery {
            message: Copy { message: Body::Here(message.clone()), group: NO_GROUP },
            qos: effective_qos(header.qos, target.qos),
            // [MQTT-3.3.1-12], [MQTT-3.3.1-13].
            retain: header.retain && target.retain_as_published,
            subscription_ids: target.subscription_ids.clone(),
            size_bytes: message.size_bytes() as u32,
            expires_at_ns: header.expires_at_ns,
        };
        let offered = self.offer(net, target.session, delivery);
        if header.retain && offered.is_taken {
            self.note_live_retained(net, target.session, message);
        }
        offered.batch
    }

    /// Gives a session one message: sent at once if it can be, else queued or dropped by the
    /// session's limits.
    #[inline]
    pub(super) fn offer(&mut self, net: &mut Net, slot: u32, delivery: Delivery<Copy>) -> Offered {
        let now_ns = net.now_ns();
        let connection = self.sessions[slot as usize].connection;
        if let Some(conn) = connection {
            let output_bytes = net.output_bytes(conn);
            if output_bytes > self.shared.limits.output_bytes_max {
                // Until the loop says that the output has drained.
                self.output_blocked(net, slot);
            }
            if output_bytes > self.shared.overload.slow_reader_bytes
                && self.sheds(slot, conn, output_bytes, delivery.qos)
            {
                return Offered::DROPPED;
            }
        }
        let session = &mut *self.sessions[slot as usize];
        if session.kept.is_some() || session.lent.is_some() {
            return self.offer_durably(net, slot, delivery);
        }
        let offer = act(&mut self.journal, slot, session, |machine, recorder| {
            machine.offer(now_ns, delivery, recorder)
        });
        self.offered(net, slot, offer)
    }

    /// The same for a durable session: the message gets a place in its queue of the journal. Or for
    /// one in memory whose message may have a place in the queue of a group.
    fn offer_durably(&mut self, net: &mut Net, slot: u32, mut delivery: Delivery<Copy>) -> Offered {
        let now_ns = net.now_ns();
        self.store(now_ns, slot, &mut delivery);
        let (offer, batch) = self.act(slot, |machine, recorder| {
            (machine.offer(now_ns, delivery, recorder), recorder.written())
        });
        Offered { batch, ..self.offered(net, slot, offer) }
    }

    #[inline]
    fn offered(&mut self, net: &mut Net, slot: u32, offer: Offer<Copy>) -> Offered {
        match offer {
            Offer::SendNow(transmit) => {
                if let Some(conn) = self.sessions[slot as usize].connection {
                    self.transmit(net, slot, conn, transmit);
                }
            }
            Offer::Queued => {
                self.queued += 1;
                self.count_places(slot);
                self.count_expired(slot);
            }
            Offer::Dropped(reason) => {
                self.count_drop(slot, reason);
                self.note_dropped_for(slot);
                return Offered::DROPPED;
            }
        }
        Offered::TAKEN
    }

    /// A slow reader is offered a message: whether it is shed.
    #[cold]
    fn sheds(&mut self, slot: u32, conn: ConnId, output_bytes: usize, qos: QoS) -> bool {
        if qos != QoS::AtMostOnce {
            if self.overload.buffers_full {
                self.end_slow_reader(conn);
            }
            return false;
        }
        if !self.overload.buffers_full && output_bytes <= self.overload.shed_above_bytes {
            return false;
        }
        self.stats.dropped_overload_total.increment();
        self.sessions[slot as usize].pressure.get_or_insert_default().shed += 1;
        self.note_dropped_for(slot);
        true
    }

    fn count_drop(&mut self, slot: u32, reason: DropReason) {
        match reason {
            DropReason::Expired => self.count_expired(slot),
            DropReason::Offline => self.stats.dropped_offline_total.increment(),
            DropReason::PacketTooLarge => self.stats.dropped_too_large_total.increment(),
            DropReason::NoCredit => self.stats.dropped_output_full_total.increment(),
            DropReason::QueueFull | DropReason::QueueBytesFull => {
                self.stats.dropped_queue_full_total.increment();
            }
        }
    }

    /// Counts what expired while the session's machine kept it.
    pub(super) fn count_expired(&mut self, slot: u32) {
        let session = &mut *self.sessions[slot as usize];
        let expired = session.machine.counters().dropped(DropReason::Expired);
        if expired != session.expired_counted {
            self.stats.dropped_expired_total.add(expired - session.expired_counted);
            session.expired_counted = expired;
        }
    }

    /// Moves a session's waiting output to its connection, up to the high-water mark.
    pub(super) fn pump(&mut self, net: &mut Net, slot: u32) {
        let now_ns = net.now_ns();
        let committed = self.committed();
        loop {
            let Some(session) = self.sessions.get_mut(slot as usize) else { return };
            let Some(conn) = session.connection else { return };
            if net.output_bytes(conn) > self.shared.limits.output_bytes_max {
                self.output_blocked(net, slot);
                break;
            }
            let next = act(&mut self.journal, slot, session, |machine, recorder| {
                machine.poll_transmit(now_ns, committed, recorder)
            });
            match next {
                Some(transmit) => self.transmit(net, slot, conn, transmit),
                None => break,
            }
        }
        self.count_expired(slot);
        self.count_places(slot);
        if self.sessions[slot as usize].stored > 0 {
            self.load(net, slot);
        }
        if self.sessions[slot as usize].replays.is_some() {
            self.continue_replay(net, slot);
        }
        if !self.sessions[slot as usize].memberships.is_empty() {
            self.update_memberships(net, slot);
        }
    }

    #[inline]
    fn transmit(&mut self, net: &mut Net, slot: u32, conn: ConnId, transmit: Transmit<Copy>) {
        match transmit {
            Transmit::Publish { delivery, packet_id, dup } => {
                self.write_publish(net, slot, conn, &delivery, packet_id, dup);
            }
            Transmit::Ack { kind, packet_id, reason } => {
                self.write_ack(net, slot, conn, kind, Ack::new(packet_id, reason));
            }
            Transmit::PubRel { packet_id, reason } => {
                self.write_ack(net, slot, conn, AckKind::PubRel, Ack::new(packet_id, reason));
            }
        }
    }

    #[inline]
    fn write_ack(&self, net: &mut Net, slot: u32, conn: ConnId, kind: AckKind, ack: Ack<'_>) {
        let version = self.sessions[slot as usize].version;
        self.stats.acks_out_total.increment();
        let encoded = ack.encode(kind, version, net.out(conn).as_vec_mut());
        debug_assert!(encoded.is_ok(), "an acknowledgement without properties is always encodable");
    }

    fn write_publish(
        &mut self,
        net: &mut Net,
        slot: u32,
        conn: ConnId,
        delivery: &Delivery<Copy>,
        packet_id: Option<PacketId>,
        dup: bool,
    ) {
        // Invariant: the machine hands out what is loaded.
        let Body::Here(message) = &delivery.message.message else { return };
        let session = &mut *self.sessions[slot as usize];
        if session.is_particular && session.member.is_some() {
            return self.write_to_bridge(net, slot, conn, delivery, packet_id, dup);
        }
        let mut publish = message.as_publish(net.now_ns());
        publish.qos = delivery.qos;
        publish.retain = delivery.retain;
        publish.dup = dup;
        publish.packet_id = packet_id;
        let v5 = session.version == Version::V5;
        // [MQTT-3.3.4-3], [MQTT-3.3.4-4].
        if v5 && !delivery.subscription_ids.is_empty() {
            self.ids.clear();
            for &id in delivery.subscription_ids.as_slice() {
                // Invariant: the codec accepted this identifier in SUBSCRIBE.
                let pushed = self.ids.push(id);
                debug_assert!(pushed.is_ok(), "a subscription identifier within its range");
            }
            publish.properties.subscription_ids = self.ids.view();
        }
        if session.is_particular && !suit(session, &message.header().topic, &mut publish) {
            // As if it had been delivered [MQTT-3.1.2-25].
            self.stats.dropped_too_large_total.increment();
            self.act(slot, |machine, recorder| machine.abandon(packet_id, recorder));
            return;
        }
        self.stats.publishes_out_total.increment(publish.qos);
        self.stats.payload_bytes_out_total.add(publish.payload.len() as u64);
        if publish.topic.is_empty() {
            self.stats.publishes_aliased_out_total.increment();
        }
        let output = net.out(conn);
        let bytes = output.as_vec_mut();
        if let Some(head) = self.heads.head(message, &publish, session.version) {
            head.append(bytes, dup, publish.retain, publish.qos, packet_id);
        } else {
            let written = publish.encode_head(session.version, bytes);
            debug_assert!(written.is_ok(), "a message taken in can be sent out");
        }
        if publish.payload.len() < BY_REFERENCE_BYTES {
            bytes.extend_from_slice(publish.payload);
        } else {
            output.push_shared(SharedPayload(message.clone()));
        }
    }
}

/// Makes a PUBLISH suit a client that takes topic aliases or has a Maximum Packet Size; false if it
/// is too large for it [MQTT-3.1.2-24].
#[cold]
#[inline(never)]
fn suit(session: &mut Session, topic: &Arc<str>, publish: &mut Publish<'_>) -> bool {
    let plan = session.machine.plan_alias(topic);
    if let AliasOut::Use(alias) = plan {
        publish.topic = "";
        publish.properties.topic_alias = Some(alias);
    }
    if !session.takes(publish) {
        return false;
    }
    if let AliasOut::Define(alias) = plan {
        publish.properties.topic_alias = Some(alias);
        if session.takes(publish) {
            session.machine.define_alias(alias, topic);
        } else {
            publish.properties.topic_alias = None;
        }
    }
    true
}
