//! Messages whose distribution the end of the broker interrupted: who has not got them gets them
//! now, nobody twice.

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use tacho_codec::QoS;
use tacho_journal::{Level, MessageId, QueueId, Record, Urgency, Writer};
use tacho_session::Delivery;
use tacho_topic::{Filter, SubscriptionIndex};

use super::recovery::{FoundGroup, FoundSession, OpenMessage, Sorted};
use super::start::is_kept;
use super::{WallClock, entry};
use crate::config::Durability;
use crate::message::Source;
use crate::shard::{Body, Copy, NO_GROUP, Scope, SubscriptionOptions, Target, merge_targets};

/// Gives each of the messages to the durable sessions and shared subscriptions that are to have it
/// and have not.
pub(crate) fn reroute(
    mut open: Vec<OpenMessage>,
    sorted: &mut Sorted,
    writer: &mut Writer,
    settings: &Durability,
    wall: WallClock,
) {
    open.sort_by_key(|open| open.message.stored());
    let mut rerouting = Rerouting::new(&open, sorted, settings, wall);
    for open in open {
        let Some(id) = open.message.stored() else { continue };
        if open.group.is_none() {
            rerouting.give_sessions(&open, id, &mut sorted.sessions, writer);
        }
        rerouting.give_groups(&open, id, &mut sorted.groups, writer);
        writer.append(Record::Done { message: id }, Level::Written, Urgency::Rides);
    }
}

struct Rerouting<'a> {
    subscriptions: SubscriptionIndex<u32, SubscriptionOptions>,
    /// Members of shared subscriptions, by queue of the session, with the filter.
    members: HashMap<String, HashSet<QueueId, RandomState>, RandomState>,
    /// Open messages that somebody has through a shared subscription.
    through_groups: HashSet<(MessageId, u64), RandomState>,
    settings: &'a Durability,
    wall: WallClock,
    meta: Vec<u8>,
}

impl<'a> Rerouting<'a> {
    fn new(
        open: &[OpenMessage],
        sorted: &Sorted,
        settings: &'a Durability,
        wall: WallClock,
    ) -> Self {
        let mut subscriptions = SubscriptionIndex::new();
        let mut members: HashMap<String, HashSet<QueueId, RandomState>, RandomState> =
            HashMap::default();
        let open: HashSet<MessageId, RandomState> =
            open.iter().filter_map(|open| open.message.stored()).collect();
        let mut through_groups = HashSet::default();
        for (index, session) in sorted.sessions.iter().enumerate() {
            for (filter, options) in &session.subscriptions {
                match filter {
                    Filter::Plain(filter) => {
                        subscriptions.insert(filter, index as u32, *options);
                    }
                    Filter::Shared(shared) => {
                        members.entry(shared.to_string()).or_default().insert(session.queue);
                    }
                }
            }
            let restored = &session.restored;
            let exchanges = restored.exchanges.iter().filter_map(|e| e.delivery.as_ref());
            let queued = restored.queued.iter().map(|(_, delivery)| delivery);
            for delivery in exchanges.chain(queued) {
                if let Copy { message: Body::Stored(id), group } = &delivery.message
                    && *group != NO_GROUP
                    && open.contains(id)
                {
                    through_groups.insert((*id, group.0));
                }
            }
        }
        Self { subscriptions, members, through_groups, settings, wall, meta: Vec::new() }
    }

    fn give_sessions(
        &mut self,
        open: &OpenMessage,
        id: MessageId,
        sessions: &mut [FoundSession],
        writer: &mut Writer,
    ) {
        for target in self.targets(open) {
            let session = &mut sessions[target.session as usize];
            let is_own = Source::of(&session.record.key) == open.message.header().source;
            let is_meant = match target.scope {
                Scope::Everyone => true,
                Scope::Others => !is_own,
                Scope::Own => is_own,
            };
            let qos = open.message.header().qos.min(target.qos);
            if !is_meant || !is_kept(qos, self.settings) || open.served.contains(&session.queue) {
                continue;
            }
            let delivery = delivery(open, id, qos, &target);
            entry::encode(&delivery, None, self.wall, &mut self.meta);
            let seq = session.restored.next_seq;
            session.restored.next_seq += 1;
            self.append(session.queue, seq, id, writer);
            session.restored.queued.push((seq, delivery));
        }
    }

    fn targets(&self, open: &OpenMessage) -> Vec<Target> {
        let mut matched = Vec::new();
        let topic = open.message.topic();
        self.subscriptions
            .for_each_match(topic, |&session, &options| matched.push((session, options)));
        merge_targets(matched)
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
            let is_meant = match open.group {
                Some(queue) => queue == group.queue,
                None => group.filter.filter().matches(open.message.topic()),
            };
            if !is_meant || self.has_got(open, id, group) {
                continue;
            }
            let seq = group.next_seq;
            group.next_seq += 1;
            let target = Target {
                session: 0,
                qos: QoS::ExactlyOnce,
                retain_as_published: true,
                scope: Scope::Everyone,
                since: 0,
                subscription_ids: tacho_session::SubscriptionIdList::NONE,
            };
            let delivery = delivery(open, id, open.message.header().qos, &target);
            entry::encode(&delivery, None, self.wall, &mut self.meta);
            self.append(group.queue, seq, id, writer);
            group.waiting.push((seq, id));
        }
    }

    /// Whether a member has the message, or it waits for one. A member that was given it and has
    /// it no more has acknowledged it, or left it: that is what an open message of one group says.
    fn has_got(&self, open: &OpenMessage, id: MessageId, group: &FoundGroup) -> bool {
        let waits = group.waiting.iter().any(|(_, waiting)| *waiting == id);
        if waits || group.number.is_some_and(|n| self.through_groups.contains(&(id, n))) {
            return true;
        }
        let members = self.members.get(&group.filter.to_string());
        open.group.is_none()
            && members.is_some_and(|members| {
                open.served.iter().any(|served| *served == group.queue || members.contains(served))
            })
    }

    fn append(&self, queue: QueueId, seq: u64, message: MessageId, writer: &mut Writer) {
        let meta = &self.meta;
        let state = entry::Stage::Queued.encode();
        let entry = Record::Entry { queue, seq, message, state, meta };
        writer.append(entry, Level::Fsynced, Urgency::Forces);
    }
}

fn delivery(open: &OpenMessage, id: MessageId, qos: QoS, target: &Target) -> Delivery<Copy> {
    let header = open.message.header();
    Delivery {
        message: Copy { message: Body::Stored(id), group: NO_GROUP },
        qos,
        retain: header.retain && target.retain_as_published,
        subscription_ids: target.subscription_ids.clone(),
        size_bytes: open.message.size_bytes() as u32,
        expires_at_ns: header.expires_at_ns,
    }
}
