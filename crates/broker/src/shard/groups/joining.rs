//! Sessions join shared groups and leave them.
//!
//! A member whose session has ended keeps its entry until the session's subscriptions are removed,
//! a few per turn, but it counts no more: no message goes to it, and a group without other members
//! has ended.

use tacho_topic::{Filter, RouteChange, SharedFilter};

use super::Membership;
use super::memberships::EndedMemberships;
use crate::keys::SessionSlot;
use crate::shard::{Net, Shard};
use crate::subscription::SubscriptionOptions;

/// Memberships whose end costs a unit of a turn's time.
const ENDS_PER_UNIT: usize = 8;

impl Shard {
    /// Makes a session a member, which it is not. The caller applies `changes` to the route map.
    pub(in crate::shard) fn join_group(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        shared: &SharedFilter,
        options: SubscriptionOptions,
        changes: &mut Vec<RouteChange>,
    ) {
        let group = self.shared.routes.group(shared);
        let local = self.groups.place(&group);
        let members = &mut self.groups.at(local).members;
        if members.is_empty() {
            changes
                .push(RouteChange::Add { filter: Filter::Shared(shared.clone()), shard: self.id });
        }
        let membership = Membership { local, member: members.insert(slot, options) };
        self.sessions[slot].memberships.join(membership);
        group.member_joined();
        if self.sessions[slot].journal.is_durable() {
            self.member_is_durable(local, membership.member);
        }
        self.member_came(net, slot, membership);
        self.bind_no_more(slot);
    }

    /// Replaces the options of a session's membership.
    pub(in crate::shard) fn change_membership(
        &mut self,
        slot: SessionSlot,
        shared: &SharedFilter,
        options: SubscriptionOptions,
    ) {
        if let Some(Membership { local, member }) = self.membership(slot, shared) {
            self.groups.at(local).members.get_mut(member).options = options;
        }
    }

    /// The options of a session's membership, if it is a member.
    pub(in crate::shard) fn options_in_group(
        &self,
        slot: SessionSlot,
        shared: &SharedFilter,
    ) -> Option<SubscriptionOptions> {
        let membership = self.membership(slot, shared)?;
        let members = &self.groups.groups[membership.local.index()].members;
        Some(members.get(membership.member).options)
    }

    /// A session unsubscribes. The caller applies `changes` to the route map.
    pub(in crate::shard) fn leave_group(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        shared: &SharedFilter,
        changes: &mut Vec<RouteChange>,
    ) {
        let Some(membership) = self.membership(slot, shared) else { return };
        self.sessions[slot].memberships.leave(membership.local);
        self.note_former_group(slot, membership.local);
        self.member_ended(net, membership);
        self.remove_member(net, membership, changes);
        // For the groups that are left.
        self.bind_again(net, slot);
        self.bind_no_more(slot);
    }

    /// A session has ended: none of its groups counts it any more.
    pub(in crate::shard) fn end_memberships(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
    ) -> EndedMemberships {
        let memberships = std::mem::take(&mut self.sessions[slot].memberships);
        for &membership in memberships.present() {
            self.member_ended(net, membership);
        }
        net.charge(memberships.present().len().div_ceil(ENDS_PER_UNIT) as u32);
        memberships.into_ended()
    }

    /// Removes the entry of a member that counts no more. The caller applies `changes` to the route
    /// map.
    pub(in crate::shard) fn remove_member(
        &mut self,
        net: &mut Net,
        Membership { local, member }: Membership,
        changes: &mut Vec<RouteChange>,
    ) {
        let local_group = self.groups.at(local);
        local_group.members.remove(member);
        if !local_group.members.is_empty() {
            return;
        }
        let group = &local_group.group;
        let (id, filter) = (group.id(), Filter::Shared(group.shared_filter().clone()));
        changes.push(RouteChange::Remove { filter, shard: self.id });
        if let Some(durable) = &self.shared.durable {
            let has_queue = durable.groups.find(id).is_some();
            if group.owner() != self.id
                && let Some(journal) = self.durability.journal()
            {
                journal.forget_group(id);
            }
            if has_queue {
                // It forgets the queue with the group.
                self.tell_owner(net, local);
            }
        }
        self.groups.forget_if_unused(local);
    }

    /// A session connected or disconnected: updates the counters of its groups.
    pub(in crate::shard) fn members_connected(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        connected: bool,
    ) {
        if connected {
            self.bind_no_more(slot);
        } else {
            self.bind_again(net, slot);
        }
        for at in 0..self.sessions[slot].memberships.present().len() {
            let membership = self.sessions[slot].memberships.present()[at];
            if connected {
                self.member_came(net, slot, membership);
            } else {
                self.member_went(membership);
            }
        }
    }

    fn member_came(&mut self, net: &mut Net, slot: SessionSlot, membership: Membership) {
        let Some(standing) = self.standing(net, slot) else { return };
        let window = self.sessions[slot].machine.window() as u32;
        let shard = self.id;
        let local = self.groups.at(membership.local);
        local.members.connect(membership.member, standing, window);
        local.group.member_connected(shard, window, standing.credit);
        if local.group.waiting() > 0 {
            self.tell_owner(net, membership.local);
        }
    }

    fn member_went(&mut self, membership: Membership) {
        let shard = self.id;
        let local = self.groups.at(membership.local);
        if let Some((window, credit)) = local.members.disconnect(membership.member) {
            local.group.member_disconnected(shard, window, credit);
        }
    }

    /// A member counts no more.
    fn member_ended(&mut self, net: &mut Net, membership: Membership) {
        self.member_went(membership);
        let local = self.groups.at(membership.local);
        local.members.get_mut(membership.member).durable = None;
        if local.group.member_left() && local.group.waiting() > 0 {
            self.tell_owner(net, membership.local);
        }
    }

    fn membership(&self, slot: SessionSlot, shared: &SharedFilter) -> Option<Membership> {
        let group = self.shared.routes.find_group(shared)?;
        let local = self.groups.places.get(group.id())?;
        let memberships = self.sessions[slot].memberships.present();
        memberships.iter().find(|membership| membership.local == local).copied()
    }
}
