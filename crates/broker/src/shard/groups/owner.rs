//! Messages that wait for a member of a shared subscription, at the group's owner.

use std::sync::Arc;

use tacho_session::BatchSeq;
use tacho_topic::{Group, ShardSet, WaitingPlace};

use super::GroupSlot;
use super::waiting::WaitingLimits;
use super::{Chosen, needs_credit};
use crate::delivery::ForOne;
use crate::mail::Mail;
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
        self.refresh_routes();
        let group = place.group();
        if self.routing.group(group.shared_filter()).is_none() {
            // The last member anywhere has unsubscribed since.
            drop(place);
            self.settle(net, one.owed, BatchSeq::DONE);
            return;
        }
        let limits = WaitingLimits {
            len_max: self.limits().shared_queue_len_max,
            bytes_max: self.limits().shared_queue_bytes_max,
        };
        let local = self.groups.place(group);
        if !self.groups.at(local).waiting.has_room(&one.message, limits) {
            self.drop_expired_waiting(net, local);
        }
        if self.groups.at(local).waiting.has_room(&one.message, limits) {
            let one = self.waits_durably(net, local, one);
            self.groups.at(local).waiting.push(place, one);
        } else {
            drop(place);
            self.stats.dropped_shared_queue_full_total.increment();
            self.settle(net, one.owed, BatchSeq::DONE);
        }
        self.release_waiting(net, local);
    }

    /// Members joined or left, or have room again. Waiting messages are sent, or end with the
    /// group.
    pub(in crate::shard) fn group_changed(&mut self, net: &mut Net, group: &Arc<Group>) {
        let Some(&local) = self.groups.by_id.get(&group.id()) else { return };
        self.groups.at(local).owner_is_told = false;
        self.refresh_routes();
        if self.routing.group(group.shared_filter()).is_none() {
            while let Some((place, one)) = self.groups.at(local).waiting.pop() {
                drop(place);
                self.settle(net, one.owed, BatchSeq::DONE);
            }
            self.forget_group_queue(group);
            self.groups.forget_if_unused(local);
            return;
        }
        self.release_waiting(net, local);
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
        self.groups.forget_if_unused(local);
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
