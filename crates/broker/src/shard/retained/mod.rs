//! Retained messages: the part of the store this shard owns, and replays to new subscriptions.
//!
//! A replay pulls: the subscriber's shard asks each owner for a batch, delivers it as far as the
//! session takes it, then asks for the next. Owners keep no state, so a slow subscriber has no
//! effect on other clients; they answer within a budget of topics per turn. A replay takes half of
//! the connection's output budget and of the session's queue at most, so that live messages find
//! room and no retained message is dropped for lack of it.
//!
//! A message published with RETAIN gets a version before it is routed: a gapless number per owner.
//! The newest version of a topic wins at its owner, in any order of arrival.
//!
//! Exactness against racing publishes: a subscription becomes visible to routing (version V of
//! the route map) before its shard reads the newest retained version, and a publisher reads the
//! map after it took its version. So every retained message either was routed with V or later and
//! arrived live, or is not newer than that version. An owner answers once all versions up to it
//! have arrived, and omits messages routed with V or later; earlier ones do not reach the
//! subscription live, even if they arrive (`Target::since`). Messages older than one that the
//! session has since received live are skipped.

mod replays;
mod store;
mod totals;
mod versions;

use std::collections::VecDeque;
use std::sync::Arc;

use tacho_codec::QoS;
use tacho_net::ConnId;
use tacho_session::{Delivery, DropReason};
use tacho_topic::{RetainedCursor, TopicFilter};

use crate::config::Limits;
use crate::delivery::{Body, Copy, NO_GROUP};
use crate::keys::SessionSlot;
use crate::mail::{Mail, ReplayBatch, ReplayRequest};
use crate::message::Message;
use crate::shard::durability::Machine;
use crate::shard::timers::{DeadlineTimer, TimerToken};
use crate::shard::{Net, Shard};
use crate::stats::ShardStats;
use crate::subscription::SubscriptionOptions;
use crate::subscription::effective_qos;
use replays::Wanted;
use store::Outcome;

pub(super) use replays::SessionReplays;
use store::RetainedStore;
use totals::RetainedCounts;
pub(crate) use totals::RetainedTotals;
pub(crate) use versions::RetainedVersions;

/// A replay asks for more while fewer messages than this wait in the session.
const QUEUE_LOW: usize = 128;
/// Expired messages removed between two looks at what is left of the turn.
const EXPIRE_MAX: usize = 32;
/// Least time between two passes.
const EXPIRE_EVERY_NS: u64 = 1_000_000_000;
const NEXT_TURN_NS: u64 = 1;
/// What answering a request costs, and looking at topics for it.
const REQUEST_UNITS: u32 = 2;
const STEPS_PER_UNIT: usize = 4;

/// An unanswered request for retained messages, with the shard that sent it.
struct OpenRequest {
    from: usize,
    request: ReplayRequest,
}

/// Owns the retained messages of the topics that this shard owns, and the requests for them.
pub(super) struct Retained {
    store: RetainedStore,
    /// Fires at the next expiry or later.
    timer: DeadlineTimer,
    open_requests: VecDeque<OpenRequest>,
}

impl Retained {
    pub(super) fn new(totals: Arc<RetainedTotals>, stats: Arc<ShardStats>) -> Self {
        let store = RetainedStore::new(RetainedCounts::new(totals, stats));
        Self { store, timer: DeadlineTimer::default(), open_requests: VecDeque::new() }
    }

    /// The retained message of a topic that this shard owns.
    pub(super) fn get(&self, topic: &str) -> Option<&Message> {
        self.store.get(topic)
    }

    /// Up to `len_max` messages whose topics match, and where to continue, if there may be more.
    pub(super) fn read(
        &self,
        len_max: usize,
        place: (&TopicFilter, RetainedCursor),
        now_ns: u64,
        budget: &mut usize,
    ) -> (Vec<Message>, Option<RetainedCursor>) {
        self.store.read_up_to(len_max, place, u64::MAX, now_ns, budget)
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.store.len()
    }

    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.store.bytes()
    }
}

/// The owner's side.
impl Shard {
    /// Takes a version for a message. The message must be routed with the map as read after this
    /// call, and must reach its owner.
    pub(super) fn take_retained_version(&mut self, net: &Net, topic: &str) -> u64 {
        let owner = self.retained_owner(topic, net.shards());
        let version = self.shared.retained_versions.take(owner, topic);
        self.refresh_routes();
        version
    }

    /// Stores, replaces or (empty payload) removes the retained message of a topic.
    pub(super) fn retain(&mut self, net: &mut Net, message: Message) {
        let topic = Arc::clone(&message.header().topic);
        let version = message.header().retained_version;
        let outcome = self.retained.store.arrive(message);
        if outcome == Outcome::Refused {
            self.stats.retained_refused_total.increment();
            self.record_no_retained(&topic, version);
        }
        if let Some(deadline_ns) = self.retained.store.next_expiry_ns() {
            self.arm_retained_timer(net, deadline_ns);
        }
    }

    /// Restores the retained messages of an earlier start of the broker.
    pub(super) fn restore_retained(&mut self, messages: Vec<Message>) {
        if !messages.is_empty() {
            self.shared.retained_versions.restored(self.id);
        }
        for message in messages {
            self.retained.store.restore(message);
        }
    }

    /// Starts the expiry of retained messages.
    pub(super) fn retained_recovered(&mut self, net: &mut Net) {
        if let Some(deadline_ns) = self.retained.store.next_expiry_ns() {
            self.arm_retained_timer(net, deadline_ns);
        }
    }

    fn arm_retained_timer(&mut self, net: &mut Net, deadline_ns: u64) {
        self.retained.timer.arm(net, deadline_ns, EXPIRE_EVERY_NS, TimerToken::Retained);
    }

    /// Frees expired messages, as long as the turn lasts.
    pub(super) fn expire_retained(&mut self, net: &mut Net) {
        self.retained.timer.fired();
        let now_ns = net.now_ns();
        let (mut has_time, mut is_over) = (true, false);
        while has_time && !is_over {
            let expired = self.retained.store.expire(now_ns, EXPIRE_MAX);
            is_over = expired.len() < EXPIRE_MAX;
            has_time = net.charge(expired.len() as u32);
            self.stats.retained_expired_total.add(expired.len() as u64);
            for (topic, version) in expired {
                self.record_no_retained(&topic, version);
            }
        }
        if let Some(expiry_ns) = self.retained.store.next_expiry_ns() {
            let pause_ns = if is_over { EXPIRE_EVERY_NS } else { NEXT_TURN_NS };
            self.arm_retained_timer(net, expiry_ns.max(now_ns + pause_ns));
        }
    }

    pub(super) fn replay_requested(&mut self, from: usize, request: ReplayRequest) {
        self.retained.open_requests.push_back(OpenRequest { from, request });
    }

    /// Answers requests, in turns and within the turn's budget. True if there is more to do.
    pub(super) fn answer_replays(&mut self, net: &mut Net) -> bool {
        let mut budget = self.limits().retained_steps_per_turn_max;
        // All requests wait for messages that have not arrived; their arrival wakes this shard.
        let (mut early, mut has_time) = (0, true);
        while early < self.retained.open_requests.len()
            && let Some(open) = self.retained.open_requests.pop_front()
        {
            if !self.retained.store.has_arrived(open.request.after) {
                self.retained.open_requests.push_back(open);
                early += 1;
                continue;
            }
            if budget == 0 || !has_time {
                self.retained.open_requests.push_front(open);
                return true;
            }
            early = 0;
            let steps_left = budget;
            let OpenRequest { from, request } = open;
            let ReplayRequest { session, replay, filter, cursor, visible_version, .. } = request;
            let now_ns = net.now_ns();
            let (messages, next) =
                self.retained.store.read(&filter, cursor, visible_version, now_ns, &mut budget);
            has_time = net.charge(REQUEST_UNITS + ((steps_left - budget) / STEPS_PER_UNIT) as u32);
            let batch = ReplayBatch { session, replay, messages, next };
            if from == self.id {
                self.replay_arrived(net, batch);
            } else {
                net.post(from, Mail::ReplayBatch(Box::new(batch)));
            }
        }
        false
    }
}

/// The subscriber's side.
impl Shard {
    /// A subscription, now visible to routing, wants the retained messages: they are requested when
    /// the replays [continue](Self::continue_replay).
    pub(super) fn start_replay(
        &mut self,
        net: &Net,
        slot: SessionSlot,
        filter: TopicFilter,
        options: SubscriptionOptions,
    ) {
        let all = if filter.is_exact() {
            let owner = self.retained_owner(filter.as_str(), net.shards());
            owner..owner + 1
        } else {
            0..net.shards()
        };
        let owners = self.shared.retained_versions.owners_to_ask(all, &filter);
        if owners.is_empty() {
            return;
        }
        let visible_version = self.routing.version();
        let replays = self.sessions[slot].replays.0.get_or_insert_default();
        replays.start(filter, options, visible_version, owners);
    }

    /// Delivers the messages that have arrived, and requests the next batch once the session took
    /// all.
    pub(super) fn continue_replay(&mut self, net: &mut Net, slot: SessionSlot) {
        if !self.deliver_pending(net, slot) {
            return;
        }
        let session = self.sessions.reference(self.id, slot);
        let entry = &mut self.sessions[slot];
        let may_ask = entry.connection().is_some() && !entry.request.is_under_way();
        let Some(replays) = entry.replays.0.as_deref_mut() else { return };
        if replays.is_over() {
            entry.replays.0 = None;
            return;
        }
        if !may_ask {
            return; // SUBACK comes before what it announces.
        }
        let Some(wanted) = replays.ask() else { return };
        let Wanted { owner, replay, filter, cursor, visible_version } = wanted;
        let after = owner.after;
        let request = ReplayRequest { session, replay, filter, cursor, visible_version, after };
        // Uses the mailbox also on this shard, to queue behind the retained messages in it.
        net.post(owner.shard, Mail::ReplayRequest(Box::new(request)));
    }

    pub(super) fn replay_arrived(&mut self, net: &mut Net, batch: ReplayBatch) {
        let Some(slot) = self.sessions.resolve(batch.session) else { return };
        if let Some(replays) = self.sessions[slot].replays.0.as_deref_mut() {
            replays.answered(batch.replay, batch.messages, batch.next);
        }
        self.continue_replay(net, slot);
    }

    /// Delivers arrived messages as far as the session takes them; true if none are left.
    fn deliver_pending(&mut self, net: &mut Net, slot: SessionSlot) -> bool {
        loop {
            let entry = &mut self.sessions[slot];
            let source = entry.source();
            let Some(replays) = entry.replays.0.as_deref_mut() else { return true };
            replays.skip_own(source);
            let Some((message, options)) = replays.front() else { return true };
            let mut delivery = replay_delivery(message, options);
            let Some(conn) = entry.connection() else { return false };
            if !has_room(net, &self.shared.limits, conn, &entry.machine, &delivery) {
                return false;
            }
            if entry.journal.is_durable()
                && let Body::Here(message) = &mut delivery.message.message
            {
                // A newer message may be retained meanwhile, and the record of this one removed.
                *message = message.copied();
            }
            if let Some(replays) = entry.replays.0.as_deref_mut() {
                replays.pop_front();
            }
            self.offer(net, slot, delivery);
            net.charge(1);
        }
    }

    /// The filter is subscribed to again without a new replay: an unfinished replay continues with
    /// the new options [MQTT-3.8.4-3].
    pub(super) fn change_replay(
        &mut self,
        slot: SessionSlot,
        filter: &TopicFilter,
        options: SubscriptionOptions,
    ) {
        if let Some(replays) = self.sessions[slot].replays.0.as_deref_mut() {
            replays.change(filter, options);
        }
    }

    /// A filter was unsubscribed: drops the undelivered messages of its replay.
    pub(super) fn cancel_replay(&mut self, slot: SessionSlot, filter: &TopicFilter) {
        if let Some(replays) = self.sessions[slot].replays.0.as_deref_mut() {
            replays.cancel(filter);
        }
    }

    /// Records a retained message that a session receives live during its replays.
    #[inline]
    pub(super) fn note_live_retained(&mut self, net: &Net, slot: SessionSlot, message: &Message) {
        if self.sessions[slot].replays.0.is_some() {
            let owner = self.retained_owner(message.topic(), net.shards());
            if let Some(replays) = self.sessions[slot].replays.0.as_deref_mut() {
                replays.note(message, owner);
            }
        }
    }
}

/// Whether a replay may give the session this message now. If not, an acknowledgement or drained
/// output resumes the replay.
fn has_room(
    net: &mut Net,
    limits: &Limits,
    conn: ConnId,
    machine: &Machine,
    delivery: &Delivery<Copy>,
) -> bool {
    if net.output_bytes(conn) > limits.output_bytes_max / 2 {
        net.await_drained(conn);
        return false;
    }
    let queue_low = QUEUE_LOW.min(limits.session_queue_len_max as usize / 2);
    let waits = delivery.qos != QoS::AtMostOnce
        && (machine.queue_len() > queue_low
            || machine.queue_bytes() > limits.session_queue_bytes_max / 2);
    let refusal = machine.refusal(net.now_ns(), delivery);
    !waits && matches!(refusal, None | Some(DropReason::Expired))
}

fn replay_delivery(message: &Message, options: &SubscriptionOptions) -> Delivery<Copy> {
    Delivery {
        qos: effective_qos(message.header().qos, options.qos),
        retain: true, // Stored before the subscription was made (3.3.1.3).
        subscription_ids: options.id_list(),
        size_bytes: message.size_bytes() as u32,
        expires_at_ns: message.header().expires_at_ns,
        message: Copy { message: Body::Here(message.clone()), group: NO_GROUP },
    }
}

#[cfg(test)]
mod tests;
