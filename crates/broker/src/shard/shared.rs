//! Shared subscriptions: this shard's members of each group, and the queue of groups it owns.
//!
//! The publishing shard picks a shard by the group's shared counters, that shard picks the member.
//! With nobody connected the message waits at the group's owner shard, bounded.

use std::collections::VecDeque;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use slab::Slab;
use tacho_codec::QoS;
use tacho_session::Delivery;
use tacho_topic::{Filter, Group, SharedFilter};

use super::publish::effective_qos;
use super::session::{Copy, GroupRef};
use super::subscriptions::SubscriptionOptions;
use super::{Net, Shard};
use crate::mail::Mail;
use crate::message::Message;

/// The groups this shard has to do with, as member or as owner.
#[derive(Default)]
pub(crate) struct LocalGroups {
    by_name: HashMap<SharedFilter, u32, RandomState>,
    groups: Slab<LocalGroup>,
    next_id: u32,
}

struct LocalGroup {
    /// Tells it from the groups that had its slot before.
    id: u32,
    group: Arc<Group>,
    members: Vec<Member>,
    /// Where the next search for a member starts, so that equals take turns.
    next: usize,
    /// Used by the owner while no member is connected anywhere.
    queue: VecDeque<Message>,
}

#[derive(Clone, Copy)]
struct Member {
    session: u32,
    options: SubscriptionOptions,
}

impl LocalGroups {
    fn slot(&mut self, group: &Arc<Group>) -> usize {
        if let Some(&slot) = self.by_name.get(group.shared_filter()) {
            return slot as usize;
        }
        self.next_id = self.next_id.wrapping_add(1);
        let slot = self.groups.insert(LocalGroup {
            id: self.next_id,
            group: Arc::clone(group),
            members: Vec::new(),
            next: 0,
            queue: VecDeque::new(),
        });
        self.by_name.insert(group.shared_filter().clone(), slot as u32);
        slot
    }

    #[cfg(feature = "sim")]
    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    #[cfg(feature = "sim")]
    pub(super) fn queue_lens(&self) -> impl Iterator<Item = usize> {
        self.groups.iter().map(|(_, group)| group.queue.len())
    }

    fn forget_if_unused(&mut self, slot: usize) {
        if self.groups.get(slot).is_some_and(|g| g.members.is_empty() && g.queue.is_empty()) {
            let group = self.groups.remove(slot);
            self.by_name.remove(group.group.shared_filter());
        }
    }
}

impl Shard {
    /// Makes a session a member, or replaces the options of its membership.
    pub(super) fn join_group(
        &mut self,
        net: &mut Net,
        slot: u32,
        shared: &SharedFilter,
        options: SubscriptionOptions,
    ) {
        let known = self.groups.by_name.get(shared).copied();
        let local = match known.filter(|&l| !self.groups.groups[l as usize].members.is_empty()) {
            Some(local) => local as usize,
            None => {
                // The shard's first member: the map learns of it and says which group that is.
                let filter = Filter::Shared(shared.clone());
                let Some(group) = self.shared.routes.add(&filter, self.id) else { return };
                self.groups.slot(&group)
            }
        };
        let group = &mut self.groups.groups[local];
        if let Some(member) = group.members.iter_mut().find(|m| m.session == slot) {
            member.options = options;
            return;
        }
        group.members.push(Member { session: slot, options });
        let group = Arc::clone(&group.group);
        if self.sessions[slot as usize].connection.is_some() {
            group.member_connected(self.id, 0);
            self.tell_owner(net, &group);
        }
    }

    pub(super) fn leave_group(&mut self, net: &mut Net, slot: u32, shared: &SharedFilter) {
        let Some(&local) = self.groups.by_name.get(shared) else { return };
        let local_group = &mut self.groups.groups[local as usize];
        let Some(position) = local_group.members.iter().position(|m| m.session == slot) else {
            return;
        };
        local_group.members.remove(position);
        let group = Arc::clone(&local_group.group);
        if self.sessions[slot as usize].connection.is_some() {
            group.member_disconnected(self.id, 0, 0);
        }
        if self.groups.groups[local as usize].members.is_empty() {
            self.shared.routes.remove(&Filter::Shared(shared.clone()), self.id);
            self.tell_owner(net, &group);
        }
        self.groups.forget_if_unused(local as usize);
    }

    /// A session's connection came or went: its groups' counters follow.
    pub(super) fn members_connected(&mut self, net: &mut Net, slot: u32, connected: bool) {
        let session = &self.sessions[slot as usize];
        let mut groups = Vec::new();
        for filter in session.subscriptions.values() {
            if let Filter::Shared(shared) = filter
                && let Some(&local) = self.groups.by_name.get(shared)
            {
                groups.push(Arc::clone(&self.groups.groups[local as usize].group));
            }
        }
        for group in groups {
            if connected {
                group.member_connected(self.id, 0);
                self.tell_owner(net, &group);
            } else {
                group.member_disconnected(self.id, 0, 0);
            }
        }
    }

    fn tell_owner(&mut self, net: &mut Net, group: &Arc<Group>) {
        let owner = group.owner();
        if owner == self.id {
            self.group_changed(net, group);
        } else {
            net.post(owner, Mail::GroupChanged(Arc::clone(group)));
        }
    }

    /// Owner's side: members came or went. Waiting messages go out, or end with the group.
    pub(super) fn group_changed(&mut self, net: &mut Net, group: &Arc<Group>) {
        let Some(&local) = self.groups.by_name.get(group.shared_filter()) else { return };
        let queue = &mut self.groups.groups[local as usize].queue;
        if self.shared.routes.snapshot().group(group.shared_filter()).is_none() {
            // The last member anywhere has unsubscribed.
            queue.clear();
            self.groups.forget_if_unused(local as usize);
            return;
        }
        if group.pick_shard(self.id).is_none() {
            return;
        }
        for message in std::mem::take(queue) {
            self.route_to_group(net, group, message);
        }
        self.groups.forget_if_unused(local as usize);
    }

    pub(super) fn route_to_groups(
        &mut self,
        net: &mut Net,
        groups: &[Arc<Group>],
        message: &Message,
    ) {
        for group in groups {
            self.route_to_group(net, group, message.clone());
        }
    }

    fn route_to_group(&mut self, net: &mut Net, group: &Arc<Group>, message: Message) {
        let shard = match group.pick_shard(self.id) {
            Some(shard) => shard,
            None => group.owner(),
        };
        if shard == self.id {
            self.deliver_to_member(net, group, message);
        } else {
            self.stats.forwarded_total.increment();
            net.post(shard, Mail::DeliverShared(Arc::clone(group), message));
        }
    }

    /// Delivers to the least busy connected member here, passes on, or waits.
    pub(super) fn deliver_to_member(
        &mut self,
        net: &mut Net,
        group: &Arc<Group>,
        message: Message,
    ) {
        let local = self.groups.slot(group);
        if let Some(member) = self.pick_member(local) {
            let group = GroupRef { slot: local as u32, id: self.groups.groups[local].id };
            let delivery = shared_delivery(message, member.options, group);
            self.offer(net, member.session, delivery);
            return;
        }
        match group.pick_shard(self.id) {
            Some(shard) if shard != self.id => {
                net.post(shard, Mail::DeliverShared(Arc::clone(group), message));
            }
            _ => {
                let owner = group.owner();
                if owner == self.id {
                    self.wait_for_member(local, message);
                } else {
                    net.post(owner, Mail::DeliverShared(Arc::clone(group), message));
                }
            }
        }
        self.groups.forget_if_unused(local);
    }

    fn pick_member(&mut self, local: usize) -> Option<Member> {
        let group = &mut self.groups.groups[local];
        let count = group.members.len();
        let mut best: Option<(usize, usize)> = None;
        for step in 0..count {
            let position = (group.next + step) % count;
            let session = &self.sessions[group.members[position].session as usize];
            if session.connection.is_none() {
                continue;
            }
            let busy = session.machine.inflight_len() + session.machine.queue_len();
            if best.is_none_or(|(least, _)| busy < least) {
                best = Some((busy, position));
            }
            if busy == 0 {
                break;
            }
        }
        let (_, position) = best?;
        group.next = (position + 1) % count;
        Some(group.members[position])
    }

    fn wait_for_member(&mut self, local: usize, message: Message) {
        let limit = self.limits().shared_queue_len_max;
        let group = &mut self.groups.groups[local];
        if message.header().qos == QoS::AtMostOnce {
            self.stats.dropped_offline_total.increment();
        } else if group.queue.len() >= limit {
            self.stats.dropped_shared_queue_full_total.increment();
        } else {
            group.queue.push_back(message);
        }
    }

    /// What a session that ends had not been able to deliver for its groups. To be called while
    /// the session still is a member: leaving may free the groups' slots.
    pub(super) fn take_undelivered_of_groups(&mut self, slot: u32) -> Vec<(Arc<Group>, Message)> {
        let undelivered = self.sessions[slot as usize].machine.take_undelivered();
        let of_group = |delivery: Delivery<Copy>| {
            let Copy { message, group } = delivery.message;
            let local = self.groups.groups.get(group.slot as usize);
            local.filter(|l| l.id == group.id).map(|l| (Arc::clone(&l.group), message))
        };
        undelivered.into_iter().filter_map(of_group).collect()
    }

    /// Gives what an ended session left to other members.
    pub(super) fn redistribute(&mut self, net: &mut Net, left: Vec<(Arc<Group>, Message)>) {
        for (group, message) in left {
            self.route_to_group(net, &group, message);
        }
    }
}

fn shared_delivery(
    message: Message,
    options: SubscriptionOptions,
    group: GroupRef,
) -> Delivery<Copy> {
    Delivery {
        qos: effective_qos(message.header().qos, options.qos),
        retain: message.header().retain && options.retain_as_published,
        subscription_ids: options.id_list(),
        size_bytes: message.size_bytes() as u32,
        expires_at_ns: message.header().expires_at_ns,
        message: Copy { message, group },
    }
}
