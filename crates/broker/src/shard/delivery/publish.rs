//! Messages coming in: from a client's PUBLISH, from a will, from another shard.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tacho_access::{Access, Exceeded, PublishKind};
use tacho_codec::{PacketId, Publish, QoS, ReasonCode, Version};
use tacho_net::ConnId;
use tacho_session::{BatchSeq, Inbound};
use tacho_topic::owner_shard;

use super::fan_out::Completion;
use crate::config::OnDeny;
use crate::delivery::{ForOne, Receipt};
use crate::keys::{SessionSlot, TenantId};
use crate::mail::{Mail, SysValue};
use crate::message::{Intake, Message, Source};
use crate::shard::access::reason_of;
use crate::shard::durability::{Acknowledge, Sending};
use crate::shard::output::Flow;
use crate::shard::permission::may_publish;
use crate::shard::routing::Destinations;
use crate::shard::{Net, Shard};
use crate::trace::TraceKind;

impl Shard {
    /// A client's PUBLISH.
    #[inline]
    pub(in crate::shard) fn publish_received(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        publish: &Publish<'_>,
    ) -> Flow {
        self.stats.publishes_in_total.increment(publish.qos);
        self.stats.payload_in_bytes.observe(publish.payload.len() as u64);
        let now_ns = net.now_ns();
        let session = &mut self.sessions[slot];
        // Before the duplicate is let go: it may be what defines the alias on this connection.
        let alias = publish.properties.topic_alias;
        let aliased = match session.machine.resolve_alias(publish.topic, alias) {
            Ok(aliased) => aliased,
            Err(error) => return self.session_error(net, conn, &error),
        };
        if self.admission.may_refuse() && publish.qos != QoS::AtMostOnce {
            let topic = aliased.as_deref().unwrap_or(publish.topic);
            if let Some(flow) = self.refuse_new(net, conn, slot, topic, publish) {
                return flow;
            }
        }
        let topic = aliased.as_deref().unwrap_or(publish.topic);
        self.trace_publish_in(net, slot, topic, publish);
        let session = &mut self.sessions[slot];
        match session.machine.handle_publish(publish.qos, publish.packet_id) {
            Ok(Inbound::New) => session.pressure.message_taken(),
            Ok(Inbound::Duplicate) => return Flow::Continue,
            Err(error) => return self.session_error(net, conn, &error),
        }
        if let Err(reason) = may_publish(topic) {
            self.stats.refused_sys_publishes_total.increment();
            self.answer_publish(slot, publish.qos, publish.packet_id, reason);
            self.trace_denied(net, slot, ("publish", topic), "the topic is the broker's own");
            return Flow::Continue;
        }
        let routed_version = self.routing.version();
        let route = self.routing.lookup_near(topic, &mut self.sessions[slot].route_hint);
        let (to, topic) = (route.to.clone(), Arc::clone(&route.topic));
        if self.access.has_rules()
            && let Some(flow) = self.refuse_by_rules(net, conn, slot, &topic, publish)
        {
            return flow;
        }
        self.trace_route(net, slot, &topic, &to);
        let session = &self.sessions[slot];
        let (source, generation) = (session.source(), session.generation());
        let by_bridge = session.is_bridge();
        let user = session.access.user().filter(|_| publish.retain);
        let user = user.map(|user| Arc::clone(&user.name));
        let retained_version =
            if publish.retain { self.take_retained_version(net, &topic) } else { 0 };
        let intake =
            Intake { now_ns, routed_version, source, retained_version, user: user.as_ref() };
        let message = if by_bridge && self.passes_on(&to, source) {
            Message::from_bridge(topic, publish, intake, net.shared_input())
        } else {
            Message::from_input(topic, publish, intake, net.shared_input())
        };
        let acknowledge = publish.packet_id.map(|packet_id| Acknowledge {
            slot,
            generation,
            qos: publish.qos,
            packet_id,
        });
        self.send_to(net, message, to, acknowledge);
        Flow::Continue
    }

    /// Whether a message of this source may leave by a bridge, of this broker or of others.
    pub(in crate::shard) fn passes_on(&self, to: &Destinations, source: Source) -> bool {
        to.bridges.takes(source) || self.shared.bridges_subscribe.load(Ordering::Relaxed)
    }

    /// Refuses a PUBLISH that the access rules do not allow.
    #[inline]
    fn refuse_by_rules(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        topic: &Arc<str>,
        publish: &Publish<'_>,
    ) -> Option<Flow> {
        let kind = PublishKind::new(publish.qos as u8, publish.retain);
        if !self.may_publish_to(slot, topic, kind) {
            let asked = ("publish", Access::Publish(kind), &**topic);
            return Some(self.deny_publish(net, conn, slot, publish, asked));
        }
        let response_topic = publish.properties.response_topic?;
        if !self.may_not_answer_to(slot, response_topic) {
            return None;
        }
        let asked = ("name a response topic", Access::Receive, response_topic);
        Some(self.deny_publish(net, conn, slot, publish, asked))
    }

    /// The access rules do not allow a PUBLISH.
    #[cold]
    fn deny_publish(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        publish: &Publish<'_>,
        (action, access, topic): (&str, Access, &str),
    ) -> Flow {
        let limits = self.access.limits_of(self.sessions[slot].access.user_name());
        if access != Access::Receive
            && let Some(exceeded) = limits.exceeded(topic, publish.qos as u8, publish.retain)
        {
            return self.refuse_over_limit(net, conn, slot, publish, (topic, exceeded));
        }
        self.stats.denied_publishes_total.increment();
        let cause = self.cause_of(slot, access, topic);
        self.log_denied(net, slot, action, topic, &cause);
        let reason = ReasonCode::NOT_AUTHORIZED;
        match self.access.on_deny() {
            OnDeny::Refuse => {
                self.answer_publish(slot, publish.qos, publish.packet_id, reason);
                Flow::Continue
            }
            OnDeny::Disconnect => {
                let why = "the access rules do not allow this message";
                self.end_connection_because(net, conn, reason, why)
            }
        }
    }

    /// A PUBLISH exceeds a limit of its client's roles.
    #[cold]
    fn refuse_over_limit(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        publish: &Publish<'_>,
        (topic, exceeded): (&str, Exceeded),
    ) -> Flow {
        self.stats.over_limit(exceeded).increment();
        let (reason, why) = (reason_of(exceeded), exceeded.sentence());
        self.log_denied(net, slot, "publish", topic, &why);
        // CONNACK has said so: it is a protocol error (3.2.2.3.4, 3.2.2.3.5).
        let was_told = exceeded != Exceeded::TopicLevels;
        let is_v5 = self.sessions[slot].version() == Version::V5;
        if is_v5 && was_told || self.access.on_deny() == OnDeny::Disconnect {
            return self.end_connection_because(net, conn, reason, why);
        }
        self.answer_publish(slot, publish.qos, publish.packet_id, reason);
        Flow::Continue
    }

    /// Whether the publisher of a message must not name this response topic: the answer is for it,
    /// and one that it could not receive would be written by another client in its place.
    #[cold]
    fn may_not_answer_to(&mut self, slot: SessionSlot, topic: &str) -> bool {
        self.access.asks_response_topics() && !self.may_receive_from(slot, topic)
    }

    /// Refuses a PUBLISH that the session has noted.
    pub(in crate::shard) fn answer_publish(
        &mut self,
        slot: SessionSlot,
        qos: QoS,
        packet_id: Option<PacketId>,
        reason: ReasonCode,
    ) {
        self.act(slot, |machine, recorder| {
            machine.accept_publish(qos, packet_id, reason, BatchSeq::DONE, recorder);
        });
    }

    /// Publishes the will of a session, with the same rights and routes as any message of its user.
    pub(in crate::shard) fn publish_will(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        will: &Message,
    ) {
        // The rules may be others than when its client connected.
        if self.access.has_rules() && self.denies_will(net, slot, will) {
            return;
        }
        self.refresh_routes();
        let is_retained = will.header().retain;
        let retained_version =
            if is_retained { self.take_retained_version(net, will.topic()) } else { 0 };
        let intake = Intake {
            now_ns: net.now_ns(),
            routed_version: self.routing.version(),
            source: will.header().source,
            retained_version,
            user: will.header().user.as_ref(),
        };
        let message = will.will_published(intake);
        let route = self.routing.lookup(message.topic());
        let (to, topic) = (route.to.clone(), Arc::clone(&route.topic));
        self.trace_message(net, slot, (TraceKind::Route, &topic), "the will is published");
        self.trace_route(net, slot, &topic, &to);
        self.send_to(net, message, to, None);
    }

    /// Publishes the broker's own figures as retained messages of QoS 0: a subscriber that misses
    /// them gets newer ones soon.
    pub(in crate::shard) fn publish_sys(&mut self, net: &mut Net, values: &[SysValue]) {
        for value in values {
            self.publish_own(
                net,
                &Publish {
                    topic: &value.topic,
                    payload: value.payload.as_bytes(),
                    retain: true,
                    ..Publish::default()
                },
            );
        }
    }

    /// Publishes a message of the broker's own.
    pub(in crate::shard) fn publish_own(&mut self, net: &mut Net, publish: &Publish<'_>) {
        let retained_version =
            if publish.retain { self.take_retained_version(net, publish.topic) } else { 0 };
        let intake = self.own_intake(net, retained_version);
        let route = self.routing.lookup(publish.topic);
        let to = route.to.clone();
        let message = Message::from_publish(Arc::clone(&route.topic), publish, intake);
        self.send_to(net, message, to, None);
    }

    /// What the broker notes of a message of its own.
    pub(in crate::shard) fn own_intake(&self, net: &Net, retained_version: u64) -> Intake<'static> {
        Intake {
            now_ns: net.now_ns(),
            routed_version: self.routing.version(),
            source: Source::BROKER,
            retained_version,
            user: None,
        }
    }

    /// Sends a message everywhere it belongs: the retained store, shared subscriptions, other
    /// shards, this shard's subscribers.
    #[inline]
    pub(in crate::shard) fn send_to(
        &mut self,
        net: &mut Net,
        message: Message,
        to: Destinations,
        acknowledge: Option<Acknowledge>,
    ) {
        self.count_message_in(&message);
        if self.durability.has_journal() {
            return self.send_durably(net, message, to, acknowledge);
        }
        if message.header().retain {
            self.send_to_retained_owner(net, &message);
        }
        let (at_once, later) = self.at_once_or_later(to.groups, &message);
        if let Some(groups) = &at_once {
            self.route_to_groups(net, groups, &message);
        }
        for shard in to.remote.iter() {
            self.stats.forwarded_total.increment();
            net.post(shard, Mail::Deliver(message.clone(), None));
        }
        self.fan_out(net, message, to.local, later, Completion::acknowledges(acknowledge));
    }

    /// The same where some of it may have to be safe before it is acknowledged.
    fn send_durably(
        &mut self,
        net: &mut Net,
        message: Message,
        to: Destinations,
        acknowledge: Option<Acknowledge>,
    ) {
        let mut sending = Sending::new(acknowledge);
        if message.header().retain {
            sending.batch = self.record_retained(&message);
            self.send_to_retained_owner(net, &message);
        }
        let (at_once, later) = self.at_once_or_later(to.groups, &message);
        for group in at_once.iter().flat_map(|groups| groups.iter()) {
            let owed = self.owed_to_group(group, &mut sending, &message);
            self.route_to_group(net, group, ForOne { message: message.clone(), owed });
        }
        for shard in to.remote.iter() {
            self.stats.forwarded_total.increment();
            let receipt = self.receipt_of((shard, to.durable), &mut sending, &message);
            net.post(shard, Mail::Deliver(message.clone(), receipt));
        }
        if later.is_some() || !self.finishes_now(&message, to.local.len()) {
            // Before it has reached all, others may be through with it.
            self.open_for_later((to.durable, later.as_deref()), &mut sending, &message);
        }
        let receipt = self.own_receipt(&mut sending);
        let Sending { acknowledge, batch, .. } = sending;
        let completion = Completion { acknowledge, receipt, batch };
        self.fan_out(net, message, to.local, later, completion);
    }

    /// Another shard's message, for this shard's subscribers.
    pub(in crate::shard) fn deliver_forwarded(
        &mut self,
        net: &mut Net,
        from: usize,
        message: Message,
        receipt: Option<Receipt>,
    ) {
        self.refresh_routes();
        let route = self.routing.lookup(message.topic());
        let (local, durable) = (Rc::clone(&route.to.local), route.to.durable);
        let (topic, queued_before) = (Arc::clone(&route.topic), self.delivery.queued_total());
        let message = match receipt {
            None => self.with_own_record(message, durable),
            Some(_) => message,
        };
        let completion = Completion { receipt, ..Completion::default() };
        self.fan_out(net, message, local, None, completion);
        self.tell_if_clogged(net, from, &topic, queued_before);
    }

    fn send_to_retained_owner(&mut self, net: &mut Net, message: &Message) {
        let owner = self.retained_owner(message.topic(), net.shards());
        if owner == self.id {
            self.retain(net, message.clone());
        } else {
            net.post(owner, Mail::Retain(message.clone()));
        }
    }

    pub(in crate::shard) fn retained_owner(&self, topic: &str, shards: usize) -> usize {
        owner_shard(TenantId::DEFAULT.0, topic.as_bytes(), shards)
    }
}
