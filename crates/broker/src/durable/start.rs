//! Recovery: reads the journal back and assigns its content to the shards that own it with the
//! current number of shards.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_codec::QoS;
use tacho_journal::{
    Journal, Level, MessageId, Options, QueueId, ReadError, Record, Recovered, Urgency, Writer,
};
use tacho_topic::{
    Filter, Group, RouteChange, RouteMap, RouteMark, RouteSnapshot, SharedFilter, owner_shard,
};

use super::recovery::{Collector, FoundGroup, FoundSession, Sorted};
use super::reroute::reroute;
use super::{RETAINED_VERSION_BITS, WallClock, body, keys};
use crate::bridge::Bridges;
use crate::config::{Config, Durability};
use crate::delivery::{GroupRef, NO_GROUP};
use crate::keys::TenantId;
use crate::memory::Memory;
use crate::message::Message;

/// Messages per read.
const READ_MAX: usize = 1_024;

/// What recovery needs to know of the broker that starts.
pub(crate) struct RecoveryContext<'a> {
    pub(crate) config: &'a Config,
    pub(crate) routes: &'a RouteMap,
    pub(crate) bridges: &'a Bridges,
    pub(crate) memory: &'a Memory,
}

/// What one shard starts with.
#[derive(Default)]
pub(crate) struct ShardPart {
    pub(crate) sessions: Vec<FoundSession>,
    pub(crate) retained: Vec<Message>,
    pub(crate) groups: Vec<WaitingGroup>,
}

/// The queued messages of a shared subscription that the shard owns.
pub(crate) struct WaitingGroup {
    pub(crate) group: Arc<Group>,
    pub(crate) queue: QueueId,
    pub(crate) waiting: Vec<(u64, Message)>,
}

/// The content of the journal.
pub(crate) struct ReadBack {
    /// Number of starts, including this one.
    pub(crate) starts: u64,
    /// What each shard starts with.
    pub(crate) parts: Vec<ShardPart>,
    /// The queues of shared subscriptions, by their group numbers in the route map.
    pub(crate) groups: Vec<(u64, QueueId)>,
}

/// The options of the journal.
pub(crate) fn journal_options(settings: &Durability) -> Options {
    let max = settings.journal_bytes_max;
    Options {
        linger: std::time::Duration::from_micros(settings.linger_us.into()),
        journal_bytes_max: (max > 0).then_some(max),
        ..Options::default()
    }
}

/// Reads the journal, makes the subscriptions visible in the route map, and assigns everything to
/// the shards. No client may be served before all shards have restored their part.
pub(crate) fn read_back(
    journal: &Journal,
    recovered: &mut Recovered,
    context: &RecoveryContext<'_>,
    (wall, now_ns): (WallClock, u64),
) -> Result<ReadBack, ReadError> {
    let &RecoveryContext { config, routes, bridges, .. } = context;
    let (shards, settings) = (config.shards, &config.durability);
    let mut collector = Collector::new(wall);
    recovered.visit(&mut collector)?;
    let mut found = collector.found;
    let mut sorted = found.sort(now_ns, wall);
    let mut writer = journal.writer();
    let starts = found.starts + 1;
    note_start(&mut writer, starts, &sorted.orphans);
    announce(&sorted.sessions, routes, (shards, settings.offline_qos0));
    let snapshot = routes.snapshot();
    name_groups(&mut sorted, &snapshot);
    if !found.open.is_empty() {
        let open = std::mem::take(&mut found.open);
        reroute(open, &mut sorted, &mut writer, settings, bridges, wall);
    }
    if found.lost > 0 || !sorted.orphans.is_empty() {
        tracing::warn!(
            "ignored {} journal records that are unknown to this version or refer to missing ones, \
             and {} queues without a session",
            found.lost,
            sorted.orphans.len()
        );
    }
    let mut parts: Vec<ShardPart> = (0..shards).map(|_| ShardPart::default()).collect();
    for message in found.retained {
        let owner = owner_shard(TenantId::DEFAULT.0, message.topic().as_bytes(), shards);
        parts[owner].retained.push(message);
    }
    for session in sorted.sessions {
        parts[owner_of(&session, shards)].sessions.push(session);
    }
    let mut groups = Vec::new();
    for FoundGroup { filter, queue, waiting, .. } in sorted.groups {
        let Some(group) = snapshot.group(&filter) else {
            // A group without members has no queue.
            let version = starts << RETAINED_VERSION_BITS;
            forget_group(&mut writer, &filter, queue, version);
            continue;
        };
        groups.push((group.id(), queue));
        if !waiting.is_empty() {
            let waiting = read_all(journal, wall, &waiting);
            let part = &mut parts[group.owner()];
            part.groups.push(WaitingGroup { group: Arc::clone(group), queue, waiting });
        }
    }
    Ok(ReadBack { starts, parts, groups })
}

fn owner_of(session: &FoundSession, shards: usize) -> usize {
    session.record.key.owner(shards)
}

fn note_start(writer: &mut Writer, starts: u64, orphans: &[QueueId]) {
    let starts = Record::Put {
        queue: QueueId::COMMON,
        key: keys::STARTS,
        version: starts,
        value: &keys::encode_starts(starts),
        message: None,
    };
    writer.append(starts, Level::Fsynced, Urgency::Forces);
    for &queue in orphans {
        writer.append(Record::DropQueue { queue }, Level::Written, Urgency::Rides);
    }
}

/// `version` is above those of earlier starts: the deletion would otherwise have no effect.
fn forget_group(writer: &mut Writer, filter: &SharedFilter, queue: QueueId, version: u64) {
    let key = keys::group(filter);
    let delete = Record::Delete { queue: QueueId::COMMON, key: &key, version };
    writer.append(delete, Level::Written, Urgency::Rides);
    writer.append(Record::DropQueue { queue }, Level::Written, Urgency::Rides);
}

/// Adds all subscriptions to the route map, marked as those of durable sessions where the journal
/// may have to be written for them.
fn announce(sessions: &[FoundSession], routes: &RouteMap, (shards, keeps_qos0): (usize, bool)) {
    let mut known: HashSet<(usize, &Filter)> = HashSet::new();
    let mut marked: HashSet<(usize, &Filter)> = HashSet::new();
    let mut changes = Vec::new();
    for session in sessions {
        let shard = owner_of(session, shards);
        for (filter, options) in &session.subscriptions {
            if known.insert((shard, filter)) {
                changes.push(RouteChange::Add { filter: filter.clone(), shard });
            }
            let is_kept = keeps_qos0 || options.qos != QoS::AtMostOnce;
            if is_kept && !filter.is_shared() && marked.insert((shard, filter)) {
                let (filter, mark) = (filter.clone(), RouteMark::Durable);
                changes.push(RouteChange::Mark { filter, shard, mark, is_set: true });
            }
        }
    }
    routes.apply(&changes);
}

/// Replaces the groups of messages: the journal knows a shared subscription by its queue, the
/// shards by its number in the route map.
fn name_groups(sorted: &mut Sorted, snapshot: &RouteSnapshot) {
    let number = |found: &FoundGroup| Some((found.queue, snapshot.group(&found.filter)?.id()));
    let numbers: HashMap<QueueId, u64, RandomState> =
        sorted.groups.iter().filter_map(number).collect();
    let name = |group: &mut GroupRef| {
        if *group != NO_GROUP {
            let queue = QueueId::new(group.0);
            *group = numbers.get(&queue).map_or(NO_GROUP, |&number| GroupRef(number));
        }
    };
    for session in &mut sorted.sessions {
        let restored = &mut session.restored;
        restored.queued.iter_mut().for_each(|(_, delivery)| name(&mut delivery.message.group));
        let exchanges = restored.exchanges.iter_mut();
        exchanges
            .filter_map(|exchange| exchange.delivery.as_mut())
            .for_each(|delivery| name(&mut delivery.message.group));
    }
}

/// Reads messages from the disk. Messages that cannot be read are logged and left out.
fn read_all(
    journal: &Journal,
    wall: WallClock,
    wanted: &[(u64, MessageId)],
) -> Vec<(u64, Message)> {
    let mut messages = Vec::with_capacity(wanted.len());
    for wanted in wanted.chunks(READ_MAX) {
        let ids: Vec<MessageId> = wanted.iter().map(|(_, id)| *id).collect();
        for (&(seq, _), (id, read)) in wanted.iter().zip(journal.read(&ids)) {
            let message = read.ok().and_then(|bytes| body::decode(&bytes, wall, id));
            match message {
                Some(message) => messages.push((seq, message)),
                None => tracing::error!(
                    message = id.get(),
                    "cannot read a queued message from the journal"
                ),
            }
        }
    }
    messages
}

#[cfg(test)]
mod tests;
