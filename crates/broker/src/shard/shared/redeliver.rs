//! What a member that left had not got goes to the others, in its order.
//!
//! When the connection ends, that is what was not sent yet. What was sent stays with the session,
//! which repeats it when it resumes [MQTT-4.4.0-1]: QoS 2 must, and QoS 1 would come twice. When
//! the session ends, unacknowledged QoS 1 goes to the others too; QoS 2 that was sent does not
//! [MQTT-4.8.2-5].

use std::sync::Arc;

use tacho_session::Delivery;
use tacho_topic::Group;

use crate::message::Message;
use crate::shard::session::{Copy, NO_GROUP};
use crate::shard::{Net, Shard};

impl Shard {
    /// A member's connection has ended, its session has not.
    pub(in crate::shard) fn pass_on_unsent(&mut self, net: &mut Net, slot: u32) {
        let session = &mut self.sessions[slot as usize];
        if session.memberships.is_empty() || session.machine.queue_len() == 0 {
            return;
        }
        let unsent = session.machine.take_queued(|copy| copy.group != NO_GROUP);
        let unsent = self.of_groups(unsent);
        self.redistribute(net, unsent);
    }

    /// What a session that ends had not been able to deliver for its groups. To be called while
    /// the session still is a member: leaving may let go of the groups.
    pub(in crate::shard) fn take_undelivered_of_groups(
        &mut self,
        slot: u32,
    ) -> Vec<(Arc<Group>, Message)> {
        let undelivered = self.sessions[slot as usize].machine.take_undelivered();
        self.of_groups(undelivered)
    }

    fn of_groups(&self, deliveries: Vec<Delivery<Copy>>) -> Vec<(Arc<Group>, Message)> {
        let with_group = |delivery: Delivery<Copy>| {
            let Copy { message, group } = delivery.message;
            let &local = self.groups.by_id.get(&group.0)?;
            Some((Arc::clone(&self.groups.groups[local as usize].group), message))
        };
        deliveries.into_iter().filter_map(with_group).collect()
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
