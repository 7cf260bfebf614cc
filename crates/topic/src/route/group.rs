//! Shared subscription groups: which shard takes the next message.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::SHARDS_MAX;
use crate::{SharedFilter, TopicFilter, owner_shard};

/// A shared subscription group: one share name with one filter (MQTT 5.0 section 4.8.2).
///
/// The shards that have members write down here, without locks, how many are connected and how
/// busy they are; publishing shards read it to choose a shard. The numbers are hints: a shard that
/// was chosen and finds no connected member any more passes the message on.
#[derive(Debug)]
pub struct Group {
    id: u64,
    filter: SharedFilter,
    loads: Box<[ShardLoad]>,
    /// Turns among shards that are equally busy, one member after the other.
    turn: AtomicU64,
    owner: usize,
}

/// What one shard says about its members; a cache line of its own, as its shard writes it often.
#[derive(Debug, Default)]
#[repr(align(64))]
struct ShardLoad {
    free_credit: AtomicI64,
    connected: AtomicU32,
    inflight: AtomicU32,
}

/// The load of a group's members in one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupLoad {
    /// Members that are connected.
    pub connected: u32,
    /// QoS 1 and 2 messages that the connected members could take at once.
    pub free_credit: i64,
    /// QoS 1 and 2 messages sent to connected members and not yet acknowledged.
    pub inflight: u32,
}

impl Group {
    pub(super) fn new(id: u64, filter: SharedFilter, shards: usize) -> Self {
        assert!((1..=SHARDS_MAX).contains(&shards), "between 1 and SHARDS_MAX shards");
        let owner = owner_shard(0, filter.to_string().as_bytes(), shards);
        let loads = (0..shards).map(|_| ShardLoad::default()).collect();
        Self { id, filter, loads, turn: AtomicU64::new(0), owner }
    }

    /// A number that no other group of the map has or had.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The share name.
    pub fn name(&self) -> &str {
        self.filter.group()
    }

    /// The topic filter behind the share name.
    pub fn filter(&self) -> &TopicFilter {
        self.filter.filter()
    }

    /// Share name and topic filter.
    pub fn shared_filter(&self) -> &SharedFilter {
        &self.filter
    }

    /// The shard that queues messages while no member is connected.
    pub fn owner(&self) -> usize {
        self.owner
    }

    /// A member of `shard` connected, or a connected one subscribed, with room for `credit` QoS 1
    /// and 2 messages.
    pub fn member_connected(&self, shard: usize, credit: i64) {
        self.loads[shard].connected.fetch_add(1, Relaxed);
        self.loads[shard].free_credit.fetch_add(credit, Relaxed);
    }

    /// A connected member of `shard` left, with `credit` still free and `inflight` messages not
    /// acknowledged.
    pub fn member_disconnected(&self, shard: usize, credit: i64, inflight: u32) {
        self.loads[shard].connected.fetch_sub(1, Relaxed);
        self.loads[shard].free_credit.fetch_sub(credit, Relaxed);
        self.loads[shard].inflight.fetch_sub(inflight, Relaxed);
    }

    /// A QoS 1 or 2 message went to a connected member of `shard`: one credit became inflight.
    pub fn message_sent(&self, shard: usize) {
        self.loads[shard].free_credit.fetch_sub(1, Relaxed);
        self.loads[shard].inflight.fetch_add(1, Relaxed);
    }

    /// A message sent was acknowledged by the connected member: its credit is free again.
    pub fn message_settled(&self, shard: usize) {
        self.loads[shard].free_credit.fetch_add(1, Relaxed);
        self.loads[shard].inflight.fetch_sub(1, Relaxed);
    }

    /// What `shard` last said about its members.
    pub fn load(&self, shard: usize) -> GroupLoad {
        let load = &self.loads[shard];
        GroupLoad {
            connected: load.connected.load(Relaxed),
            free_credit: load.free_credit.load(Relaxed),
            inflight: load.inflight.load(Relaxed),
        }
    }

    /// The shard that should take the next message: one with connected members and the smallest
    /// part of its credit inflight. Among equals each shard has a turn per connected member, the
    /// first going to `prefer_local`, so that equally idle members share evenly. `None` when no
    /// member is connected: then the message waits at [`Group::owner`].
    pub fn pick_shard(&self, prefer_local: usize) -> Option<usize> {
        let mut best: Option<GroupLoad> = None;
        let mut equals = [(0, 0); SHARDS_MAX];
        let mut equals_len = 0;
        let mut equal_members = 0;
        let shards = self.loads.len();
        for shard in (0..shards).map(|step| (prefer_local + step) % shards) {
            let load = self.load(shard);
            if load.connected == 0 {
                continue;
            }
            let order = best.map_or(std::cmp::Ordering::Less, |best| load.compare(&best));
            if order.is_lt() {
                (best, equals_len, equal_members) = (Some(load), 0, 0);
            }
            if order.is_le() {
                equals[equals_len] = (shard, load.connected);
                equals_len += 1;
                equal_members += u64::from(load.connected);
            }
        }
        match &equals[..equals_len] {
            [] => None,
            [(only, _)] => Some(*only),
            several => {
                let mut turn = self.turn.fetch_add(1, Relaxed) % equal_members;
                let is_turn = |&&(_, connected): &&(usize, u32)| {
                    let is_here = turn < u64::from(connected);
                    turn = turn.saturating_sub(u64::from(connected));
                    is_here
                };
                several.iter().find(is_turn).map(|&(shard, _)| shard)
            }
        }
    }
}

impl GroupLoad {
    /// Orders by the part of the credit that is inflight; no free credit is busiest.
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let credit = |load: &Self| u128::from(load.free_credit.max(0).unsigned_abs());
        let inflight = |load: &Self| u128::from(load.inflight);
        let is_full = |load: &Self| load.free_credit <= 0 && load.inflight > 0;
        // At least 1, so that members that never get credit compare as idle.
        let total = |load: &Self| (inflight(load) + credit(load)).max(1);
        is_full(self).cmp(&is_full(other)).then_with(|| {
            // inflight / total, compared without division.
            (inflight(self) * total(other)).cmp(&(inflight(other) * total(self)))
        })
    }
}

#[cfg(test)]
mod tests;
