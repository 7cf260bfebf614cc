//! What holds at every moment, and what must have come at the end.
//!
//! A moment is the end of a turn of any shard. Each shard has a policy at each moment: it counts
//! those that came to it by mail. In a turn the one before or the new one may have been asked.

use std::ops::RangeInclusive;

use tacho_codec::{QoS, ReasonCode};

use super::client::Content;
use super::policy::{Policy, Right, TOPICS};

pub(super) type Moment = u64;

/// A message as its publisher knows it.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) publisher: usize,
    pub(super) topic: usize,
    pub(super) qos: QoS,
    pub(super) retain: bool,
    pub(super) sent: Moment,
    /// PUBACK came then, with this reason.
    pub(super) done: Option<(Moment, ReasonCode)>,
    /// Of a will: its connection ended then, if it has.
    pub(super) will: Option<Option<Moment>>,
}

impl Message {
    pub(super) fn content(&self, number: usize) -> Content {
        let Self { topic, qos, retain, .. } = *self;
        Content { number, topic, qos, retain }
    }
}

/// The policies of one shard.
#[derive(Default)]
pub(super) struct ShardView {
    /// Policies, by number, since when.
    since: Vec<(Moment, usize)>,
    /// All output of the shard had left then.
    pub(super) drained: Moment,
}

impl ShardView {
    /// Whether it is another one than before.
    pub(super) fn note(&mut self, now: Moment, policy: usize) -> bool {
        let is_new = self.since.last().is_none_or(|(_, known)| *known != policy);
        if is_new {
            self.since.push((now, policy));
        }
        is_new
    }

    /// Those that were in force between two moments.
    pub(super) fn between(&self, from: Moment, to: Moment) -> RangeInclusive<usize> {
        let at = |moment: Moment| {
            let begun = self.since.partition_point(|(since, _)| *since <= moment);
            self.since[begun.max(1) - 1].1
        };
        at(from)..=at(to)
    }
}

/// All policies that there were, in order.
#[derive(Default)]
pub(super) struct Judge {
    pub(super) policies: Vec<Policy>,
    pub(super) shards: Vec<ShardView>,
}

/// A client, as far as rules ask.
#[derive(Clone, Copy, Debug)]
pub(super) struct Who {
    pub(super) user: usize,
    /// That has its session.
    pub(super) shard: usize,
}

impl Judge {
    pub(super) fn policies(
        &self,
        shard: usize,
        from: Moment,
        to: Moment,
    ) -> impl Iterator<Item = &Policy> {
        self.policies[self.shards[shard].between(from, to)].iter()
    }

    /// Whether a client may have received a topic in the turn that ends now.
    pub(super) fn may_receive(&self, who: Who, topic: usize, sent: Moment, now: Moment) -> bool {
        let from = self.shards[who.shard].drained.max(sent);
        let mut policies = self.policies(who.shard, from, now);
        policies.any(|policy| policy.allows(who.user, Right::Receive, TOPICS[topic]))
    }

    /// Whether a client may have published a message between two moments.
    pub(super) fn may_publish(&self, who: Who, topic: usize, from: Moment, to: Moment) -> bool {
        let mut policies = self.policies(who.shard, from, to);
        policies.any(|policy| policy.allows(who.user, Right::Publish, TOPICS[topic]))
    }

    /// Whether a client may receive a topic by all policies since then.
    pub(super) fn must_receive(&self, who: Who, topic: usize, since: Moment, now: Moment) -> bool {
        let mut policies = self.policies(who.shard, since, now);
        policies.all(|policy| policy.allows(who.user, Right::Receive, TOPICS[topic]))
    }

    /// Whether all policies since then grant a filter.
    pub(super) fn must_have(&self, who: Who, filter: usize, since: Moment, now: Moment) -> bool {
        self.policies(who.shard, since, now).all(|policy| policy.covers(who.user, filter))
    }

    /// Whether any policy of that time grants a filter, and whether any does not.
    pub(super) fn grants(&self, who: Who, filter: usize, from: Moment, to: Moment) -> [bool; 2] {
        let covers = |policy: &Policy| policy.covers(who.user, filter);
        [
            self.policies(who.shard, from, to).any(covers),
            self.policies(who.shard, from, to).any(|policy| !covers(policy)),
        ]
    }
}
