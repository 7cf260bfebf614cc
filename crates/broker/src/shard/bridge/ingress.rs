//! Incoming messages: a PUBLISH of a remote broker is handled like a publisher's.

use std::sync::Arc;

use tacho_codec::{
    Ack, AckKind, Direction, Frame, Packet, Publish, PublishProperties, QoS, ReasonCode,
    announced_len, split_frame,
};
use tacho_net::ConnId;
use tacho_session::Inbound;

use super::Stage;
use super::greet::said;
use crate::config::{IngressRule, Values};
use crate::hops;
use crate::keys::{LinkIndex, SessionSlot};
use crate::message::{Intake, Message};
use crate::shard::admission::HoldReason;
use crate::shard::connections::PUBLISH;
use crate::shard::connections::is_read_ahead;
use crate::shard::durability::Acknowledge;
use crate::shard::output::Flow;
use crate::shard::permission::may_publish;
use crate::shard::{Net, Shard};

/// Time between two log lines of a link about messages that were refused or circulate.
const TOLD_AGAIN_NS: u64 = 10_000_000_000;

impl Shard {
    /// Handles every complete packet in `data`; returns the number of bytes consumed.
    pub(in crate::shard) fn bridge_input(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        link: LinkIndex,
        data: &[u8],
    ) -> usize {
        self.update_budget();
        self.bridge_heard(link);
        let slot = self.bridges.all[link.index()].slot;
        // Before CONNACK there are no exchanges: recorded ones belong to the previous connection.
        let is_up = self.bridges.all[link.index()].stage == Stage::Up;
        let (mut used, ahead) = (0, self.read_ahead_len(Some(slot).filter(|_| is_up)));
        let mut flow = Flow::Continue;
        let mut has_time = true;
        while used < data.len() && has_time {
            let frame = match split_frame(&data[used..], self.limits().packet_size_max) {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    net.expect_unit(announced_len(&data[used..]).unwrap_or(0));
                    break;
                }
                Err(error) => {
                    self.break_off(net, link, &format!("it broke the protocol: {error}"));
                    return data.len();
                }
            };
            flow = match used < ahead && is_read_ahead(frame.first_byte) {
                true => Flow::Continue,
                false => self.bridge_packet(net, conn, link, &frame),
            };
            match flow {
                Flow::Continue => used += frame.total_len,
                Flow::Hold | Flow::Later => break,
                Flow::Stop => return data.len(),
            }
            has_time = net.charge(1);
        }
        if !has_time && used < data.len() {
            // The rest comes again in the next turn.
            net.resume_read(conn);
        }
        let unread = &data[used..];
        let looked = ahead.saturating_sub(used);
        if flow == Flow::Hold {
            // The unread bytes may be acknowledgements that free room.
            let heed = |shard: &mut Self, net: &mut Net, frame: &Frame<'_>| {
                shard.bridge_packet(net, conn, link, frame)
            };
            if self.read_ahead(net, slot, unread, looked, heed) == Flow::Stop {
                return data.len();
            }
        } else if ahead > 0 {
            self.set_read_ahead_len(slot, looked);
        }
        self.pump(net, slot);
        self.subscribe_there(net, link);
        self.unsubscribe_there(net, link);
        self.report_link(link);
        if self.leave_if_done(net, link) || self.rest_if_drained(net, link) {
            return data.len();
        }
        if flow == Flow::Hold {
            let reads_on = self.reads_on(unread);
            self.hold_publisher(net, conn, HoldReason::Budget, reads_on);
        } else if self.is_backlogged(net) {
            self.hold_publisher(net, conn, HoldReason::Backlog, false);
        }
        used
    }

    /// A part of a large packet has arrived.
    pub(in crate::shard) fn bridge_heard(&mut self, link: LinkIndex) {
        self.bridges.all[link.index()].protocol.heard();
    }

    fn bridge_packet(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        link: LinkIndex,
        frame: &Frame<'_>,
    ) -> Flow {
        self.stats.packets_in_total.increment();
        let slot = self.bridges.all[link.index()].slot;
        let version = self.sessions[slot].version();
        let is_up = self.bridges.all[link.index()].stage == Stage::Up;
        if is_up && frame.first_byte & 0xf0 == PUBLISH {
            return match Publish::decode(frame, version, Direction::ToClient) {
                Ok(publish) => self.came_by_bridge(net, link, &publish),
                Err(error) => self.broken(net, link, &error.to_string()),
            };
        }
        if is_up && let Some(kind) = AckKind::from_type_number(frame.type_number()) {
            return match Ack::decode(frame, kind, version) {
                Ok(ack) => self.acknowledged_there(net, link, kind, &ack),
                Err(error) => self.broken(net, link, &error.to_string()),
            };
        }
        match Packet::decode(frame, version, Direction::ToClient) {
            Ok(Packet::ConnAck(connack)) => self.greeted(net, conn, link, &connack),
            Ok(Packet::SubAck(suback)) if is_up => {
                self.subscribed_there(net, link, &suback);
                Flow::Continue
            }
            Ok(Packet::UnsubAck(unsuback)) if is_up => {
                self.unsubscribed_there(link, unsuback.packet_id);
                Flow::Continue
            }
            Ok(Packet::PingResp) if is_up => Flow::Continue,
            Ok(Packet::Disconnect(disconnect)) if is_up => {
                let text = said(disconnect.reason_string);
                let why = format!("it ended the connection: {}{text}", disconnect.reason);
                self.break_off(net, link, &why);
                Flow::Stop
            }
            Ok(_) => self.broken(net, link, "a packet that a server does not send now"),
            Err(error) => self.broken(net, link, &error.to_string()),
        }
    }

    fn broken(&mut self, net: &mut Net, link: LinkIndex, what: &str) -> Flow {
        self.break_off(net, link, &format!("it broke the protocol: {what}"));
        Flow::Stop
    }

    /// Handles an acknowledgement of the remote broker.
    fn acknowledged_there(
        &mut self,
        net: &mut Net,
        link: LinkIndex,
        kind: AckKind,
        ack: &Ack<'_>,
    ) -> Flow {
        let slot = self.bridges.all[link.index()].slot;
        let before = self.sessions[slot].machine.inflight_len();
        if let Err(error) = self.handle_ack(slot, kind, ack) {
            return self.broken(net, link, error.sentence());
        }
        if self.sessions[slot].machine.inflight_len() < before {
            let entry = &self.bridges.all[link.index()];
            let stats = self.bridges.known.at(entry.bridge).stats(entry.number);
            // An error in PUBCOMP only means that the identifier is no longer known.
            let is_refused = kind != AckKind::PubComp && ack.reason.is_error();
            if let Some(stats) = stats {
                let counter = if is_refused { &stats.dropped_refused } else { &stats.acknowledged };
                counter.increment();
            }
            if is_refused {
                self.report_refusal(net, link, ack.reason);
            }
        }
        Flow::Continue
    }

    #[cold]
    fn report_refusal(&mut self, net: &Net, link: LinkIndex, reason: ReasonCode) {
        let entry = &mut self.bridges.all[link.index()];
        if !entry.told_refusal.may_tell(net.now_ns(), TOLD_AGAIN_NS) {
            return;
        }
        let bridge = &*self.bridges.known.at(entry.bridge).config().name;
        tracing::warn!(bridge, %reason, "the other broker refused a message, it is dropped");
    }

    /// A message has passed as many bridges as it may: it is dropped here.
    #[cold]
    pub(super) fn drop_circulating(&mut self, net: &Net, link: LinkIndex, topic: &str) {
        let entry = &mut self.bridges.all[link.index()];
        let bridge = self.bridges.known.at(entry.bridge);
        if let Some(stats) = bridge.stats(entry.number) {
            stats.dropped_looped.increment();
        }
        if !entry.told_loop.may_tell(net.now_ns(), TOLD_AGAIN_NS) {
            return;
        }
        let (bridge, hops_max) = (&*bridge.config().name, bridge.config().hops_max);
        tracing::warn!(
            bridge,
            topic,
            hops_max,
            "a message has passed as many bridges as it may and is dropped: probably bridges form \
             a loop"
        );
    }

    /// Handles a PUBLISH of the remote broker.
    fn came_by_bridge(&mut self, net: &mut Net, link: LinkIndex, publish: &Publish<'_>) -> Flow {
        let (mut topic, mut payload) =
            (std::mem::take(&mut self.bridges.topic), std::mem::take(&mut self.bridges.payload));
        let flow = self.take_from_bridge(net, link, publish, (&mut topic, &mut payload));
        (self.bridges.topic, self.bridges.payload) = (topic, payload);
        flow
    }

    fn take_from_bridge(
        &mut self,
        net: &mut Net,
        link: LinkIndex,
        publish: &Publish<'_>,
        (topic, payload): (&mut String, &mut Vec<u8>),
    ) -> Flow {
        let entry = &self.bridges.all[link.index()];
        let slot = entry.slot;
        let bridge = self.bridges.known.at(entry.bridge);
        let session = &mut self.sessions[slot];
        let alias = publish.properties.topic_alias;
        let aliased = match session.machine.resolve_alias(publish.topic, alias) {
            Ok(aliased) => aliased,
            Err(error) => return self.broken(net, link, error.sentence()),
        };
        let there = Publish { topic: aliased.as_deref().unwrap_or(publish.topic), ..*publish };
        let mapped = map(&bridge.config().ingress, &there, topic, payload);
        let mapped = mapped.filter(|mapped| is_topic(mapped.topic));
        let circulates = bridge.circulates(hops::hops(publish.properties.user_properties));
        let mapped = mapped.filter(|_| !circulates);
        let knows =
            publish.packet_id.is_some_and(|id| session.machine.knows_inbound(publish.qos, id));
        if let Some(mapped) = &mapped
            && self.admission.may_refuse()
            && mapped.qos != QoS::AtMostOnce
            && !knows
            && self.must_refuse(net, slot, mapped)
        {
            // A refusal would lose it: it stays unread until there is room.
            return Flow::Hold;
        }
        let entry = &self.bridges.all[link.index()];
        let stats = self.bridges.known.at(entry.bridge).stats(entry.number);
        if let Some(stats) = stats {
            stats.received.increment();
        }
        self.stats.publishes_in_total.increment(publish.qos);
        self.stats.payload_in_bytes.observe(publish.payload.len() as u64);
        let session = &mut self.sessions[slot];
        match session.machine.handle_publish(publish.qos, publish.packet_id) {
            Ok(Inbound::New) => {}
            Ok(Inbound::Duplicate) => return Flow::Continue,
            Err(error) => return self.broken(net, link, error.sentence()),
        }
        let Some(mapped) = mapped else {
            match stats {
                _ if circulates => self.drop_circulating(net, link, there.topic),
                Some(stats) => stats.dropped_unmapped.increment(),
                None => {}
            }
            self.answer_publish(slot, publish.qos, publish.packet_id, ReasonCode::SUCCESS);
            return Flow::Continue;
        };
        self.send_from_bridge(net, slot, publish, &mapped);
        Flow::Continue
    }

    /// Sends a message of the remote broker on, as the rule has made it.
    fn send_from_bridge(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        publish: &Publish<'_>,
        mapped: &Publish<'_>,
    ) {
        let session = &self.sessions[slot];
        let (source, generation) = (session.source(), session.generation());
        let retained_version =
            if mapped.retain { self.take_retained_version(net, mapped.topic) } else { 0 };
        let routed_version = self.routing.version();
        let route = self.routing.lookup(mapped.topic);
        let to = route.to.clone();
        let now_ns = net.now_ns();
        let intake = Intake { now_ns, routed_version, source, retained_version, user: None };
        let topic = Arc::clone(&route.topic);
        let message = if self.passes_on(&to, source) {
            Message::from_bridge(topic, mapped, intake, net.shared_input())
        } else {
            Message::from_input(topic, mapped, intake, net.shared_input())
        };
        // The exchange is the one with the remote broker, whatever form the message has here.
        let qos = publish.qos;
        let acknowledge =
            publish.packet_id.map(|packet_id| Acknowledge { slot, generation, qos, packet_id });
        self.send_to(net, message, to, acknowledge);
    }
}

/// Applies the rule for a message's topic; changes go to `topic` and `payload`. `None` without a
/// rule.
fn map<'a>(
    rules: &[IngressRule],
    there: &Publish<'a>,
    topic: &'a mut String,
    payload: &'a mut Vec<u8>,
) -> Option<Publish<'a>> {
    let rule = rules.iter().find(|rule| rule.filter.topic_filter().matches(there.topic))?;
    let values =
        Values { topic: there.topic, payload: there.payload, qos: there.qos, retain: there.retain };
    let mapping = &rule.mapping;
    let mut here = Publish {
        qos: mapping.qos(there.qos),
        retain: mapping.retain(there.retain),
        dup: false,
        packet_id: there.packet_id,
        properties: PublishProperties { topic_alias: None, ..there.properties },
        ..*there
    };
    if !mapping.topic.keeps_topic() {
        topic.clear();
        mapping.topic.render_topic(&values, topic);
        here.topic = topic;
    }
    if !mapping.payload.keeps_payload() {
        payload.clear();
        mapping.payload.render(&values, payload);
        here.payload = payload;
    }
    Some(here)
}

/// Whether messages may be published to this topic here.
fn is_topic(topic: &str) -> bool {
    tacho_codec::is_valid_topic_name(topic) && may_publish(topic).is_ok()
}
