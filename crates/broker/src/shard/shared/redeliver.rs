//! What a member that left had not got goes to the others, in its order.
//!
//! When the connection ends, that is what was not sent yet. What was sent stays with the session,
//! which repeats it when it resumes [MQTT-4.4.0-1]: QoS 2 must, and QoS 1 would come twice. When
//! the session ends, unacknowledged QoS 1 goes to the others too; QoS 2 that was sent does not
//! [MQTT-4.8.2-5].

use std::sync::Arc;

use tacho_session::{Delivery, InMemory};
use tacho_topic::Group;

use super::{LeftGroups, LocalGroups};
use crate::message::Message;
use crate::shard::session::{Body, Copy};
use crate::shard::{Net, Shard};

impl Shard {
    /// A member's connection has ended, its session has not.
    pub(in crate::shard) fn pass_on_unsent(&mut self, net: &mut Net, slot: u32) {
        let session = &self.sessions[slot as usize];
        let no_groups = session.memberships.is_empty() && session.left_groups.is_none();
        if no_groups || session.machine.queue_len() == 0 {
            return;
        }
        self.refresh_routes();
        let (groups, routes) = (&self.groups, &self.snapshot);
        let session = &mut *self.sessions[slot as usize];
        let left = session.left_groups.as_deref();
        // What nobody else would get stays with the client that it was kept for.
        let goes = |copy: &Copy| {
            let group = groups.find(copy.group, left);
            group.is_some_and(|group| routes.group(group.shared_filter()).is_some())
        };
        let unsent = session.machine.take_queued(goes, &mut InMemory);
        let unsent = of_groups(groups, left, unsent);
        self.redistribute(net, unsent);
    }

    /// What a session that ends had not been able to deliver for its groups. To be called while
    /// the session still is a member: leaving may let go of the groups.
    pub(in crate::shard) fn take_undelivered_of_groups(
        &mut self,
        slot: u32,
    ) -> Vec<(Arc<Group>, Message)> {
        let session = &mut *self.sessions[slot as usize];
        let left = session.left_groups.take();
        let undelivered = session.machine.take_undelivered(&mut InMemory);
        of_groups(&self.groups, left.as_deref(), undelivered)
    }

    /// Gives what a member left to others.
    pub(in crate::shard) fn redistribute(
        &mut self,
        net: &mut Net,
        left: Vec<(Arc<Group>, Message)>,
    ) {
        self.stats.shared_redelivered_total.add(left.len() as u64);
        for (group, message) in left {
            self.route_to_group(net, &group, message);
        }
    }
}

fn of_groups(
    groups: &LocalGroups,
    left: Option<&LeftGroups>,
    deliveries: Vec<Delivery<Copy>>,
) -> Vec<(Arc<Group>, Message)> {
    let with_group = |delivery: Delivery<Copy>| {
        let Copy { message: Body::Here(message), group } = delivery.message else { return None };
        Some((Arc::clone(groups.find(group, left)?), message))
    };
    deliveries.into_iter().filter_map(with_group).collect()
}
