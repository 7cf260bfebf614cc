//! Finishes the distribution of open messages after a restart: each matching queue that does not
//! have such a message gets it, and none gets it twice.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_codec::QoS;
use tacho_journal::{Level, MessageId, QueueId, Record, Urgency, Writer};
use tacho_session::{Delivery, SubscriptionIdList};
use tacho_topic::{Filter, SubscriptionIndex};

use super::recovery::{FoundGroup, FoundSession, OpenMessage, Sorted};
use super::{WallClock, entry};
use crate::bridge::Bridges;
use crate::config::Durability;
use crate::delivery::{Body, Copy, NO_GROUP};
use crate::keys::{ClientKey, SessionSlot};
use crate::memory::MESSAGE_BYTES;
use crate::subscription::{Scope, SubscriptionOptions, Target, merge_targets, rule_id};

/// Gives each open message to the durable sessions and shared subscriptions that match and do not
/// have it yet.
pub(crate) fn reroute(
    mut open: Vec<OpenMessage>,
    sorted: &mut Sorted,
    writer: &mut Writer,
    settings: &Durability,
    bridges: &Bridges,
    wall: WallClock,
) {
    open.sort_by_key(|open| open.message.stored());
    let mut rerouting = Rerouting::new(&sorted.sessions, settings, bridges, wall);
    for open in open {
        let Some(id) = open.message.stored() else { continue };
        rerouting.give_sessions(&open, id, &mut sorted.sessions, writer);
        rerouting.give_bridges(&open, id, &mut sorted.sessions, writer);
        rerouting.give_groups(&open, id, &mut sorted.groups, writer);
        writer.append(Record::Done { message: id }, Level::Written, Urgency::Rides);
    }
}

struct Rerouting<'a> {
    subscriptions: SubscriptionIndex<SessionSlot, SubscriptionOptions>,
    settings: &'a Durability,
    bridges: &'a Bridges,
    /// The indexes of the sessions of bridge links.
    links: HashMap<ClientKey, usize, RandomState>,
    wall: WallClock,
    meta: Vec<u8>,
}

impl<'a> Rerouting<'a> {
    fn new(
        sessions: &[FoundSession],
        settings: &'a Durability,
        bridges: &'a Bridges,
        wall: WallClock,
    ) -> Self {
        let mut subscriptions = SubscriptionIndex::new();
        for (index, session) in sessions.iter().enumerate() {
            for (filter, options) in &session.subscriptions {
                if let Filter::Plain(filter) = filter {
                    subscriptions.insert(filter, SessionSlot::new(index as u32), *options);
                }
            }
        }
        let keys = sessions.iter().map(|session| &session.record.key).enumerate();
        let links = keys.filter(|(_, key)| key.link().is_some());
        let links = links.map(|(place, key)| (key.clone(), place)).collect();
        Self { subscriptions, settings, bridges, links, wall, meta: Vec::new() }
    }

    fn give_sessions(
        &mut self,
        open: &OpenMessage,
        id: MessageId,
        sessions: &mut [FoundSession],
        writer: &mut Writer,
    ) {
        for target in self.targets(open) {
            let session = &mut sessions[target.session.index()];
            let is_own =
                self.bridges.source_of(&session.record.key) == open.message.header().source;
            let is_meant = match target.scope {
                Scope::Everyone => true,
                Scope::Others => !is_own,
                Scope::Own => is_own,
                // Links are found by the rules of their bridges.
                Scope::Bridge => false,
            };
            let is_meant = is_meant && open.routed.is_none_or(|routed| target.since <= routed);
            let qos = open.message.header().qos.min(target.qos);
            if !is_meant || !self.settings.keeps(qos) || open.served.contains(&session.queue) {
                continue;
            }
            let mut delivery = delivery(open, id);
            delivery.qos = qos;
            delivery.retain &= target.retain_as_published;
            delivery.subscription_ids = target.subscription_ids;
            self.give(session, id, delivery, writer);
        }
    }

    fn give_bridges(
        &mut self,
        open: &OpenMessage,
        id: MessageId,
        sessions: &mut [FoundSession],
        writer: &mut Writer,
    ) {
        let header = open.message.header();
        for bridge in self.bridges {
            let Some((place, rule)) = bridge.egress(&header.topic) else { continue };
            let link = bridge.key_of(bridge.link_of(place, &header.topic));
            // A new link gets only messages published from now on.
            let Some(&session) = self.links.get(&link) else { continue };
            let session = &mut sessions[session];
            let qos = rule.mapping.qos(header.qos);
            let is_own = bridge.source == header.source;
            if is_own || !self.settings.keeps(qos) || open.served.contains(&session.queue) {
                continue;
            }
            let mut delivery = delivery(open, id);
            delivery.qos = qos;
            delivery.retain = rule.mapping.retain(header.retain);
            delivery.subscription_ids = rule_id(place);
            delivery.size_bytes += MESSAGE_BYTES as u32;
            self.give(session, id, delivery, writer);
        }
    }

    fn targets(&self, open: &OpenMessage) -> Vec<Target> {
        let mut matched = Vec::new();
        let topic = open.message.topic();
        self.subscriptions
            .for_each_match(topic, |&session, &options| matched.push((session, options)));
        merge_targets(matched)
    }

    /// Appends a message to the queue of a session, also in the journal.
    fn give(
        &mut self,
        session: &mut FoundSession,
        id: MessageId,
        delivery: Delivery<Copy>,
        writer: &mut Writer,
    ) {
        entry::encode(&delivery, None, self.wall, &mut self.meta);
        let seq = session.restored.next_seq;
        session.restored.next_seq += 1;
        self.append(session.queue, seq, id, writer);
        session.restored.queued.push((seq, delivery));
    }

    fn give_groups(
        &mut self,
        open: &OpenMessage,
        id: MessageId,
        groups: &mut [FoundGroup],
        writer: &mut Writer,
    ) {
        if open.message.header().qos == QoS::AtMostOnce {
            return;
        }
        for group in groups {
            // The entry in the queue of the group also records messages that a member has.
            let has_got = open.served.contains(&group.queue);
            if has_got || !group.filter.filter().matches(open.message.topic()) {
                continue;
            }
            let seq = group.next_seq;
            group.next_seq += 1;
            entry::encode(&delivery(open, id), None, self.wall, &mut self.meta);
            self.append(group.queue, seq, id, writer);
            group.waiting.push((seq, id));
        }
    }

    fn append(&self, queue: QueueId, seq: u64, message: MessageId, writer: &mut Writer) {
        let meta = &self.meta;
        let state = entry::EntryStage::Queued.encode();
        let entry = Record::Entry { queue, seq, message, state, meta };
        writer.append(entry, Level::Fsynced, Urgency::Forces);
    }
}

/// The delivery of the message as published.
fn delivery(open: &OpenMessage, id: MessageId) -> Delivery<Copy> {
    let header = open.message.header();
    Delivery {
        message: Copy { message: Body::Stored(id), group: NO_GROUP },
        qos: header.qos,
        retain: header.retain,
        subscription_ids: SubscriptionIdList::NONE,
        size_bytes: open.message.size_bytes() as u32,
        expires_at_ns: header.expires_at_ns,
    }
}
