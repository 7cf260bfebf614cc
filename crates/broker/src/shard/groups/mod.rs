//! Shared subscriptions: this shard's members of each group, and the queues of groups it owns.
//!
//! The publishing shard picks a shard by the group's shared counters, that shard picks the member.
//! For QoS 1 and 2 the publishing shard takes one credit with it, so messages never pile up at a
//! member that is full while another one has room. A message that finds no credit, or no connected
//! member, waits in a bounded queue at the group's owner shard, and a shard that frees credit
//! notifies the owner. While messages wait, newer ones line up behind them.
//!
//! Strategies that bind messages to one member need no credit: theirs wait in its session.

mod former;
mod full;
mod joining;
mod journaled;
mod large;
mod members;
mod memberships;
mod owner;
mod places;
mod redeliver;
mod restore;
mod waiting;

use std::collections::VecDeque;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_codec::QoS;
use tacho_session::{BatchSeq, Delivery};
use tacho_topic::{Choice, GradualSlab, Group, ShardSet};

use crate::config::SharedStrategy;
use crate::delivery::{Body, Copy, GroupRef};
use crate::delivery::{ForOne, Owed};
use crate::keys::{SessionSlot, stable_hash};
use crate::mail::Mail;
use crate::message::Message;
use crate::shard::{Net, Shard};
use crate::stats::ShardStats;
use crate::subscription::SubscriptionOptions;
use crate::subscription::effective_qos;
use former::FormerGroups;
use members::{MemberIndex, Members, Rank, Standing};
use places::GroupPlaces;
use waiting::WaitingMessages;

use full::GroupFullness;
pub(super) use memberships::{EndedMemberships, Memberships};
use redeliver::Left;

/// Largest number of publishers with a remembered shard or member; beyond it all are dropped.
const STICKY_MAX: usize = 65_536;
/// Slots of groups that are kept when none is left.
const SLOTS_KEPT: usize = 1_024;
/// Members tried at random before the next one in turn gets the message.
const RANDOM_TRIES: usize = 4;

/// The index of a group in this shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupSlot(u32);

impl GroupSlot {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Owns the groups that this shard has members of, or owns.
pub(crate) struct LocalGroups {
    places: GroupPlaces,
    /// Boxed, so that the slots of groups that have ended hold little.
    groups: GradualSlab<Box<LocalGroup>>,
    /// The shard bound to a publisher in a group by the sticky strategy.
    sticky: HashMap<(u64, u64), u16, RandomState>,
    /// Undelivered messages of members that left, on their way to others.
    left: VecDeque<Left>,
    /// Where messages that wait are counted.
    stats: Arc<ShardStats>,
}

struct LocalGroup {
    group: Arc<Group>,
    members: Members,
    /// Used by the owner shard.
    waiting: WaitingMessages,
    /// A mail from the owner shard to itself is pending.
    owner_is_told: bool,
    fullness: GroupFullness,
}

/// The choice among a shard's members for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    Member(MemberIndex),
    /// The message exceeds the Maximum Packet Size of all members.
    TooLarge,
}

/// A session's membership: the index of the group in the shard and of the member in the group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Membership {
    local: GroupSlot,
    member: MemberIndex,
}

impl LocalGroups {
    pub(super) fn new(stats: Arc<ShardStats>) -> Self {
        Self {
            places: GroupPlaces::new(),
            groups: GradualSlab::default(),
            sticky: HashMap::default(),
            left: VecDeque::new(),
            stats,
        }
    }

    /// The place of a group, made if it has none here.
    fn place(&mut self, group: &Arc<Group>) -> GroupSlot {
        if let Some(local) = self.places.get(group.id()) {
            return local;
        }
        let local = GroupSlot(self.groups.insert(Box::new(LocalGroup {
            group: Arc::clone(group),
            members: Members::default(),
            waiting: WaitingMessages::new(Arc::clone(&self.stats)),
            owner_is_told: false,
            fullness: GroupFullness::default(),
        })) as u32);
        self.places.insert(group.id(), local);
        local
    }

    #[cfg(feature = "sim")]
    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    #[cfg(feature = "sim")]
    pub(super) fn queue_lens(&self) -> impl Iterator<Item = usize> {
        self.groups.iter().map(|(_, group)| group.waiting.len())
    }

    /// The members of a group here.
    pub(super) fn members_of(
        &self,
        group: &Group,
    ) -> impl Iterator<Item = (SessionSlot, SubscriptionOptions)> {
        let found = self.places.get(group.id()).map(|local| &self.groups[local.index()].members);
        found.into_iter().flat_map(Members::all)
    }

    /// The options of a session's membership in a group.
    pub(super) fn options_of(
        &self,
        group: &Group,
        memberships: &Memberships,
    ) -> Option<SubscriptionOptions> {
        let local = self.places.get(group.id())?;
        let found = memberships.present().iter().find(|membership| membership.local == local)?;
        Some(self.groups[local.index()].members.get(found.member).options)
    }

    /// The group through which a message arrived, if this shard or the session knows it.
    fn find<'a>(
        &'a self,
        group: GroupRef,
        left: Option<&'a FormerGroups>,
    ) -> Option<&'a Arc<Group>> {
        match self.places.get(group.0) {
            Some(local) => Some(&self.groups[local.index()].group),
            None => left?.find(group),
        }
    }

    fn at(&mut self, local: GroupSlot) -> &mut LocalGroup {
        &mut self.groups[local.index()]
    }

    /// All groups known here.
    fn all(&self) -> Vec<GroupSlot> {
        self.groups.iter().map(|(local, _)| GroupSlot(local as u32)).collect()
    }

    fn forget_if_unused(&mut self, local: GroupSlot) {
        let found = self.groups.get(local.index());
        if found.is_some_and(|g| g.members.is_empty() && g.waiting.is_empty()) {
            if let Some(local) = self.groups.remove(local.index()) {
                self.places.remove(local.group.id());
            }
            if self.groups.is_empty() && self.groups.places_end() > SLOTS_KEPT {
                self.groups = GradualSlab::default();
            }
        }
    }
}

/// Loads.
impl Shard {
    /// A session's load as a member; `None` without a connection.
    #[inline]
    fn standing(&self, net: &Net, slot: SessionSlot) -> Option<Standing> {
        let session = &self.sessions[slot];
        let machine = &session.machine;
        let output_bytes = net.output_bytes(session.connection()?);
        let is_unresponsive =
            machine.is_congested() || output_bytes > self.limits().output_bytes_max;
        let credit = if is_unresponsive { 0 } else { machine.credit() as u32 };
        let rank = match credit {
            _ if is_unresponsive => Rank::Congested,
            0 => Rank::Full,
            _ => Rank::Ready,
        };
        let busy = match self.shared.strategy {
            SharedStrategy::RoundRobin | SharedStrategy::Random => 0,
            _ => (machine.inflight_len() + machine.queue_len()) as u32,
        };
        Some(Standing { rank, busy, credit })
    }

    /// A session's window or queue may have changed: updates its load in its groups.
    pub(super) fn update_memberships(&mut self, net: &mut Net, slot: SessionSlot) {
        let Some(standing) = self.standing(net, slot) else { return };
        for at in 0..self.sessions[slot].memberships.present().len() {
            let Membership { local, member } = self.sessions[slot].memberships.present()[at];
            let more = self.groups.at(local).members.update(member, standing);
            self.credit_changed(net, local, more);
        }
    }

    fn credit_changed(&mut self, net: &mut Net, local: GroupSlot, more: i64) {
        if more == 0 {
            return;
        }
        let shard = self.id;
        let group = &self.groups.at(local).group;
        group.credit_changed(shard, more);
        if more > 0 && group.waiting() > 0 {
            self.tell_owner(net, local);
        }
    }

    /// Members joined or left, or have room again.
    fn tell_owner(&mut self, net: &mut Net, local: GroupSlot) {
        let shard = self.id;
        let local = self.groups.at(local);
        let owner = local.group.owner();
        if owner == shard && std::mem::replace(&mut local.owner_is_told, true) {
            return;
        }
        net.post(owner, Mail::GroupChanged(Arc::clone(&local.group)));
    }
}

/// Messages.
impl Shard {
    pub(super) fn route_to_groups(
        &mut self,
        net: &mut Net,
        groups: &[Arc<Group>],
        message: &Message,
    ) {
        for group in groups {
            let one = ForOne { message: message.clone(), owed: Owed::Nothing };
            self.route_to_group(net, group, one);
        }
    }

    pub(super) fn route_to_group(&mut self, net: &mut Net, group: &Arc<Group>, one: ForOne) {
        if group.members() == 0 {
            // It has ended, which the route map does not know yet.
            self.settle(net, one.owed, BatchSeq::DONE);
            return;
        }
        let message = &one.message;
        if message.header().qos == QoS::AtMostOnce {
            match self.choose_shard(group, message) {
                Some(shard) => self.hand_to_shard(net, shard, group, one),
                None => self.stats.dropped_offline_total.increment(),
            }
            return;
        }
        // Behind the messages that already wait, so that a publisher's messages keep their order.
        let shard = if group.waiting() > 0 { None } else { self.choose_shard(group, message) };
        match shard {
            Some(shard) => self.hand_to_shard(net, shard, group, one),
            None => {
                let place = group.wait();
                if group.owner() == self.id {
                    self.queue_for_group(net, place, one);
                } else {
                    net.post(group.owner(), Mail::QueueShared(place, one));
                }
            }
        }
    }

    /// The shard whose members get the message, with one credit taken if it needs one.
    fn choose_shard(&mut self, group: &Group, message: &Message) -> Option<usize> {
        let strategy = self.shared.strategy;
        let choice = match strategy {
            SharedStrategy::HashTopic | SharedStrategy::HashClientId => {
                return group.pick_by_key(binding_key(strategy, message));
            }
            SharedStrategy::Sticky => return self.sticky_shard(group, message),
            SharedStrategy::LeastInflight => Choice::LeastInflight,
            SharedStrategy::RoundRobin => Choice::InTurn,
            SharedStrategy::Random => Choice::Random(fastrand::u64(..)),
        };
        if needs_credit(strategy, message) {
            group.reserve(self.id, choice)
        } else {
            group.pick(self.id, choice)
        }
    }

    fn sticky_shard(&mut self, group: &Group, message: &Message) -> Option<usize> {
        let key = (group.id(), message.header().source.key());
        if let Some(&shard) = self.groups.sticky.get(&key)
            && group.load(shard.into()).connected > 0
        {
            return Some(shard.into());
        }
        let shard = group.pick(self.id, Choice::InTurn)?;
        if self.groups.sticky.len() >= STICKY_MAX {
            self.groups.sticky.clear();
        }
        self.groups.sticky.insert(key, shard as u16);
        Some(shard)
    }

    fn hand_to_shard(&mut self, net: &mut Net, shard: usize, group: &Arc<Group>, one: ForOne) {
        if shard == self.id {
            self.deliver_to_member(net, group, one);
        } else {
            self.stats.forwarded_total.increment();
            net.post(shard, Mail::DeliverShared(Arc::clone(group), one));
        }
    }

    /// Delivers to a member here, or forwards a message that no member here can take.
    pub(super) fn deliver_to_member(&mut self, net: &mut Net, group: &Arc<Group>, one: ForOne) {
        let reserved = i64::from(needs_credit(self.shared.strategy, &one.message));
        let found = self.groups.places.get(group.id());
        let chosen = found.and_then(|l| self.choose_member(net, l, &one.message).map(|c| (l, c)));
        match chosen {
            Some((local, Chosen::Member(member))) => {
                self.give(net, local, member, one, reserved);
            }
            Some((local, Chosen::TooLarge)) => {
                self.credit_changed(net, local, reserved);
                self.ask_other_shards(net, group, one, ShardSet::EMPTY);
            }
            None => {
                // The counters were outdated when the message was sent here; they are current now.
                group.credit_changed(self.id, reserved);
                self.route_to_group(net, group, one);
            }
        }
    }

    /// Gives a message to a connected member; a credit that came with it is used or released.
    fn give(
        &mut self,
        net: &mut Net,
        local: GroupSlot,
        member: MemberIndex,
        one: ForOne,
        reserved: i64,
    ) {
        let local_group = self.groups.at(local);
        let group = GroupRef(local_group.group.id());
        let entry = local_group.members.get(member);
        let (slot, options) = (entry.session, entry.options);
        let is_durable = self.sessions[slot].journal.is_durable();
        let is_hand_off = !is_durable && options.qos != QoS::AtMostOnce;
        let one = if is_hand_off { self.hand_off_if_durable(net, local, slot, one) } else { one };
        let ForOne { message, owed } = one;
        let message = if is_durable { Self::for_durable_member(message, owed) } else { message };
        let is_noted = is_durable && matches!(owed, Owed::Receipt(_));
        let noted = is_noted.then(|| message.clone());
        let offered = self.offer(net, slot, shared_delivery(message, options, group));
        if let Some(message) = noted.filter(|_| offered.is_taken) {
            self.note_served(local, &message);
        }
        if is_hand_off {
            self.settle_hand_off(net, slot, owed);
        } else {
            self.settle(net, owed, offered.batch);
        }
        if let Some(standing) = self.standing(net, slot) {
            let more = self.groups.at(local).members.served(member, standing);
            self.credit_changed(net, local, more + reserved);
        }
    }

    /// The connected member that gets the message.
    fn choose_member(
        &mut self,
        net: &mut Net,
        local: GroupSlot,
        message: &Message,
    ) -> Option<Chosen> {
        let strategy = self.shared.strategy;
        let chosen = match strategy {
            SharedStrategy::LeastInflight | SharedStrategy::RoundRobin => {
                self.ready_member(net, local)
            }
            SharedStrategy::Random => self.random_member(net, local),
            SharedStrategy::HashTopic | SharedStrategy::HashClientId => {
                let members = &self.groups.at(local).members;
                return members.by_key(binding_key(strategy, message)).map(Chosen::Member);
            }
            SharedStrategy::Sticky => {
                let publisher = message.header().source.key();
                if let Some(member) = self.groups.at(local).members.sticky(publisher) {
                    return Some(Chosen::Member(member));
                }
                let ready = self.ready_member(net, local);
                let members = &mut self.groups.at(local).members;
                let choice = ready.or_else(|| members.first())?;
                members.stick(publisher, choice);
                return Some(Chosen::Member(choice));
            }
        };
        // QoS 0 needs no room in a window.
        let chosen = chosen.or_else(|| {
            let is_qos0 = message.header().qos == QoS::AtMostOnce;
            is_qos0.then(|| self.groups.at(local).members.first()).flatten()
        })?;
        Some(self.large_enough(net, local, chosen, message))
    }

    /// The next member with credit. The known load of the first one is corrected until it is
    /// current; each can be outdated once after other uses of its session, so the loop is bounded
    /// by them.
    fn ready_member(&mut self, net: &mut Net, local: GroupSlot) -> Option<MemberIndex> {
        loop {
            let members = &self.groups.at(local).members;
            let member = members.first()?;
            if members.rank(member) != Rank::Ready {
                return None;
            }
            if self.is_current(net, local, member) {
                return Some(member);
            }
        }
    }

    fn random_member(&mut self, net: &mut Net, local: GroupSlot) -> Option<MemberIndex> {
        for _ in 0..RANDOM_TRIES {
            let members = &self.groups.at(local).members;
            let member = members.random(fastrand::u64(..))?;
            self.is_current(net, local, member);
            if self.groups.at(local).members.rank(member) == Rank::Ready {
                return Some(member);
            }
        }
        self.ready_member(net, local)
    }

    /// Corrects the known load of a connected member; true if it was current.
    fn is_current(&mut self, net: &mut Net, local: GroupSlot, member: MemberIndex) -> bool {
        let slot = self.groups.at(local).members.get(member).session;
        let Some(standing) = self.standing(net, slot) else { return true };
        let members = &mut self.groups.at(local).members;
        if members.is_known(member, standing) {
            return true;
        }
        let more = members.update(member, standing);
        self.credit_changed(net, local, more);
        false
    }
}

/// Whether the message carries a credit of its destination shard.
fn needs_credit(strategy: SharedStrategy, message: &Message) -> bool {
    !strategy.is_bound() && message.header().qos != QoS::AtMostOnce
}

/// The key that binds a message to its member.
fn binding_key(strategy: SharedStrategy, message: &Message) -> u64 {
    match strategy {
        SharedStrategy::HashTopic => stable_hash(message.topic().as_bytes()),
        _ => message.header().source.key(),
    }
}

fn shared_delivery(
    message: Message,
    options: SubscriptionOptions,
    group: GroupRef,
) -> Delivery<Copy> {
    Delivery {
        qos: effective_qos(message.header().qos, options.qos), // [MQTT-4.8.2-3]
        retain: message.header().retain && options.retain_as_published,
        subscription_ids: options.id_list(),
        size_bytes: message.size_bytes() as u32,
        expires_at_ns: message.header().expires_at_ns,
        message: Copy { message: Body::Here(message), group },
    }
}
