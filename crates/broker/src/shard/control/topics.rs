//! What the control plane learns of topics: subscribers, members of shared groups, retained
//! messages; and what an operator publishes and deletes.

use std::sync::Arc;

use tacho_codec::{Publish, PublishProperties, QoS};
use tacho_topic::{Filter, Group};

use crate::keys::SessionSlot;
use crate::message::Message;
use crate::query::{
    MemberRow, NotPublished, Publication, RetainedMessage, RetainedRow, RetainedScan,
    ScannedRetained, ScannedSubscribers, SubscriberRow, SubscriberScan,
};
use crate::shard::permission::may_publish;
use crate::shard::{Net, Shard};
use crate::subscription::SubscriptionOptions;

/// Subscribers, members and retained messages that are read in a microsecond.
const ROWS_PER_UNIT: usize = 4;
/// Retained messages in one answer.
const RETAINED_ROWS: usize = 256;
/// Topics that are visited for one answer about retained messages.
const RETAINED_STEPS: usize = 1_024;
const SECOND_NS: u64 = 1_000_000_000;

impl Shard {
    /// The options of a subscription of a session, shared or not.
    pub(super) fn subscription_options(
        &self,
        filter: &Filter,
        slot: SessionSlot,
    ) -> Option<SubscriptionOptions> {
        match filter {
            Filter::Plain(filter) => self.routing.options(filter, slot),
            Filter::Shared(shared) => {
                let group = self.routing.group(shared)?;
                self.groups.options_of(group, &self.sessions[slot].memberships)
            }
        }
    }

    pub(super) fn subscribers(&self, net: &mut Net, scan: &SubscriberScan) -> ScannedSubscribers {
        let mut rows = Vec::new();
        let total = self.routing.subscribers_from(
            (&scan.filter, scan.from, scan.limit),
            |slot, options| {
                // The subscriptions of a session that has ended are removed a little later.
                if let Some(session) = self.sessions.get(slot).filter(|s| s.link().is_none()) {
                    rows.push(SubscriberRow {
                        client_id: session.key().client_id.as_ref().into(),
                        filter: scan.filter.as_str().to_owned(),
                        qos: options.qos as u8,
                        connected: session.connection().is_some(),
                    });
                }
            },
        );
        net.charge((scan.limit / ROWS_PER_UNIT) as u32);
        let end = scan.from.saturating_add(scan.limit);
        ScannedSubscribers { rows, next: (end < total).then_some(end) }
    }

    /// The members of a group here, up to `limit`.
    pub(super) fn members(&self, net: &mut Net, group: &Group, limit: usize) -> Vec<MemberRow> {
        let members = self.groups.members_of(group).take(limit);
        let rows: Vec<MemberRow> = members
            .filter_map(|(slot, options)| {
                let session = self.sessions.get(slot)?;
                Some(MemberRow {
                    client_id: session.key().client_id.as_ref().into(),
                    qos: options.qos as u8,
                    connected: session.connection().is_some(),
                    inflight: session.machine.inflight_len(),
                    queue_len: session.machine.queue_len(),
                })
            })
            .collect();
        net.charge((rows.len() / ROWS_PER_UNIT) as u32);
        rows
    }

    pub(super) fn retained_rows(&self, net: &mut Net, scan: RetainedScan) -> ScannedRetained {
        let RetainedScan { filter, cursor, limit } = scan;
        let mut budget = RETAINED_STEPS;
        let (now_ns, len_max) = (net.now_ns(), limit.clamp(1, RETAINED_ROWS));
        let place = (&filter, cursor);
        let (messages, next) = self.retained.read(len_max, place, now_ns, &mut budget);
        net.charge(((RETAINED_STEPS - budget) / ROWS_PER_UNIT) as u32);
        let rows = messages.iter().map(|message| retained_row(message, now_ns)).collect();
        ScannedRetained { rows, next }
    }

    pub(super) fn retained_message(&self, net: &Net, topic: &str) -> Option<Box<RetainedMessage>> {
        let message = self.retained.get(topic).filter(|m| !m.is_expired(net.now_ns()))?;
        let publish = message.as_publish(net.now_ns());
        Some(Box::new(RetainedMessage {
            row: retained_row(message, net.now_ns()),
            payload: message.payload().to_vec(),
            content_type: publish.properties.content_type.map(str::to_owned),
        }))
    }

    /// Removes a retained message without publishing anything: clients that have it keep it.
    pub(super) fn delete_retained(&mut self, net: &mut Net, topic: &Arc<str>) -> bool {
        if self.retained.get(topic).is_none() {
            return false;
        }
        let retained_version = self.take_retained_version(net, topic);
        let publish = Publish { topic, retain: true, ..Publish::default() };
        let intake = self.own_intake(net, retained_version);
        let message = Message::from_publish(Arc::clone(topic), &publish, intake);
        if self.durability.has_journal() {
            self.record_retained(&message);
        }
        self.retain(net, message);
        true
    }

    /// Publishes a message of an operator, as it does the broker's own: what durable receivers are
    /// owed is written, and nothing waits for that.
    pub(super) fn publish_for_operator(
        &mut self,
        net: &mut Net,
        publication: &Publication,
    ) -> Result<(), NotPublished> {
        let Publication { topic, payload, qos, retain, expiry_s } = publication;
        may_publish(topic).map_err(|_| NotPublished::OwnTopic)?;
        let properties =
            PublishProperties { message_expiry_s: *expiry_s, ..PublishProperties::default() };
        let (qos, retain) = (*qos, *retain);
        let publish = Publish { topic, payload, qos, retain, properties, ..Publish::default() };
        self.refresh_routes();
        if qos != QoS::AtMostOnce
            && self.admission.may_refuse()
            && self.must_refuse(net, SessionSlot::NONE, &publish)
        {
            return Err(NotPublished::NoRoom);
        }
        self.publish_own(net, &publish);
        Ok(())
    }
}

fn retained_row(message: &Message, now_ns: u64) -> RetainedRow {
    let header = message.header();
    let left_ns = header.expires_at_ns.saturating_sub(now_ns);
    RetainedRow {
        topic: message.topic().to_owned(),
        qos: header.qos as u8,
        payload_bytes: message.payload().len(),
        user: header.user.as_ref().map(|user| user.to_string()),
        expires_in_s: (header.expires_at_ns != u64::MAX)
            .then(|| u32::try_from(left_ns.div_ceil(SECOND_NS)).unwrap_or(u32::MAX)),
    }
}
