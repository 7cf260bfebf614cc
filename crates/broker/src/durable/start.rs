//! Starting on a data directory: the journal is opened, and what it had is handed to the shards
//! that own it now, however many there are.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_journal::{
    Journal, Level, MessageId, Options, QueueId, ReadError, Record, Recovered, Urgency, Writer,
};
use tacho_topic::{Filter, Group, RouteChange, RouteMap, RouteSnapshot, SharedFilter, owner_shard};

use super::recovery::{Collector, FoundGroup, FoundSession, Sorted};
use super::reroute::reroute;
use super::{RETAINED_VERSION_BITS, WallClock, body, keys};
use crate::bridge::Bridges;
use crate::config::{Config, Durability};
use crate::delivery::{GroupRef, NO_GROUP};
use crate::keys::TenantId;
use crate::memory::Memory;
use crate::message::Message;

/// Messages read at once.
const READ_MAX: usize = 1_024;

/// What recovery needs to know of the broker that starts.
pub(crate) struct RecoveryContext<'a> {
    pub(crate) config: &'a Config,
    pub(crate) routes: &'a RouteMap,
    pub(crate) bridges: &'a Bridges,
    pub(crate) memory: &'a Memory,
}

/// What one shard is to have from the beginning.
#[derive(Default)]
pub(crate) struct ShardPart {
    pub(crate) sessions: Vec<FoundSession>,
    pub(crate) retained: Vec<Message>,
    pub(crate) groups: Vec<WaitingGroup>,
}

/// What waits for a shared subscription whose queue the shard keeps.
pub(crate) struct WaitingGroup {
    pub(crate) group: Arc<Group>,
    pub(crate) queue: QueueId,
    pub(crate) waiting: Vec<(u64, Message)>,
}

/// What the journal had.
pub(crate) struct ReadBack {
    /// How often the broker has started here, this time included.
    pub(crate) starts: u64,
    /// By shard.
    pub(crate) parts: Vec<ShardPart>,
    /// The queues of shared subscriptions, by the numbers of these in the route map.
    pub(crate) groups: Vec<(u64, QueueId)>,
}

/// The journal's settings.
pub(crate) fn journal_options(settings: &Durability) -> Options {
    let max = settings.journal_bytes_max;
    Options {
        linger: std::time::Duration::from_micros(settings.linger_us.into()),
        journal_bytes_max: (max > 0).then_some(max),
        ..Options::default()
    }
}

/// Reads everything back, makes the subscriptions visible in the route map, and gives each shard
/// its part. Nobody may be served before all shards have theirs.
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
    let mut sorted = found.sort_out(now_ns, wall);
    let mut writer = journal.writer();
    let starts = found.starts + 1;
    note_start(&mut writer, starts, &sorted.orphans);
    announce(&sorted.sessions, routes, shards);
    let snapshot = routes.snapshot();
    name_groups(&mut sorted, &snapshot);
    if !found.open.is_empty() {
        let open = std::mem::take(&mut found.open);
        reroute(open, &mut sorted, &mut writer, settings, bridges, wall);
    }
    if found.lost > 0 || !sorted.orphans.is_empty() {
        tracing::warn!(
            "the journal has {} records that this version does not understand or that refer to \
             what is gone, and {} queues without a session: they are left out",
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
            // Without members nothing waits.
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

/// `version` is above those of former starts: an older deletion changes nothing.
fn forget_group(writer: &mut Writer, filter: &SharedFilter, queue: QueueId, version: u64) {
    let key = keys::group(filter);
    let delete = Record::Delete { queue: QueueId::COMMON, key: &key, version };
    writer.append(delete, Level::Written, Urgency::Rides);
    writer.append(Record::DropQueue { queue }, Level::Written, Urgency::Rides);
}

/// Makes all subscriptions visible to all shards.
fn announce(sessions: &[FoundSession], routes: &RouteMap, shards: usize) {
    let mut known: HashSet<(usize, &Filter)> = HashSet::new();
    let mut changes = Vec::new();
    for session in sessions {
        let shard = owner_of(session, shards);
        for (filter, _) in &session.subscriptions {
            if known.insert((shard, filter)) {
                changes.push(RouteChange::Add { filter: filter.clone(), shard });
            }
        }
    }
    routes.apply(&changes);
}

/// Messages came through shared subscriptions, which the journal knows by their queues: from here
/// on they are known by the numbers that the route map has just given them.
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

/// Messages from the disk; those that cannot be read are left out, and said.
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
                None => tracing::error!(message = id.get(), "a waiting message cannot be read"),
            }
        }
    }
    messages
}

#[cfg(test)]
mod tests;
