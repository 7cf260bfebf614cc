//! Full queues of shared subscriptions: publishers keep what would have to wait there.
//!
//! The queue at the group's owner counts, and, with strategies that bind messages to a member, the
//! queue of each connected member. The group itself carries the count to all shards.

use tacho_topic::FullQueue;

use super::GroupSlot;
use super::waiting::{WaitingLevel, WaitingLimits};
use crate::config::QueuePolicy;
use crate::keys::SessionSlot;
use crate::shard::last_told::LastTold;
use crate::shard::{Net, Shard};

/// Between two log lines about the same full group.
const TOLD_AGAIN_NS: u64 = 60_000_000_000;

/// Whether the queue of a group is full, at its owner.
#[derive(Debug, Default)]
pub(super) struct GroupFullness {
    /// Present while it is.
    full: Option<FullQueue>,
    /// When the log last said so.
    told: LastTold,
}

impl Shard {
    pub(super) fn waiting_limits(&self) -> WaitingLimits {
        WaitingLimits {
            len_max: self.limits().shared_queue_len_max,
            bytes_max: self.limits().shared_queue_bytes_max,
        }
    }

    /// The queue of a group has become longer or shorter.
    pub(super) fn note_group_level(&mut self, net: &mut Net, local: GroupSlot) {
        if self.limits().shared_queue_full != QueuePolicy::Refuse {
            return;
        }
        let limits = self.waiting_limits();
        let entry = &mut self.groups.groups[local.index()];
        match (entry.waiting.level(limits), entry.fullness.full.is_some()) {
            (WaitingLevel::Full, false) => {
                entry.fullness.full = Some(entry.group.full_queue());
                self.shared.room.queue_filled();
                self.stats.shared_full.increment();
                self.tell_group_full(net, local);
            }
            (WaitingLevel::Room, true) => {
                entry.fullness.full = None;
                self.shared.room.queue_has_room();
                self.stats.shared_full.decrement();
                self.tell_room(net);
            }
            _ => {}
        }
    }

    /// One log line for a group that stops publishers, at most once a minute.
    fn tell_group_full(&mut self, net: &Net, local: GroupSlot) {
        let now_ns = net.now_ns();
        let entry = &mut self.groups.groups[local.index()];
        if !entry.fullness.told.may_tell(now_ns, TOLD_AGAIN_NS) {
            return;
        }
        let subscription = entry.group.shared_filter().to_string();
        let messages = entry.waiting.len();
        tracing::warn!(
            shard = self.id,
            subscription,
            messages,
            "the queue of the shared subscription is full, since its members do not keep up: \
             publishers to it are refused or held back"
        );
    }

    /// A session is full, or has joined a group, or is connected again: messages that would be
    /// bound to it have to be kept by their publishers.
    pub(in crate::shard) fn bind_no_more(&mut self, slot: SessionSlot) {
        let session = &mut self.sessions[slot];
        let is_full = session.is_full() && session.connection().is_some();
        if !is_full || !self.shared.strategy.is_bound() {
            return;
        }
        let groups = &self.groups.groups;
        let groups = session.memberships.present().iter().map(|m| &groups[m.local.index()].group);
        let full: Box<[FullQueue]> = groups.map(|group| group.full_queue()).collect();
        session.memberships.set_full(full);
    }

    /// A session has room again, or no connection: messages may be bound to it, or to others.
    pub(in crate::shard) fn bind_again(&mut self, net: &mut Net, slot: SessionSlot) {
        let full = self.sessions[slot].memberships.take_full();
        if !full.is_empty() {
            drop(full);
            self.tell_room(net);
        }
    }
}
