//! Subscriptions at a remote broker: SUBSCRIBE for the rules of a link, UNSUBSCRIBE for the rules
//! that an earlier configuration gave it.

use tacho_codec::{
    Packet, PacketId, QoS, RetainHandling, SubAck, Subscribe, SubscribeFilter, SubscribeOptions,
    Unsubscribe, UserProperties,
};

use super::Asking;
use super::greet::said;
use crate::keys::LinkIndex;
use crate::shard::{Net, Shard};

impl Asking {
    /// Whether the subscription is due.
    pub(super) const fn wanted_if(is_wanted: bool) -> Self {
        if is_wanted { Self::Wanted } else { Self::Done }
    }
}

impl Shard {
    /// Sends SUBSCRIBE if it is due. Exchanges of an earlier connection may leave no identifier
    /// free at first.
    pub(super) fn subscribe_there(&mut self, net: &mut Net, link: LinkIndex) {
        let entry = &mut self.bridges.all[link.index()];
        if entry.subscribing != Asking::Wanted {
            return;
        }
        let bridge = self.bridges.known.at(entry.bridge);
        let session = &mut self.sessions[entry.slot];
        let (Some(conn), Some(packet_id)) = (session.connection(), session.machine.reserve_id())
        else {
            return;
        };
        entry.subscribing = Asking::Awaited(packet_id);
        let rules: Vec<(String, QoS)> = bridge
            .ingress_of(entry.number)
            .map(|rule| (rule.filter.to_string(), rule.subscription_qos()))
            .collect();
        let filters = rules.iter().map(|(filter, qos)| SubscribeFilter {
            filter,
            options: SubscribeOptions {
                qos: *qos,
                // Not allowed with shared subscriptions [MQTT-3.8.3-4].
                no_local: !filter.starts_with("$share/"),
                retain_as_published: true,
                retain_handling: RetainHandling::IfNew,
            },
        });
        let subscribe = Subscribe {
            packet_id,
            subscription_id: None,
            user_properties: UserProperties::EMPTY,
            filters: filters.collect(),
        };
        let packet = Packet::Subscribe(subscribe);
        if let Err(error) = packet.encode(session.version(), net.out(conn).as_vec_mut()) {
            let why = format!("SUBSCRIBE cannot be written: {error}");
            self.break_off(net, link, &why);
        }
    }

    /// Handles SUBACK: logs refused filters; the others work.
    pub(super) fn subscribed_there(&mut self, net: &Net, link: LinkIndex, suback: &SubAck<'_>) {
        let entry = &mut self.bridges.all[link.index()];
        if entry.subscribing != Asking::Awaited(suback.packet_id) {
            return;
        }
        entry.subscribing = Asking::Done;
        self.sessions[entry.slot].machine.release_id(suback.packet_id);
        let bridge = self.bridges.known.at(entry.bridge);
        let rules = bridge.ingress_of(entry.number);
        let refused = rules.zip(&suback.reasons).find(|(_, reason)| reason.is_error());
        if let Some(stats) = bridge.stats(entry.number) {
            stats.set_subscribed(refused.is_none());
        }
        let Some((rule, reason)) = refused else { return };
        let text = said(suback.reason_string);
        let why = format!("it refused the subscription to `{}`: {reason}{text}", rule.filter);
        let (name, connection) = (&*bridge.config().name, entry.number + 1);
        tracing::error!(bridge = name, connection, "{why}");
        if let Some(stats) = bridge.stats(entry.number) {
            stats.set_up(net.now_ns(), Some(why));
        }
    }

    /// Removes subscriptions of an earlier configuration from the remote session if other links
    /// have their rules now: their messages would arrive twice. Waits until those links have
    /// subscribed, so that no message is missed.
    pub(super) fn unsubscribe_there(&mut self, net: &mut Net, link: LinkIndex) {
        let Some(entry) = self.bridges.all.get_mut(link.index()) else { return };
        if entry.unsubscribing != Asking::Wanted {
            return;
        }
        let bridge = self.bridges.known.at(entry.bridge);
        let Some(rules) = bridge.ingress_of_others(entry.number) else { return };
        if rules.is_empty() {
            entry.unsubscribing = Asking::Done;
            return;
        }
        let Some(session) = self.sessions.get_mut(entry.slot) else { return };
        let (Some(conn), Some(packet_id)) = (session.connection(), session.machine.reserve_id())
        else {
            return;
        };
        entry.unsubscribing = Asking::Awaited(packet_id);
        let filters: Vec<String> = rules.iter().map(|rule| rule.filter.to_string()).collect();
        let packet = Packet::Unsubscribe(Unsubscribe {
            packet_id,
            user_properties: UserProperties::EMPTY,
            filters: filters.iter().map(String::as_str).collect(),
        });
        if let Err(error) = packet.encode(session.version(), net.out(conn).as_vec_mut()) {
            let why = format!("UNSUBSCRIBE cannot be written: {error}");
            self.break_off(net, link, &why);
        }
    }

    /// Handles UNSUBACK: no code requires an action.
    pub(super) fn unsubscribed_there(&mut self, link: LinkIndex, packet_id: PacketId) {
        let entry = &mut self.bridges.all[link.index()];
        if entry.unsubscribing != Asking::Awaited(packet_id) {
            return;
        }
        entry.unsubscribing = Asking::Done;
        self.sessions[entry.slot].machine.release_id(packet_id);
    }
}
