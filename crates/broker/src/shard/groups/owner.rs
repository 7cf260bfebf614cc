//! Messages that wait for a member of a shared subscription, at the group's owner.

use std::sync::Arc;

use tacho_session::BatchSeq;
use tacho_topic::{Group, ShardSet, WaitingPlace};

use super::GroupSlot;
use super::{Chosen, needs_credit};
use crate::config::QueuePolicy;
use crate::delivery::ForOne;
use crate::mail::Mail;
use crate::message::Message;
use crate::shard::{Net, Shard};

/// Waiting messages that the owner sends out in one turn.
const RELEASES_MAX: usize = 1_024;

impl Shard {
    /// A message that found no credit, or that follows one without credit.
    pub(in crate::shard) fn queue_for_group(
        &mut self,
        net: &mut Net,
        place: WaitingPlace,
        one: ForOne,
    ) {
        let group = place.group();
        if group.members() == 0 {
            // The last member anywhere has left since.
            drop(place);
            self.settle(net, one.owed, BatchSeq::DONE);
            return;
        }
        let local = self.groups.place(group);
        if self.makes_room_for(net, local, &one.message) {
            let one = self.waits_durably(net, local, one);
            self.groups.at(local).waiting.push(place, one);
        } else {
            drop(place);
            self.stats.dropped_shared_queue_full_total.increment();
            self.settle(net, one.owed, BatchSeq::DONE);
        }
        self.release_waiting(net, local);
    }

    /// Whether a group's queue takes a message, by the policy for full queues; the oldest messages
    /// may have to make room for it.
    fn makes_room_for(&mut self, net: &mut Net, local: GroupSlot, message: &Message) -> bool {
        let limits = self.waiting_limits();
        if self.groups.at(local).waiting.has_room(message, limits) {
            return true;
        }
        self.drop_expired_waiting(net, local);
        let has_room = self.groups.at(local).waiting.has_room(message, limits);
        match self.limits().shared_queue_full {
            QueuePolicy::Refuse => true,
            QueuePolicy::DropOldest if message.size_bytes() as u64 <= limits.bytes_max => {
                while !self.groups.at(local).waiting.has_room(message, limits)
                    && let Some((place, one)) = self.groups.at(local).waiting.pop()
                {
                    drop(place);
                    self.stats.dropped_shared_queue_full_total.increment();
                    self.settle(net, one.owed, BatchSeq::DONE);
                }
                true
            }
            _ => has_room,
        }
    }

    /// Members joined or left, or have room again. Waiting messages are sent, or end with the
    /// group.
    pub(in crate::shard) fn group_changed(&mut self, net: &mut Net, group: &Arc<Group>) {
        let local = self.groups.places.get(group.id());
        if let Some(local) = local {
            self.groups.at(local).owner_is_told = false;
            if group.members() > 0 {
                self.release_waiting(net, local);
                return;
            }
            while let Some((place, one)) = self.groups.at(local).waiting.pop() {
                drop(place);
                self.settle(net, one.owed, BatchSeq::DONE);
            }
            self.note_group_level(net, local);
            self.groups.forget_if_unused(local);
        }
        self.refresh_routes();
        if self.routing.group(group.shared_filter()).is_none() {
            self.forget_group_queue(group);
        }
    }

    /// Sends out waiting messages while members can take them.
    fn release_waiting(&mut self, net: &mut Net, local: GroupSlot) {
        let group = Arc::clone(&self.groups.at(local).group);
        for _ in 0..RELEASES_MAX {
            self.drop_expired_waiting(net, local);
            let Some(message) = self.groups.at(local).waiting.front().cloned() else { break };
            let Some(shard) = self.choose_shard(&group, &message) else { break };
            let reserved = i64::from(needs_credit(self.shared.strategy, &message));
            let chosen = if shard == self.id {
                match self.choose_member(net, local, &message) {
                    Some(chosen) => Some(chosen),
                    None => {
                        // No member here after all: retries with corrected counters.
                        group.credit_changed(shard, reserved);
                        continue;
                    }
                }
            } else {
                None
            };
            let Some((place, one)) = self.groups.at(local).waiting.pop() else { break };
            match chosen {
                None => {
                    self.stats.forwarded_total.increment();
                    net.post(shard, Mail::DeliverWaited(place, one));
                }
                Some(Chosen::Member(member)) => {
                    self.give(net, local, member, one, reserved);
                    drop(place);
                }
                Some(Chosen::TooLarge) => {
                    self.credit_changed(net, local, reserved);
                    self.ask_other_shards(net, &group, one, ShardSet::EMPTY);
                    drop(place);
                }
            }
        }
        if !self.groups.at(local).waiting.is_empty() && self.group_has_room(&group) {
            self.tell_owner(net, local);
        }
        self.note_group_level(net, local);
        self.groups.forget_if_unused(local);
    }

    /// All shards have what they own: publishers learn which queues are full.
    pub(in crate::shard) fn groups_recovered(&mut self, net: &mut Net) {
        for local in self.groups.all() {
            self.note_group_level(net, local);
        }
    }

    /// Whether a member on any shard could take a message of QoS 1 or 2 now.
    pub(in crate::shard) fn group_has_room(&self, group: &Group) -> bool {
        let has_room = |shard| {
            let load = group.load(shard);
            load.connected > 0 && (self.shared.strategy.is_bound() || load.free_credit > 0)
        };
        (0..group.shards()).any(has_room)
    }

    fn drop_expired_waiting(&mut self, net: &mut Net, local: GroupSlot) {
        let now_ns = net.now_ns();
        while self.groups.at(local).waiting.front().is_some_and(|m| m.is_expired(now_ns))
            && let Some((place, one)) = self.groups.at(local).waiting.pop()
        {
            drop(place);
            self.stats.dropped_expired_total.increment();
            self.settle(net, one.owed, BatchSeq::DONE);
        }
    }
}
