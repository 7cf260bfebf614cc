//! Shared subscriptions of an earlier start of the broker: members and their waiting messages.

use std::sync::Arc;

use tacho_topic::Group;

use super::Membership;
use crate::delivery::GroupRef;
use crate::keys::SessionSlot;
use crate::shard::Shard;
use crate::subscription::SubscriptionOptions;

impl Shard {
    /// Makes a disconnected session a member.
    pub(in crate::shard) fn restore_member(
        &mut self,
        group: &Arc<Group>,
        slot: SessionSlot,
        options: SubscriptionOptions,
    ) {
        let local = self.groups.place(group);
        let member = self.groups.at(local).members.insert(slot, options);
        group.member_joined();
        self.member_is_durable(local, member);
        self.sessions[slot].memberships.join(Membership { local, member });
    }

    /// Whether a session is a member of a group.
    pub(in crate::shard) fn is_member(&self, slot: SessionSlot, group: GroupRef) -> bool {
        let memberships = self.sessions[slot].memberships.present();
        let local = self.groups.places.get(group.0);
        local.is_some_and(|local| memberships.iter().any(|m| m.local == local))
    }
}
