//! Shared subscriptions with durable members: the journal holds their waiting messages.
//!
//! Each group has a journal queue, named by the group's key, in which messages have a place while
//! no member can take them. A group whose members all live in memory has no queue and costs the
//! journal nothing.

use std::sync::Arc;

use tacho_codec::QoS;
use tacho_journal::{QueueId, Record, Urgency};
use tacho_session::{BatchSeq, Delivery, SubscriptionIdList};
use tacho_topic::Group;

use super::GroupSlot;
use super::members::MemberIndex;
use crate::delivery::Place;
use crate::delivery::{Body, Copy, NO_GROUP};
use crate::delivery::{ForOne, Owed};
use crate::durable::entry::EntryStage;
use crate::durable::keys;
use crate::keys::SessionSlot;
use crate::message::Message;
use crate::shard::{Net, Shard};

impl Shard {
    /// A durable session has become a member: from now on what waits is kept.
    pub(super) fn member_is_durable(&mut self, local: GroupSlot, member: MemberIndex) {
        let local = &mut self.groups.groups[local.index()];
        let group = &local.group;
        local.members.get_mut(member).durable = Some(group.durable_member());
        if let (Some(durable), Some(journal)) = (&self.shared.durable, self.durability.journal()) {
            // In one batch with the subscription: recovery finds both or neither.
            journal.group_queue(group, durable);
        }
    }

    /// The message in the form for a durable member: the journaled one, or a new one.
    pub(super) fn for_durable_member(message: Message, owed: Owed) -> Message {
        if owed.is_kept() { message } else { message.copied() }
    }

    /// A message starts to wait: with durable members it gets a place in the group's queue, and its
    /// previous place is released.
    pub(super) fn waits_durably(&mut self, net: &mut Net, local: GroupSlot, one: ForOne) -> ForOne {
        let local = &mut self.groups.groups[local.index()];
        let (Some(durable), Some(journal)) = (&self.shared.durable, self.durability.journal())
        else {
            return one;
        };
        if local.group.durable_members() == 0 && !one.owed.is_kept() {
            return one;
        }
        let ForOne { message, owed } = one;
        let message = Self::for_durable_member(message, owed);
        let place = journal.place_in_group(&local.group, durable);
        let header = message.header();
        let delivery = Delivery {
            qos: header.qos,
            retain: header.retain,
            subscription_ids: SubscriptionIdList::NONE,
            size_bytes: message.size_bytes() as u32,
            expires_at_ns: header.expires_at_ns,
            message: Copy { message: Body::Here(message.clone()), group: NO_GROUP },
        };
        let batch = journal.enter(place, &delivery, EntryStage::Queued, Urgency::Forces);
        self.settle(net, owed, batch);
        ForOne { message, owed: Owed::Place(place) }
    }

    /// A member in memory gets a message: with durable members it has a place in the group's queue
    /// until that member is done with it.
    pub(super) fn hand_off_if_durable(
        &mut self,
        net: &mut Net,
        local: GroupSlot,
        slot: SessionSlot,
        one: ForOne,
    ) -> ForOne {
        let is_qos0 = one.message.header().qos == QoS::AtMostOnce;
        let lasts = self.groups.groups[local.index()].group.durable_members() > 0;
        let one = match one.owed {
            Owed::Place(_) => one,
            _ if is_qos0 || !lasts => return one,
            _ => self.waits_durably(net, local, one),
        };
        if let Owed::Place(place) = one.owed {
            self.hand_off(slot, place);
        }
        one
    }

    /// The member has taken both the message and its place, or neither.
    pub(super) fn settle_hand_off(&mut self, net: &mut Net, slot: SessionSlot, owed: Owed) {
        match owed {
            Owed::Place(_) => {
                let place = self.take_back_offer(slot);
                self.settle(net, place.map_or(Owed::Nothing, Owed::Place), BatchSeq::DONE);
            }
            owed => self.settle(net, owed, BatchSeq::DONE),
        }
    }

    /// A durable member has left a message of the group: the message moves from the member's queue
    /// to the group's in one batch. `None` if the group has ended.
    pub(super) fn requeue_durably(
        &mut self,
        group: &Group,
        mut delivery: Delivery<Copy>,
    ) -> Option<Place> {
        let (durable, journal) = (self.shared.durable.as_ref()?, self.durability.journal()?);
        durable.groups.find(group.id())?;
        let place = journal.place_in_group(group, durable);
        delivery.message.group = NO_GROUP;
        journal.enter(place, &delivery, EntryStage::Queued, Urgency::Rides);
        if self.groups.places.get(group.id()).is_none() {
            // This shard will not be told of its end.
            journal.forget_group(group.id());
        }
        Some(place)
    }

    /// A durable member has been given its group's share of an unfinished distribution: no other
    /// member may get it, even after the member is done with it.
    pub(super) fn note_served(&mut self, local: GroupSlot, message: &Message) {
        let group = &self.groups.groups[local.index()].group;
        if let (Some(durable), Some(journal)) = (&self.shared.durable, self.durability.journal()) {
            let queue = journal.group_queue(group, durable);
            journal.note_served(queue, message, durable.sessions_level());
        }
    }

    /// A group has no members left and no waiting messages.
    pub(super) fn forget_group_queue(&mut self, group: &Arc<Group>) {
        let (Some(durable), Some(journal)) = (&self.shared.durable, self.durability.journal())
        else {
            return;
        };
        if durable.groups.remove_ended(group).is_some() {
            journal.forget_group(group.id());
            // A later group of the same name has a higher version.
            let record = Record::Delete {
                queue: QueueId::COMMON,
                key: &keys::group(group.shared_filter()),
                version: durable.retained_version(group.id()),
            };
            journal.append(record, durable.sessions_level(), Urgency::Rides);
        }
    }

    /// Restores a message that waits for a member of this group, which this shard owns. Must be
    /// called in the order of arrival.
    pub(in crate::shard) fn restore_waiting(
        &mut self,
        group: &Arc<Group>,
        place: Place,
        message: Message,
    ) {
        let local = self.groups.place(group);
        if let Some(durable) = &self.shared.durable {
            durable.groups.seen(place.seq);
        }
        let waiting = &mut self.groups.at(local).waiting;
        waiting.push(group.wait(), ForOne { message, owed: Owed::Place(place) });
    }
}
