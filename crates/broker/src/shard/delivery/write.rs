//! Packets of a session into the output of its connection.

use std::sync::Arc;

use tacho_codec::{Ack, AckKind, PacketId, Publish, QoS, Version};
use tacho_net::ConnId;
use tacho_session::{AliasOut, Delivery, Transmit};

use crate::delivery::{Body, Copy, NO_GROUP};
use crate::keys::SessionSlot;
use crate::message::{Message, SharedPayload};
use crate::shard::sessions::{PublishForm, Session};
use crate::shard::{Net, Shard};
use crate::trace::TraceKind;

/// Payloads from this size on go to the socket by reference instead of being copied.
pub(in crate::shard) const BY_REFERENCE_BYTES: usize = 4096;
/// What the head of a PUBLISH takes, about.
const HEAD_BYTES: usize = 64;

impl Shard {
    #[inline]
    pub(super) fn transmit(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        conn: ConnId,
        transmit: Transmit<Copy>,
    ) {
        match transmit {
            Transmit::Publish { delivery, packet_id, dup } => {
                self.write_publish(net, slot, conn, &delivery, packet_id, dup);
            }
            Transmit::Ack { kind, packet_id, reason } => {
                self.write_ack(net, slot, conn, kind, Ack::new(packet_id, reason));
            }
            Transmit::PubRel { packet_id, reason } => {
                self.write_ack(net, slot, conn, AckKind::PubRel, Ack::new(packet_id, reason));
            }
        }
    }

    #[inline]
    fn write_ack(
        &self,
        net: &mut Net,
        slot: SessionSlot,
        conn: ConnId,
        kind: AckKind,
        ack: Ack<'_>,
    ) {
        let version = self.sessions[slot].version();
        self.trace_ack(net, slot, TraceKind::Out, (kind, &ack));
        self.stats.acks_out_total.increment();
        let encoded = ack.encode(kind, version, net.out(conn).as_vec_mut());
        debug_assert!(encoded.is_ok(), "an acknowledgement without properties is always encodable");
    }

    /// A client is not to have a message that was about to be sent to it.
    #[cold]
    fn withhold(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        message: &Message,
        packet_id: Option<PacketId>,
        goes_on: bool,
    ) {
        self.trace_unsent(net, slot, message, "the access rules do not allow it");
        self.stats.denied_deliveries_total.increment();
        match packet_id.filter(|_| goes_on) {
            Some(packet_id) => self.pass_on_withheld(net, slot, packet_id),
            // It counts as delivered.
            None => self.act(slot, |machine, recorder| machine.withhold(packet_id, recorder)),
        }
    }

    fn write_publish(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        conn: ConnId,
        delivery: &Delivery<Copy>,
        packet_id: Option<PacketId>,
        dup: bool,
    ) {
        // Invariant: the machine hands out what is loaded.
        let Body::Here(message) = &delivery.message.message else { return };
        if self.access.has_rules() && self.withholds(slot, message.topic()) {
            // As at the end of a session, another member may have it, unless it is of QoS 2 and was
            // sent before [MQTT-4.8.2-5].
            let may_repeat = !dup || delivery.qos == QoS::AtLeastOnce;
            let goes_on = delivery.message.group != NO_GROUP && may_repeat;
            return self.withhold(net, slot, message, packet_id, goes_on);
        }
        let session = &mut self.sessions[slot];
        if session.terms().publishes() == PublishForm::Mapped {
            return self.write_to_bridge(net, slot, conn, delivery, packet_id, dup);
        }
        let mut publish = message.as_publish(net.now_ns());
        publish.qos = delivery.qos;
        publish.retain = delivery.retain;
        publish.dup = dup;
        publish.packet_id = packet_id;
        let (version, v5) = (session.version(), session.version() == Version::V5);
        // [MQTT-3.3.4-3], [MQTT-3.3.4-4].
        if v5 && !delivery.subscription_ids.is_empty() {
            self.delivery.ids.clear();
            for &id in delivery.subscription_ids.as_slice() {
                // Invariant: the codec accepted this identifier in SUBSCRIBE.
                let pushed = self.delivery.ids.push(id);
                debug_assert!(pushed.is_ok(), "a subscription identifier within its range");
            }
            publish.properties.subscription_ids = self.delivery.ids.view();
        }
        if session.terms().publishes() == PublishForm::Fitted
            && !suit(session, &message.header().topic, &mut publish)
        {
            // As if it had been delivered [MQTT-3.1.2-25].
            self.stats.dropped_too_large_total.increment();
            self.trace_unsent(net, slot, message, "larger than the client accepts");
            self.act(slot, |machine, recorder| machine.abandon(packet_id, recorder));
            return;
        }
        self.stats.publishes_out_total.increment(publish.qos);
        self.stats.payload_bytes_out_total.add(publish.payload.len() as u64);
        if publish.topic.is_empty() {
            self.stats.publishes_aliased_out_total.increment();
        }
        self.trace_publish_out(net, slot, &message.header().topic, &publish);
        let output = match self.delivery.may_wait {
            true => net.out_later(conn, HEAD_BYTES + publish.payload.len()),
            false => net.out(conn),
        };
        let bytes = output.as_vec_mut();
        if let Some(head) = self.delivery.heads.head(message, &publish, version) {
            head.append(bytes, dup, publish.retain, publish.qos, packet_id);
        } else {
            let written = publish.encode_head(version, bytes);
            debug_assert!(written.is_ok(), "a message taken in can be sent out");
        }
        if publish.payload.len() < BY_REFERENCE_BYTES {
            bytes.extend_from_slice(publish.payload);
        } else {
            output.push_shared(SharedPayload(message.clone()));
        }
    }
}

/// Makes a PUBLISH suit a client that takes topic aliases or has a Maximum Packet Size; false if it
/// is too large for it [MQTT-3.1.2-24].
#[cold]
#[inline(never)]
fn suit(session: &mut Session, topic: &Arc<str>, publish: &mut Publish<'_>) -> bool {
    let plan = session.machine.plan_alias(topic);
    if let AliasOut::Use(alias) = plan {
        publish.topic = "";
        publish.properties.topic_alias = Some(alias);
    }
    if !session.terms().take(publish) {
        return false;
    }
    if let AliasOut::Define(alias) = plan {
        publish.properties.topic_alias = Some(alias);
        if session.terms().take(publish) {
            session.machine.define_alias(alias, topic);
        } else {
            publish.properties.topic_alias = None;
        }
    }
    true
}
