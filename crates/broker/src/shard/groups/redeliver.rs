//! Redelivery: undelivered messages of a member that left go to other members, in order.
//!
//! When the connection ends, these are its unsent messages. Sent messages stay with the session,
//! which retransmits them when it resumes [MQTT-4.4.0-1]: QoS 2 must, and QoS 1 would arrive twice.
//! When the session ends, unacknowledged QoS 1 messages go to other members too; sent QoS 2
//! messages do not [MQTT-4.8.2-5].

use std::collections::VecDeque;
use std::sync::Arc;

use tacho_codec::{PacketId, QoS};
use tacho_session::{BatchSeq, Delivery};
use tacho_topic::Group;

use super::FormerGroups;
use crate::delivery::Place;
use crate::delivery::{Body, Copy, NO_GROUP};
use crate::delivery::{ForOne, Owed};
use crate::keys::SessionSlot;
use crate::shard::{Net, Shard};

/// Messages of a member that left which others get at once.
const AT_ONCE_MAX: usize = 64;
/// What one costs.
const LEFT_UNITS: u32 = 2;

/// An undelivered message of a member that left.
pub(in crate::shard) struct Left {
    group: Option<Arc<Group>>,
    body: Body,
    /// Its place in the group's queue, if it is in the journal.
    place: Option<Place>,
}

impl Shard {
    /// A member's connection has ended; its session continues.
    pub(in crate::shard) fn pass_on_unsent(&mut self, net: &mut Net, slot: SessionSlot) {
        if self.is_of_no_group(slot) || self.sessions[slot].machine.queue_len() == 0 {
            return;
        }
        let groups = &self.groups;
        let session = &mut self.sessions[slot];
        let former_groups = session.memberships.take_former();
        let left = former_groups.as_ref();
        // Messages of a group without other members stay with this client.
        let goes =
            |copy: &Copy| groups.find(copy.group, left).is_some_and(|group| group.members() > 0);
        let (unsent, places) = self.durability.act(slot, session.subject(), |machine, recorder| {
            (machine.take_queued(goes, recorder), recorder.take_places())
        });
        if let Some(former_groups) = former_groups {
            session.memberships.set_former(former_groups);
        }
        let unsent = self.of_groups(slot, None, unsent, places);
        self.redistribute(net, unsent);
    }

    /// Collects the undelivered group messages of an ending session. Must be called while the
    /// session is still a member: leaving may release the groups.
    pub(in crate::shard) fn take_undelivered_of_groups(&mut self, slot: SessionSlot) -> Vec<Left> {
        if self.is_of_no_group(slot) {
            return Vec::new(); // However long its queue is.
        }
        let session = &mut self.sessions[slot];
        let left = session.memberships.take_former();
        let (undelivered, places) =
            self.durability.act(slot, session.subject(), |machine, recorder| {
                (machine.take_undelivered(recorder), recorder.take_places())
            });
        self.of_groups(slot, left.as_ref(), undelivered, places)
    }

    /// A member may not have a message any more that was about to be sent to it. Another one gets
    /// it in a later turn: this one is a member until its subscriptions are swept.
    #[cold]
    pub(in crate::shard) fn pass_on_withheld(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        packet_id: PacketId,
    ) {
        let session = &mut self.sessions[slot];
        let (withheld, places) =
            self.durability.act(slot, session.subject(), |machine, recorder| {
                (machine.give_back(packet_id, recorder), recorder.take_places())
            });
        let left = self.of_groups(slot, None, withheld.into_iter().collect(), places);
        self.queue_left(left);
        net.turn_again();
    }

    /// Whether no message of a session is a shared group's.
    fn is_of_no_group(&self, slot: SessionSlot) -> bool {
        let memberships = &self.sessions[slot].memberships;
        memberships.is_empty() && memberships.former().is_none()
    }

    /// Whether messages of members that left are on their way to others: newer ones for groups
    /// wait behind them.
    #[inline]
    pub(in crate::shard) fn is_redistributing(&self) -> bool {
        !self.groups.left.is_empty()
    }

    /// Gives a member's undelivered messages to others, behind those of members that left before:
    /// a few at once, the others in later turns.
    pub(in crate::shard) fn redistribute(&mut self, net: &mut Net, left: Vec<Left>) {
        self.queue_left(left);
        self.redistribute_more(net, AT_ONCE_MAX);
        if self.is_redistributing() {
            net.turn_again();
        }
    }

    /// Messages for others wait behind those of members that left before.
    fn queue_left(&mut self, left: Vec<Left>) {
        self.stats.shared_redelivered_total.add(left.len() as u64);
        self.groups.left.extend(left);
    }

    /// Goes on with the messages of members that left, as long as the turn lasts. True if there are
    /// more.
    #[inline]
    pub(in crate::shard) fn continue_redistribution(&mut self, net: &mut Net) -> bool {
        if !self.is_redistributing() {
            return false;
        }
        net.begin_work();
        // Those that a member gives back meanwhile wait for the next turn: until its subscriptions
        // are swept it would be given them again and again.
        self.redistribute_more(net, self.groups.left.len());
        self.is_redistributing()
    }

    fn redistribute_more(&mut self, net: &mut Net, count: usize) {
        for _ in 0..count {
            let Some(left) = self.groups.left.pop_front() else { break };
            self.redistribute_one(net, left);
            if !net.charge(LEFT_UNITS) {
                break;
            }
        }
        if self.groups.left.is_empty() {
            self.groups.left = VecDeque::new();
        }
    }

    fn redistribute_one(&mut self, net: &mut Net, Left { group, body, place }: Left) {
        let owed = place.map_or(Owed::Nothing, Owed::Place);
        // Without its group no other session may get the message.
        let Some(group) = group else { return self.settle(net, owed, BatchSeq::DONE) };
        match (body, place) {
            (Body::Here(message), _) => {
                self.route_to_group(net, &group, ForOne { message, owed });
            }
            (Body::Stored(id), Some(place)) => self.load_for_group(net, &group, id, place),
            (Body::Stored(_), None) => {}
        }
    }

    /// The messages of shared subscriptions, with their groups if still known. In the journal they
    /// move to the groups' queues, unless `places` already has their places there.
    fn of_groups(
        &mut self,
        slot: SessionSlot,
        left: Option<&FormerGroups>,
        deliveries: Vec<Delivery<Copy>>,
        places: Vec<Option<Place>>,
    ) -> Vec<Left> {
        let is_durable = self.sessions[slot].journal.is_durable();
        let mut of_groups = Vec::new();
        let places = places.into_iter().chain(std::iter::repeat(None));
        for (delivery, place) in deliveries.into_iter().zip(places) {
            let Copy { message: body, group } = delivery.message.clone();
            if group == NO_GROUP {
                continue;
            }
            let left = left.or_else(|| self.sessions[slot].memberships.former());
            let group = self.groups.find(group, left).map(Arc::clone);
            let is_journaled = is_durable && delivery.qos != QoS::AtMostOnce;
            let place = match &group {
                Some(group) if is_journaled => self.requeue_durably(group, delivery),
                _ => place,
            };
            of_groups.push(Left { group, body, place });
        }
        of_groups
    }
}
