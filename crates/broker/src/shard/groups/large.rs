//! Messages above a member's Maximum Packet Size: another member gets them, of this shard first,
//! then of the others, each asked once. They are dropped if no connected member takes them
//! [MQTT-3.1.2-25].

use std::sync::Arc;

use tacho_codec::{PacketId, QoS};
use tacho_session::BatchSeq;
use tacho_topic::{Choice, Group, ShardSet};

use super::Chosen;
use super::GroupSlot;
use super::members::MemberIndex;
use crate::delivery::ForOne;
use crate::delivery::LargeShared;
use crate::mail::Mail;
use crate::message::Message;
use crate::shard::{Net, Shard};
use crate::subscription::effective_qos;

/// Members examined to find one that accepts a message.
const LOOKED_AT_MAX: usize = 64;

impl Shard {
    /// The chosen member, or another one if the message is too large for it.
    #[inline]
    pub(super) fn large_enough(
        &mut self,
        net: &mut Net,
        local: GroupSlot,
        chosen: MemberIndex,
        message: &Message,
    ) -> Chosen {
        let slot = self.groups.at(local).members.get(chosen).session;
        if self.sessions[slot].terms().packet_size_max() == u32::MAX
            || self.member_takes(net, local, chosen, message)
        {
            return Chosen::Member(chosen);
        }
        self.find_large_enough(net, local, message).map_or(Chosen::TooLarge, Chosen::Member)
    }

    /// The member that accepts the message and has the most room. Without one the message waits in
    /// the chosen member's session.
    #[cold]
    fn find_large_enough(
        &mut self,
        net: &mut Net,
        local: GroupSlot,
        message: &Message,
    ) -> Option<MemberIndex> {
        let connected = self.groups.at(local).members.connected();
        let candidates: Vec<MemberIndex> = connected.iter().copied().take(LOOKED_AT_MAX).collect();
        let mut best = None;
        for member in candidates {
            self.is_current(net, local, member);
            let rank = self.groups.at(local).members.rank(member);
            if best.is_none_or(|(best, _)| rank < best)
                && self.member_takes(net, local, member, message)
            {
                best = Some((rank, member));
            }
        }
        best.map(|(_, member)| member)
    }

    /// Whether the message is small enough for the member's client, without subscription identifier
    /// and topic alias.
    fn member_takes(
        &mut self,
        net: &Net,
        local: GroupSlot,
        member: MemberIndex,
        message: &Message,
    ) -> bool {
        let member = self.groups.at(local).members.get(member);
        let mut publish = message.as_publish(net.now_ns());
        publish.qos = effective_qos(publish.qos, member.options.qos);
        publish.packet_id = (publish.qos != QoS::AtMostOnce).then_some(PacketId::FIRST);
        self.sessions[member.session].terms().take(&publish)
    }

    /// No member here accepts a message: the next shard not yet `asked` looks for a member.
    #[cold]
    pub(super) fn ask_other_shards(
        &mut self,
        net: &mut Net,
        group: &Arc<Group>,
        one: ForOne,
        mut asked: ShardSet,
    ) {
        asked.insert(self.id);
        match group.pick_other(self.id, Choice::LeastInflight, asked) {
            Some(shard) => {
                self.stats.forwarded_total.increment();
                let group = Arc::clone(group);
                let large = LargeShared { group, one, asked };
                net.post(shard, Mail::DeliverLarge(Box::new(large)));
            }
            None => {
                self.stats.dropped_too_large_total.increment();
                self.settle(net, one.owed, BatchSeq::DONE);
            }
        }
    }

    /// The members of another shard do not accept a message; it arrives without a credit.
    pub(in crate::shard) fn deliver_large(&mut self, net: &mut Net, large: LargeShared) {
        let LargeShared { group, one, asked } = large;
        let local = self.groups.places.get(group.id());
        let found =
            local.and_then(|l| self.find_large_enough(net, l, &one.message).map(|m| (l, m)));
        match found {
            Some((local, member)) => self.give(net, local, member, one, 0),
            None => self.ask_other_shards(net, &group, one, asked),
        }
    }
}
