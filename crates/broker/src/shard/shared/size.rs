//! Messages above a member's Maximum Packet Size: another member here gets them if one takes them;
//! else they are dropped for the chosen one, as for any client [MQTT-3.1.2-25].

use tacho_codec::{PacketId, QoS};

use super::members::Rank;
use crate::message::Message;
use crate::shard::publish::effective_qos;
use crate::shard::{Net, Shard};

/// Members looked at for one that takes a message.
const LOOKED_AT_MAX: usize = 64;

impl Shard {
    /// The chosen member, or another one with room if the message is too large for it.
    #[inline]
    pub(super) fn large_enough(
        &mut self,
        net: &mut Net,
        local: u32,
        chosen: u32,
        message: &Message,
    ) -> u32 {
        let slot = self.groups.at(local).members.get(chosen).session;
        if self.sessions[slot as usize].packet_size_max == u32::MAX {
            return chosen;
        }
        self.find_large_enough(net, local, chosen, message).unwrap_or(chosen)
    }

    #[cold]
    fn find_large_enough(
        &mut self,
        net: &mut Net,
        local: u32,
        chosen: u32,
        message: &Message,
    ) -> Option<u32> {
        if self.member_takes(net, local, chosen, message) {
            return Some(chosen);
        }
        let connected = self.groups.at(local).members.connected();
        let candidates: Vec<u32> = connected.iter().copied().take(LOOKED_AT_MAX).collect();
        candidates.into_iter().find(|&member| {
            self.is_current(net, local, member);
            let has_room = message.header().qos == QoS::AtMostOnce
                || self.groups.at(local).members.rank(member) == Rank::Ready;
            has_room && self.member_takes(net, local, member, message)
        })
    }

    /// Whether the message is small enough for the member's client, without subscription identifier
    /// and topic alias.
    fn member_takes(&mut self, net: &Net, local: u32, member: u32, message: &Message) -> bool {
        let member = self.groups.at(local).members.get(member);
        let mut publish = message.as_publish(net.now_ns());
        publish.qos = effective_qos(publish.qos, member.options.qos);
        publish.packet_id = (publish.qos != QoS::AtMostOnce).then_some(PacketId::FIRST);
        self.sessions[member.session as usize].takes(&publish)
    }
}
