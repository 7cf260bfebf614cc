//! Fan-out: one message to the sessions of this shard that want it, and to shared groups if they
//! are many.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use tacho_session::{BatchSeq, Delivery};
use tacho_topic::Group;

use crate::delivery::{Body, Copy, ForOne, NO_GROUP, Owed, Receipt};
use crate::message::Message;
use crate::shard::durability::Acknowledge;
use crate::shard::permission::may_receive;
use crate::shard::{Net, Shard};
use crate::subscription::{Scope, Target, effective_qos};

/// A fan-out looks at no more unfinished ones than this to see whether it may overtake them.
const OVERTAKEN_MAX: usize = 16;
/// A message for no more sessions than this is delivered at once; one for more is a long fan-out.
const AT_ONCE_MAX: usize = 64;
/// Between two looks at what is left of the turn.
const TARGETS_PER_LOOK: usize = 32;
/// What a message for a group costs.
const GROUP_UNITS: u32 = 2;
/// Long fan-outs run ahead of the writes to their receivers by so much: while their output waits,
/// more messages leave with one write. Bytes per shard at least, and bytes per connection.
const AHEAD_BYTES_MIN: usize = 4 * 1024 * 1024;
const AHEAD_BYTES_PER_CONNECTION: usize = 320;

/// What follows once all receivers have a message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Completion {
    /// Its publisher is acknowledged.
    pub(super) acknowledge: Option<Acknowledge>,
    /// It is a part of a message's distribution, which has ended.
    pub(super) receipt: Option<Receipt>,
    /// The last of what was written for it: both wait for its commit.
    pub(super) batch: BatchSeq,
}

impl Completion {
    /// Neither journal nor distribution has to do with the message.
    #[inline]
    pub(super) fn acknowledges(acknowledge: Option<Acknowledge>) -> Self {
        Self { acknowledge, receipt: None, batch: BatchSeq::DONE }
    }
}

/// A message and how far its fan-out has come.
#[derive(Debug)]
pub(crate) struct FanOut {
    message: Message,
    targets: Rc<[Target]>,
    position: usize,
    /// Shared groups that were too many for one event; they come before the targets.
    groups: GroupList,
    groups_position: usize,
    completion: Completion,
    /// The newest session when the targets were matched. A later one may have got the slot of a
    /// target that ended meanwhile.
    newest_session: u32,
}

impl FanOut {
    /// How many of its receivers have it.
    fn done(&self) -> usize {
        self.position + self.groups_position
    }

    fn has_groups_left(&self) -> bool {
        self.groups_position < len_of(self.groups.as_ref())
    }
}

/// Shared groups that a message goes to.
pub(super) type GroupList = Option<Rc<[Arc<Group>]>>;

fn len_of(groups: Option<&Rc<[Arc<Group>]>>) -> usize {
    groups.map_or(0, |groups| groups.len())
}

impl Shard {
    /// Delivers a message to these sessions, and to these groups where they come later: at once,
    /// unless they are many or more than what is left of the turn, or it must not overtake an
    /// unfinished one. Then it waits, so that order never breaks.
    #[inline]
    pub(super) fn fan_out(
        &mut self,
        net: &mut Net,
        message: Message,
        targets: Rc<[Target]>,
        groups: GroupList,
        completion: Completion,
    ) {
        if groups.is_none() && self.finishes_now(&message, targets.len()) {
            return self.deliver_at_once(net, &message, &targets, completion);
        }
        let newest_session = self.sessions.newest_generation();
        self.delivery.fan_outs.push_back(FanOut {
            message,
            targets,
            position: 0,
            groups,
            groups_position: 0,
            completion,
            newest_session,
        });
    }

    /// Delivers to few targets.
    #[inline]
    fn deliver_at_once(
        &mut self,
        net: &mut Net,
        message: &Message,
        targets: &[Target],
        mut completion: Completion,
    ) {
        self.delivery.left_this_turn = self.delivery.left_this_turn.saturating_sub(targets.len());
        if targets.len() > 1 {
            self.delivery.heads.begin(message);
        }
        for target in targets {
            let batch = self.deliver_to_target(net, message, target);
            completion.batch = completion.batch.max(batch);
        }
        if targets.len() > 1 {
            self.delivery.heads.end();
        }
        net.charge(targets.len() as u32);
        self.complete(net, completion);
    }

    /// All receivers have a message.
    #[inline]
    fn complete(&mut self, net: &mut Net, completion: Completion) {
        if let Some(publisher) = completion.acknowledge
            && self.is_session(publisher)
        {
            self.accept_from(publisher, completion.batch);
        }
        if let Some(receipt) = completion.receipt {
            self.part_ended(net, receipt, completion.batch);
        }
    }

    /// Splits the groups of a message: those that get it at once, and those that wait in its
    /// fan-out because they are many, or because it must not overtake others or what members left
    /// behind.
    #[inline]
    pub(super) fn at_once_or_later(
        &self,
        groups: GroupList,
        message: &Message,
    ) -> (GroupList, GroupList) {
        let is_next = len_of(groups.as_ref()) <= AT_ONCE_MAX && !self.is_redistributing();
        if groups.is_none() || (is_next && self.may_overtake(message)) {
            (groups, None)
        } else {
            (None, groups)
        }
    }

    /// Whether a message that is fanned out now reaches all its targets in this turn.
    ///
    /// One that is for a single session costs less to deliver, journal and all, than to note as not
    /// yet distributed: where there is a journal it does not wait for the next turn.
    #[inline]
    pub(in crate::shard) fn finishes_now(&self, message: &Message, targets_len: usize) -> bool {
        let left = self.delivery.left_this_turn.max(usize::from(self.durability.has_journal()));
        targets_len <= left.min(AT_ONCE_MAX) && self.may_overtake(message)
    }

    /// Whether a message needs not wait for the unfinished fan-outs: all have other topics and
    /// other publishers. So order holds by topic [MQTT-4.6.0-6] and acknowledgements leave in the
    /// order of a client's publishes [MQTT-4.6.0-2], but one message to very many receivers costs
    /// other clients no more than a turn.
    #[inline]
    fn may_overtake(&self, message: &Message) -> bool {
        self.delivery.fan_outs.is_empty() || self.is_unrelated(message)
    }

    #[cold]
    fn is_unrelated(&self, message: &Message) -> bool {
        let header = message.header();
        self.delivery.fan_outs.len() <= OVERTAKEN_MAX
            && self.delivery.fan_outs.iter().all(|unfinished| {
                let other = unfinished.message.header();
                other.source != header.source && other.topic != header.topic
            })
    }

    /// Goes on with the unfinished fan-outs, first in first out, within the turn's budget, and as
    /// far ahead of the writes as they may be.
    pub(in crate::shard) fn continue_fan_outs(&mut self, net: &mut Net) {
        let mut budget = self.limits().deliveries_per_turn_max;
        self.delivery.left_this_turn = budget;
        while budget > 0
            && !net.budget().is_spent()
            && !self.is_far_ahead(net)
            && !self.must_redistribute_first()
            && let Some(mut fan_out) = self.delivery.fan_outs.pop_front()
        {
            let before = fan_out.done();
            let publisher = fan_out.completion.acknowledge;
            if !self.advance(net, &mut fan_out, budget) {
                self.delivery.fan_outs.push_front(fan_out);
                return;
            }
            // An empty fan-out costs a little too.
            budget = budget.saturating_sub((fan_out.done() - before).max(1));
            if let Some(publisher) = publisher
                && self.is_session(publisher)
            {
                self.pump(net, publisher.slot);
            }
        }
        if self.delivery.fan_outs.is_empty() && self.delivery.fan_outs.capacity() > 1024 {
            self.delivery.fan_outs = VecDeque::new();
        }
    }

    /// Whether the next fan-out has groups, and what members left behind is not with others yet.
    fn must_redistribute_first(&self) -> bool {
        self.is_redistributing()
            && self.delivery.fan_outs.front().is_some_and(FanOut::has_groups_left)
    }

    /// Whether so much output of long fan-outs waits to be written that more must not be added.
    fn is_far_ahead(&self, net: &Net) -> bool {
        let connections_bytes = net.connections() * AHEAD_BYTES_PER_CONNECTION;
        let share = self.shared.memory.buffers_max / (8 * net.shards() as u64);
        let ahead_bytes_max = AHEAD_BYTES_MIN.max(connections_bytes).min(share as usize);
        net.later_bytes() > ahead_bytes_max
    }

    /// Delivers to up to `count` more targets, as long as the turn lasts or, if they are few, in
    /// any case; true when none is left.
    fn advance(&mut self, net: &mut Net, fan_out: &mut FanOut, count: usize) -> bool {
        let Some(count) = self.advance_groups(net, fan_out, count) else { return false };
        let len = fan_out.targets.len();
        let end = len.min(fan_out.position.saturating_add(count));
        if end - fan_out.position > 1 {
            self.delivery.heads.begin(&fan_out.message);
        }
        self.delivery.may_wait = len > AT_ONCE_MAX;
        while fan_out.position < end {
            let stop = end.min(fan_out.position + TARGETS_PER_LOOK);
            let piece = fan_out.position..stop;
            for target in &fan_out.targets[piece.clone()] {
                if !self.is_newer(target, fan_out.newest_session) {
                    let batch = self.deliver_to_target(net, &fan_out.message, target);
                    fan_out.completion.batch = fan_out.completion.batch.max(batch);
                }
            }
            fan_out.position = stop;
            let has_time = net.charge(piece.len() as u32);
            if len > AT_ONCE_MAX && (!has_time || self.is_far_ahead(net)) {
                break;
            }
        }
        self.delivery.may_wait = false;
        self.delivery.heads.end();
        if fan_out.position < len {
            return false;
        }
        self.complete(net, fan_out.completion);
        true
    }

    /// Routes to up to `count` more groups, as long as the turn lasts. Returns how many targets may
    /// follow; `None` if groups are left.
    #[inline]
    fn advance_groups(
        &mut self,
        net: &mut Net,
        fan_out: &mut FanOut,
        count: usize,
    ) -> Option<usize> {
        match &fan_out.groups {
            None => Some(count),
            Some(groups) => {
                let groups = Rc::clone(groups);
                self.route_to_more(net, fan_out, &groups, count)
            }
        }
    }

    #[cold]
    fn route_to_more(
        &mut self,
        net: &mut Net,
        fan_out: &mut FanOut,
        groups: &[Arc<Group>],
        count: usize,
    ) -> Option<usize> {
        let end = groups.len().min(fan_out.groups_position.saturating_add(count));
        let left = count - (end - fan_out.groups_position);
        while fan_out.groups_position < end {
            let group = &groups[fan_out.groups_position];
            fan_out.groups_position += 1;
            let owed = match fan_out.completion.receipt {
                Some(own) => self.owed_of_distribution(group, own, &fan_out.message),
                None => Owed::Nothing,
            };
            let message = fan_out.message.clone();
            self.route_to_group(net, group, ForOne { message, owed });
            if !net.charge(GROUP_UNITS) {
                break;
            }
        }
        (fan_out.groups_position == groups.len() && !net.budget().is_spent()).then_some(left)
    }

    /// Whether the target's slot has a session that did not exist when the targets were matched.
    fn is_newer(&self, target: &Target, newest_session: u32) -> bool {
        let session = self.sessions.get(target.session);
        session.is_some_and(|session| {
            session.generation().wrapping_sub(newest_session).cast_signed() > 0
        })
    }

    #[inline]
    fn deliver_to_target(&mut self, net: &mut Net, message: &Message, target: &Target) -> BatchSeq {
        let Some(session) = self.sessions.get(target.session) else { return BatchSeq::DONE };
        if !may_receive(target, session.source(), message.header()) {
            return BatchSeq::DONE;
        }
        match target.scope {
            Scope::Bridge => self.deliver_to_bridge(net, target, message),
            _ => self.deliver_to(net, target, message),
        }
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
}
