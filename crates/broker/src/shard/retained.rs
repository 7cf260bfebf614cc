//! Retained messages: the part of the store this shard owns, and replays to new subscriptions.
//!
//! A replay pulls: the subscriber's shard asks each owner for a batch, delivers it as far as the
//! session takes it, then asks for the next. Owners keep no state, so a slow subscriber costs
//! nobody anything. A replay takes half of the connection's output budget and of the session's
//! queue at most, so that live messages find room and nothing retained is dropped for want of it.
//!
//! Exactness against racing publishes: a subscription becomes visible to routing (version V of
//! the route map) before its replay starts. A retained value routed with version >= V reached the
//! subscription live and is not replayed. One routed with an older version may arrive at its owner
//! after the replay passed: owners remember recent replays and send such latecomers on. A value
//! older than one the session has since seen live is skipped.
//!
//! A publisher's acknowledgement leaves after its message is in the owner's mailbox, and requests
//! queue behind it: who subscribes after an acknowledgement gets what was acknowledged.

use std::collections::VecDeque;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_codec::QoS;
use tacho_session::{Delivery, DropReason};
use tacho_topic::{Progress, RetainedCursor, TopicFilter};

use super::publish::effective_qos;
use super::session::{Copy, NO_GROUP, Session};
use super::subscriptions::SubscriptionOptions;
use super::{Net, Shard};
use crate::config::Limits;
use crate::mail::{Mail, ReplayBatch, ReplayRequest};
use crate::message::{Message, Source};

/// Topics an owner looks at per request.
const BATCH_STEPS: usize = 64;
/// A replay asks for more while fewer messages than this wait in the session.
const QUEUE_LOW: usize = 128;
/// How long an owner remembers replays for latecomers. Mail takes microseconds; a second is ages.
const RECENT_NS: u64 = 1_000_000_000;
/// Replays an owner remembers at most; beyond it the oldest is forgotten early.
const RECENT_MAX: usize = 4_096;
/// Topics with live retained messages a session notes during its replays.
const SEEN_MAX: usize = 65_536;

/// The replays of one session.
#[derive(Default)]
pub(crate) struct Replays {
    /// The first is the one in progress.
    waiting: VecDeque<Replay>,
    next_id: u32,
    /// When the last one is finished and no latecomer can come any more; `u64::MAX` before.
    forget_at_ns: u64,
    /// Whether an answer is outstanding.
    asked: bool,
    /// What has arrived of the owners' answers and waits until the session takes it.
    pending: VecDeque<Pending>,
    /// Retained messages that the session got meanwhile by another way, by topic.
    seen: HashMap<Arc<str>, Seen, RandomState>,
}

struct Pending {
    replay: u32,
    message: Message,
    /// It came outside the cursor, which may meet it again.
    late: bool,
}

/// A retained message that the session got while its replays ran.
#[derive(Clone, Copy)]
struct Seen {
    stamp_ns: u64,
    /// The newest replay then. Later ones owe the message again.
    replay: u32,
}

impl Replays {
    /// With no replay in progress they are kept for latecomers only.
    fn forget_if_idle(&mut self, now_ns: u64) {
        if self.pending.is_empty() && self.waiting.iter().all(|r| r.finished_at_ns.is_some()) {
            self.forget_at_ns = now_ns + RECENT_NS;
        }
    }

    /// Lets replays go that are over and for which no latecomer can come.
    fn forget_finished(&mut self, now_ns: u64, shards: usize) {
        let pending = &self.pending;
        // Latecomers exist only where messages travel between shards.
        let patience_ns = if shards == 1 { 0 } else { RECENT_NS };
        self.waiting.retain(|r| {
            r.finished_at_ns.is_none_or(|at| at + patience_ns > now_ns)
                || pending.iter().any(|p| p.replay == r.id)
        });
    }

    fn note(&mut self, message: &Message) {
        if self.seen.len() < SEEN_MAX {
            let header = message.header();
            let seen = Seen { stamp_ns: header.stamp_ns, replay: self.next_id };
            self.seen.insert(Arc::clone(&header.topic), seen);
        }
    }

    /// Whether `replay` has nothing new to tell about the topic.
    fn has_seen(&self, message: &Message, replay: u32) -> bool {
        self.seen.get(message.topic()).is_some_and(|seen| {
            seen.stamp_ns >= message.header().stamp_ns
                && seen.replay.wrapping_sub(replay).cast_signed() >= 0
        })
    }

    /// What has arrived as a delivery, unless nobody wants it any more.
    fn wanted(&self, next: &Pending, receiver: Source) -> Option<Delivery<Copy>> {
        // A replay that is no more was unsubscribed.
        let Replay { id, options, .. } = self.waiting.iter().find(|r| r.id == next.replay)?;
        // [MQTT-3.8.3-3] holds for what was kept too.
        let own = options.no_local && next.message.header().source == receiver;
        (!own && !self.has_seen(&next.message, *id))
            .then(|| replay_delivery(&next.message, options))
    }
}

struct Replay {
    id: u32,
    filter: TopicFilter,
    options: SubscriptionOptions,
    visible_version: u64,
    /// Owners still to ask, the last one first.
    owners: Vec<usize>,
    cursor: RetainedCursor,
    /// Done with its owners, but latecomers are still welcome for a while.
    finished_at_ns: Option<u64>,
}

/// A replay that passed through this owner lately.
pub(crate) struct RecentReplay {
    request: ReplayRequest,
    until_ns: u64,
}

impl Shard {
    /// Stores, replaces or (empty payload) removes the retained message of a topic.
    pub(super) fn retain(&mut self, net: &mut Net, message: Message) {
        self.forward_to_recent_replays(net, &message);
        let topic = message.topic();
        let old = self.retained.get(topic);
        if old.is_some_and(|old| old.header().stamp_ns > message.header().stamp_ns) {
            return;
        }
        let old_bytes = old.map_or(0, |old| old.size_bytes() as u64);
        if message.payload().is_empty() {
            self.retained.remove(topic);
            self.retained_bytes -= old_bytes;
        } else {
            let limits = self.limits();
            let bytes = self.retained_bytes - old_bytes + message.size_bytes() as u64;
            let full = old.is_none() && self.retained.len() >= limits.retained_count_max;
            if full || bytes > limits.retained_bytes_max {
                self.stats.retained_refused_total.increment();
                return;
            }
            self.retained_bytes = bytes;
            let topic = Arc::clone(&message.header().topic);
            self.retained.insert_shared(&topic, message);
        }
        self.stats.retained.set(self.retained.len() as u64);
        self.stats.retained_bytes.set(self.retained_bytes);
    }

    fn forward_to_recent_replays(&mut self, net: &mut Net, message: &Message) {
        let now_ns = net.now_ns();
        while self.recent_replays.front().is_some_and(|r| r.until_ns <= now_ns) {
            self.recent_replays.pop_front();
        }
        for recent in &self.recent_replays {
            let request = &recent.request;
            if message.header().routed_version < request.visible_version
                && tacho_topic::matches(request.filter.as_str(), message.topic())
                && !message.payload().is_empty()
            {
                let batch = ReplayBatch {
                    session: request.session,
                    replay: request.replay,
                    messages: vec![message.clone()],
                    next: None,
                    late: true,
                };
                net.post(request.session.shard.into(), Mail::ReplayBatch(Box::new(batch)));
            }
        }
    }

    /// Owner's side: one batch for a replay elsewhere (or here).
    pub(super) fn replay_requested(&mut self, net: &mut Net, from: usize, request: ReplayRequest) {
        let batch = self.read_batch(net.now_ns(), &request);
        self.remember_replay(net, request);
        if from == self.id {
            self.replay_arrived(net, batch);
        } else {
            net.post(from, Mail::ReplayBatch(Box::new(batch)));
        }
    }

    /// Latecomers exist only where messages travel between shards.
    fn remember_replay(&mut self, net: &Net, request: ReplayRequest) {
        if net.shards() == 1 {
            return;
        }
        let now_ns = net.now_ns();
        let is_same = |r: &RecentReplay| {
            (r.request.session, r.request.replay) == (request.session, request.replay)
        };
        if request.cursor != RetainedCursor::default()
            && let Some(position) = self.recent_replays.iter().rposition(is_same)
        {
            self.recent_replays.remove(position);
        }
        if self.recent_replays.len() >= RECENT_MAX {
            self.recent_replays.pop_front();
        }
        self.recent_replays.push_back(RecentReplay { request, until_ns: now_ns + RECENT_NS });
    }

    fn read_batch(&mut self, now_ns: u64, request: &ReplayRequest) -> ReplayBatch {
        let mut messages = Vec::new();
        let mut expired = Vec::new();
        let mut cursor = request.cursor.clone();
        let found = |_: &str, message: &Message| {
            if message.is_expired(now_ns) {
                expired.push(Arc::clone(&message.header().topic));
            } else if message.header().routed_version < request.visible_version {
                messages.push(message.clone());
            }
        };
        let progress = self.retained.next(&request.filter, &mut cursor, BATCH_STEPS, found);
        for topic in expired {
            if let Some(old) = self.retained.remove(&topic) {
                self.retained_bytes -= old.size_bytes() as u64;
            }
        }
        self.stats.retained.set(self.retained.len() as u64);
        self.stats.retained_bytes.set(self.retained_bytes);
        let (session, replay) = (request.session, request.replay);
        let next = (progress == Progress::More).then_some(cursor);
        ReplayBatch { session, replay, messages, next, late: false }
    }

    /// Subscriber's side: a subscription, now visible to routing, wants what is retained.
    pub(super) fn start_replay(
        &mut self,
        net: &mut Net,
        slot: u32,
        filter: TopicFilter,
        options: SubscriptionOptions,
    ) {
        let owners = if filter.is_exact() {
            vec![self.retained_owner(filter.as_str(), net.shards())]
        } else {
            (0..net.shards()).collect()
        };
        let visible_version = self.snapshot.version();
        let replays = self.sessions[slot as usize].replays.get_or_insert_default();
        replays.next_id = replays.next_id.wrapping_add(1);
        replays.forget_at_ns = u64::MAX;
        let id = replays.next_id;
        // A new subscription of the same filter starts over.
        replays.waiting.retain(|r| r.filter != filter || r.finished_at_ns.is_some());
        replays.waiting.push_back(Replay {
            id,
            filter,
            options,
            visible_version,
            owners,
            cursor: RetainedCursor::default(),
            finished_at_ns: None,
        });
        self.continue_replay(net, slot);
    }

    /// Asks for the next batch if the session has room for it.
    pub(super) fn continue_replay(&mut self, net: &mut Net, slot: u32) {
        let session = self.session_ref(slot);
        loop {
            if !self.deliver_pending(net, slot) {
                return;
            }
            let entry = &mut *self.sessions[slot as usize];
            let Some(replays) = entry.replays.as_deref_mut() else { return };
            if net.now_ns() >= replays.forget_at_ns {
                entry.replays = None;
                return;
            }
            if entry.connection.is_none() || replays.asked {
                return;
            }
            let Some(replay) = replays.waiting.iter().find(|r| r.finished_at_ns.is_none()) else {
                return;
            };
            let Some(&owner) = replay.owners.last() else { return };
            let request = ReplayRequest {
                session,
                replay: replay.id,
                filter: replay.filter.clone(),
                cursor: replay.cursor.clone(),
                visible_version: replay.visible_version,
            };
            // Through the mailbox also on this shard: behind the retained messages of other shards
            // that wait in it, whose publishers may have their acknowledgement already.
            if net.shards() > 1 {
                replays.asked = true;
                net.post(owner, Mail::ReplayRequest(Box::new(request)));
                return;
            }
            let batch = self.read_batch(net.now_ns(), &request);
            self.remember_replay(net, request);
            self.take_batch(net, slot, &batch);
        }
    }

    pub(super) fn replay_arrived(&mut self, net: &mut Net, batch: ReplayBatch) {
        let Some(slot) = self.resolve(batch.session) else { return };
        if !batch.late
            && let Some(replays) = self.sessions[slot as usize].replays.as_deref_mut()
        {
            replays.asked = false;
        }
        self.take_batch(net, slot, &batch);
        self.continue_replay(net, slot);
    }

    fn take_batch(&mut self, net: &mut Net, slot: u32, batch: &ReplayBatch) {
        let now_ns = net.now_ns();
        let Some(replays) = self.sessions[slot as usize].replays.as_deref_mut() else { return };
        let Some(replay) = replays.waiting.iter_mut().find(|r| r.id == batch.replay) else {
            return;
        };
        if !batch.late {
            match &batch.next {
                Some(cursor) => replay.cursor.clone_from(cursor),
                None => {
                    replay.owners.pop();
                    replay.cursor = RetainedCursor::default();
                }
            }
            if replay.owners.is_empty() {
                replay.finished_at_ns = Some(now_ns);
            }
        }
        let pending = |message: &Message| Pending {
            replay: batch.replay,
            message: message.clone(),
            late: batch.late,
        };
        replays.pending.extend(batch.messages.iter().map(pending));
        replays.forget_at_ns = u64::MAX;
        replays.forget_finished(now_ns, net.shards());
    }

    /// Delivers what has arrived as far as the session takes it; true if nothing is left of it.
    fn deliver_pending(&mut self, net: &mut Net, slot: u32) -> bool {
        loop {
            let entry = &mut *self.sessions[slot as usize];
            let Some(replays) = entry.replays.as_deref_mut() else { return true };
            let Some(next) = replays.pending.front() else {
                if replays.forget_at_ns == u64::MAX {
                    replays.forget_if_idle(net.now_ns());
                }
                return true;
            };
            let delivery = replays.wanted(next, entry.source);
            if let Some(delivery) = &delivery
                && !has_room(net, &self.shared.limits, entry, delivery)
            {
                return false;
            }
            let Some(replays) = entry.replays.as_deref_mut() else { return true };
            let was_late = replays.pending.pop_front().is_some_and(|next| next.late);
            if let Some(delivery) = delivery {
                if was_late {
                    replays.note(&delivery.message.message);
                }
                self.offer(net, slot, delivery);
            }
        }
    }

    /// The filter is subscribed to again without a new replay: one still under way goes on with the
    /// new options [MQTT-3.8.4-3].
    pub(super) fn change_replay(
        &mut self,
        slot: u32,
        filter: &TopicFilter,
        options: SubscriptionOptions,
    ) {
        if let Some(replays) = self.sessions[slot as usize].replays.as_deref_mut() {
            replays.waiting.iter_mut().filter(|r| r.filter == *filter).for_each(|replay| {
                replay.options = options;
            });
        }
    }

    /// A filter was unsubscribed: what its replay has not delivered is not wanted any more.
    pub(super) fn cancel_replay(&mut self, net: &Net, slot: u32, filter: &TopicFilter) {
        if let Some(replays) = self.sessions[slot as usize].replays.as_deref_mut() {
            replays.waiting.retain(|r| r.filter != *filter);
            replays.forget_if_idle(net.now_ns());
        }
    }

    /// The session starts anew. The replays' numbers go on, so that answers still on their way
    /// are not taken for answers to new ones.
    pub(super) fn cancel_all_replays(&mut self, net: &Net, slot: u32) {
        if let Some(replays) = self.sessions[slot as usize].replays.as_deref_mut() {
            replays.waiting.clear();
            replays.pending.clear();
            replays.forget_if_idle(net.now_ns());
        }
    }

    /// Notes a retained message that a session gets live while its replays run.
    pub(super) fn note_live_retained(&mut self, slot: u32, message: &Message) {
        if let Some(replays) = self.sessions[slot as usize].replays.as_deref_mut() {
            replays.note(message);
        }
    }
}

/// Whether a replay may give the session this message now. If not, an acknowledgement or the
/// output's draining brings it back here.
fn has_room(net: &mut Net, limits: &Limits, session: &Session, delivery: &Delivery<Copy>) -> bool {
    let Some(conn) = session.connection else { return false };
    if net.output_bytes(conn) > limits.output_bytes_max / 2 {
        net.await_drained(conn);
        return false;
    }
    let queue_low = QUEUE_LOW.min(limits.session_queue_len_max as usize / 2);
    let waits = delivery.qos != QoS::AtMostOnce
        && (session.machine.queue_len() > queue_low
            || session.machine.queue_bytes() > limits.session_queue_bytes_max / 2);
    let refusal = session.machine.refusal(net.now_ns(), delivery);
    !waits && matches!(refusal, None | Some(DropReason::Expired))
}

fn replay_delivery(message: &Message, options: &SubscriptionOptions) -> Delivery<Copy> {
    Delivery {
        qos: effective_qos(message.header().qos, options.qos),
        retain: true, // As those who ask for what was kept are told (3.3.1.3).
        subscription_ids: options.id_list(),
        size_bytes: message.size_bytes() as u32,
        expires_at_ns: message.header().expires_at_ns,
        message: Copy { message: message.clone(), group: NO_GROUP },
    }
}
