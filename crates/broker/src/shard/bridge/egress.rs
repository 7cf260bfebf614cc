//! Outgoing messages: the rule transforms a message when it is written.

use std::num::NonZeroU16;

use tacho_codec::{PacketId, Publish, QoS};
use tacho_net::ConnId;
use tacho_session::{AliasOut, BatchSeq, Delivery};

use crate::bridge::Bridge;
use crate::config::{EgressRule, Values};
use crate::delivery::{Body, Copy, NO_GROUP};
use crate::keys::{LinkIndex, SessionSlot};
use crate::memory::MESSAGE_BYTES;
use crate::message::{Message, SharedPayload};
use crate::shard::delivery::BY_REFERENCE_BYTES;
use crate::shard::sessions::Session;
use crate::shard::{Net, Shard};
use crate::subscription::Target;

/// The longest topic in bytes.
const TOPIC_BYTES_MAX: usize = u16::MAX as usize;

/// The decision on a message that is due to be written.
enum Written {
    Sent,
    TooLarge,
    Unmapped,
}

impl Shard {
    /// Queues a message at the link that carries its topic.
    pub(in crate::shard) fn deliver_to_bridge(
        &mut self,
        net: &mut Net,
        target: &Target,
        message: &Message,
    ) -> BatchSeq {
        let slot = target.session;
        let session = &self.sessions[slot];
        let Some(link) = session.link() else { return BatchSeq::DONE };
        let entry = &self.bridges.all[link.index()];
        let bridge = self.bridges.known.at(entry.bridge);
        let rule = target.subscription_ids.as_slice().first();
        let rule = rule.and_then(|id| bridge.config().egress.get(*id as usize - 1));
        let Some(rule) = rule else { return BatchSeq::DONE };
        if bridge.circulates(message.hops()) {
            self.drop_circulating(net, link, message.topic());
            return BatchSeq::DONE;
        }
        let (header, now_ns) = (message.header(), net.now_ns());
        let size_bytes = u32::try_from(message.size_bytes() + MESSAGE_BYTES).unwrap_or(u32::MAX);
        if !session.machine.takes_now() && !bridge.has_room(size_bytes) {
            self.stats.dropped_queue_full_total.increment();
            self.sessions[slot].pressure.message_shed();
            self.note_drop(net, slot);
            self.report_link(link);
            return BatchSeq::DONE;
        }
        let delivery = Delivery {
            message: Copy { message: Body::Here(message.clone()), group: NO_GROUP },
            qos: rule.mapping.qos(header.qos).min(entry.granted.qos_max),
            retain: rule.mapping.retain(header.retain),
            subscription_ids: target.subscription_ids.clone(),
            size_bytes,
            expires_at_ns: header.expires_at_ns.min(bridge.waits_until_ns(now_ns)),
        };
        let offered = self.offer(net, slot, delivery);
        let held_bytes = self.bridges.all[link.index()].held_bytes;
        if !offered.is_taken || self.sessions[slot].machine.queue_bytes() != held_bytes {
            self.report_link(link);
        }
        offered.batch
    }

    /// Writes a message in the form for the remote broker.
    pub(in crate::shard) fn write_to_bridge(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        conn: ConnId,
        delivery: &Delivery<Copy>,
        packet_id: Option<PacketId>,
        dup: bool,
    ) {
        let Some(link) = self.sessions[slot].link() else { return };
        let written = self.write_mapped(net, link, conn, delivery, packet_id, dup);
        let entry = &self.bridges.all[link.index()];
        let stats = self.bridges.known.at(entry.bridge).stats(entry.number);
        match written {
            Written::Sent => {
                if let Some(stats) = stats {
                    stats.sent.increment();
                }
                return;
            }
            // The session machine counts it.
            Written::TooLarge => self.stats.dropped_too_large_total.increment(),
            Written::Unmapped => {
                if let Some(stats) = stats {
                    stats.dropped_unmapped.increment();
                }
            }
        }
        // Counts as delivered, so that later messages do not wait for it.
        self.act(slot, |machine, recorder| match written {
            Written::TooLarge => machine.abandon(packet_id, recorder),
            _ => machine.give_up(packet_id, recorder),
        });
    }

    fn write_mapped(
        &mut self,
        net: &mut Net,
        link: LinkIndex,
        conn: ConnId,
        delivery: &Delivery<Copy>,
        packet_id: Option<PacketId>,
        dup: bool,
    ) -> Written {
        // Invariant: the machine hands out loaded messages only.
        let Body::Here(message) = &delivery.message.message else { return Written::Unmapped };
        let links = &mut self.bridges;
        let entry = &links.all[link.index()];
        let (bridge, header) = (links.known.at(entry.bridge), message.header());
        let Some(rule) = rule_of(bridge, delivery, &header.topic) else {
            return Written::Unmapped;
        };
        let values = values_of(message);
        let session = &mut self.sessions[entry.slot];
        let mut publish = message.as_publish(net.now_ns());
        // Keyed by the local topic: the template maps it always to the same remote topic.
        let plan = match rule.mapping.topic.is_of_topic_alone() {
            true => session.machine.plan_alias(&header.topic),
            false => AliasOut::None,
        };
        if let AliasOut::Use(alias) = plan {
            publish.topic = "";
            publish.properties.topic_alias = Some(alias);
        } else if !rule.mapping.topic.keeps_topic() {
            links.topic.clear();
            rule.mapping.topic.render_topic(&values, &mut links.topic);
            publish.topic = &links.topic;
        }
        let keeps_payload = rule.mapping.payload.keeps_payload();
        if !keeps_payload {
            links.payload.clear();
            rule.mapping.payload.render(&values, &mut links.payload);
            publish.payload = &links.payload;
        }
        publish.qos = delivery.qos;
        publish.retain = delivery.retain && entry.granted.retain;
        publish.dup = dup && delivery.qos != QoS::AtMostOnce;
        publish.packet_id = packet_id;
        if publish.topic.len() > TOPIC_BYTES_MAX {
            return Written::Unmapped;
        }
        if !session.terms().take(&publish) {
            return Written::TooLarge;
        }
        let defined = define_if_it_fits(session, plan, &mut publish);
        self.stats.publishes_out_total.increment(publish.qos);
        self.stats.payload_bytes_out_total.add(publish.payload.len() as u64);
        let output = net.out(conn);
        let bytes = output.as_vec_mut();
        if publish.encode_head(session.version(), bytes).is_err() {
            return Written::Unmapped;
        }
        // The remote broker knows it from here on: written bytes are sent, or the connection ends.
        if let Some(alias) = defined {
            session.machine.define_alias(alias, &header.topic);
        } else if publish.topic.is_empty() {
            self.stats.publishes_aliased_out_total.increment();
        }
        if keeps_payload && publish.payload.len() >= BY_REFERENCE_BYTES {
            output.push_shared(SharedPayload(message.clone()));
        } else {
            bytes.extend_from_slice(publish.payload);
        }
        Written::Sent
    }
}

/// The values that templates can refer to.
fn values_of(message: &Message) -> Values<'_> {
    let header = message.header();
    let (topic, payload) = (&header.topic, message.payload());
    Values { topic, payload, qos: header.qos, retain: header.retain }
}

/// The rule that a message leaves by. A message from the journal may belong to a rule of an earlier
/// configuration.
fn rule_of<'a>(
    bridge: &'a Bridge,
    delivery: &Delivery<Copy>,
    topic: &str,
) -> Option<&'a EgressRule> {
    let place = delivery.subscription_ids.as_slice().first().map_or(0, |id| *id as usize);
    let known = bridge.config().egress.get(place.wrapping_sub(1));
    let known = known.filter(|rule| rule.filter.matches(topic));
    known.or_else(|| Some(bridge.egress(topic)?.1))
}

/// Lets the PUBLISH define a topic alias, unless that makes it too large.
fn define_if_it_fits(
    session: &Session,
    plan: AliasOut,
    publish: &mut Publish<'_>,
) -> Option<NonZeroU16> {
    let AliasOut::Define(alias) = plan else { return None };
    publish.properties.topic_alias = Some(alias);
    let defined = Some(alias).filter(|_| session.terms().take(publish));
    publish.properties.topic_alias = defined;
    defined
}
