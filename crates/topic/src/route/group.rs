//! Shared groups: load counters, and the choice of the shard for the next message.

mod registry;

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize};

use super::{SHARDS_MAX, ShardSet};
use crate::{SharedFilter, TopicFilter, owner_shard};

pub(super) use registry::GroupRegistry;

/// A shared group: one share name with one filter (MQTT 5.0 section 4.8.2).
///
/// The shards that have members publish here, without locks, how many members are connected and how
/// many QoS 1 and 2 messages these can accept at once: their credit. A publishing shard takes one
/// credit for each such message ([`reserve`](Self::reserve)), so that two shards never use the
/// same credit. Messages without credit wait at the owner ([`wait`](Self::wait)).
///
/// A shard that frees credit checks afterwards whether messages wait, and a shard that lets a
/// message wait checks for credit afterwards. All these operations are in one total order
/// (`SeqCst`), so at least one of the two sees the other.
#[derive(Debug)]
pub struct Group {
    id: u64,
    filter: SharedFilter,
    loads: Box<[ShardLoad]>,
    waiting: WaitingCount,
    members: AtomicUsize,
    durable_members: AtomicUsize,
    full: AtomicUsize,
    owner: usize,
    registry: Arc<GroupRegistry>,
}

/// The counters of one shard's members; on a cache line of its own, since the shard writes it
/// often.
#[derive(Debug, Default)]
#[repr(align(64))]
struct ShardLoad {
    free_credit: AtomicI64,
    /// The credit of the connected members when nothing is in flight.
    window: AtomicI64,
    connected: AtomicU32,
    /// Round-robin counter of this shard as a publisher.
    turn: AtomicU64,
}

/// On a cache line of its own: every publish reads it, and it is written only while messages wait.
#[derive(Debug, Default)]
#[repr(align(64))]
struct WaitingCount(AtomicUsize);

/// A member with a durable session, counted by its group until this is dropped.
#[derive(Debug)]
pub struct DurableMember(Arc<Group>);

/// The place of a message that waits for a member of a group, counted by the group until this is
/// dropped.
#[derive(Debug)]
pub struct WaitingPlace(Arc<Group>);

/// A queue of a group that is full: that of the group itself, or that of a member to which messages
/// are bound. Counted by the group until this is dropped.
#[derive(Debug)]
pub struct FullQueue(Arc<Group>);

/// The load of a group's members in one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupLoad {
    /// The number of connected members.
    pub connected: u32,
    /// The number of QoS 1 and 2 messages that the connected members can accept at once. Briefly
    /// below 0 when members leave whose credit is reserved.
    pub free_credit: i64,
    /// The credit of connected members that is in use or reserved.
    pub inflight: i64,
}

/// How a shard is chosen among those with members that can accept the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The shard whose members have the fewest messages in flight; round robin, weighted by
    /// members, among shards that differ by less than a factor of two.
    LeastInflight,
    /// Round robin, weighted by members.
    InTurn,
    /// By the given random number, weighted by members.
    Random(u64),
}

impl Drop for Group {
    fn drop(&mut self) {
        self.registry.dropped(self.id, &self.filter);
    }
}

impl Drop for DurableMember {
    fn drop(&mut self) {
        self.0.durable_members.fetch_sub(1, SeqCst);
    }
}

impl Drop for FullQueue {
    fn drop(&mut self) {
        self.0.full.fetch_sub(1, SeqCst);
    }
}

impl WaitingPlace {
    /// The group that the message waits for.
    pub fn group(&self) -> &Arc<Group> {
        &self.0
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        self.0.waiting.0.fetch_sub(1, SeqCst);
    }
}

impl Group {
    fn new(id: u64, filter: SharedFilter, shards: usize, registry: Arc<GroupRegistry>) -> Self {
        assert!((1..=SHARDS_MAX).contains(&shards), "between 1 and SHARDS_MAX shards");
        let owner = owner_shard(0, filter.to_string().as_bytes(), shards);
        let loads = (0..shards).map(|_| ShardLoad::default()).collect();
        let (members, durable_members) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (waiting, full) = (WaitingCount::default(), AtomicUsize::new(0));
        Self { id, filter, loads, waiting, members, durable_members, full, owner, registry }
    }

    /// A number, at least 1, that is unique among all groups that the map ever had.
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

    /// The shard that queues messages that no member can accept.
    pub fn owner(&self) -> usize {
        self.owner
    }

    /// Counts a member, connected or not, until it leaves or its session ends.
    pub fn member_joined(&self) {
        self.members.fetch_add(1, SeqCst);
    }

    /// A member left or its session ended; true if it was the last one. The map may name shards of
    /// the group for a while yet. Afterwards check [`waiting`](Self::waiting).
    pub fn member_left(&self) -> bool {
        self.members.fetch_sub(1, SeqCst) == 1
    }

    /// The number of members, connected or not. Without any, messages of the group have no
    /// receiver.
    #[inline]
    pub fn members(&self) -> usize {
        self.members.load(SeqCst)
    }

    /// Counts a member with a durable session, connected or not, until the result is dropped.
    #[must_use = "dropping it ends the membership"]
    pub fn durable_member(self: &Arc<Self>) -> DurableMember {
        self.durable_members.fetch_add(1, SeqCst);
        DurableMember(Arc::clone(self))
    }

    /// The number of members with durable sessions, connected or not.
    #[inline]
    pub fn durable_members(&self) -> usize {
        self.durable_members.load(SeqCst)
    }

    /// Counts a full queue until the result is dropped.
    #[must_use = "dropping it says that there is room"]
    pub fn full_queue(self: &Arc<Self>) -> FullQueue {
        self.full.fetch_add(1, SeqCst);
        FullQueue(Arc::clone(self))
    }

    /// Whether a queue of the group is full: publishers have to keep their messages.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.full.load(SeqCst) > 0
    }

    /// The number of shards that may have members.
    pub fn shards(&self) -> usize {
        self.loads.len()
    }

    /// A member of `shard` connected, or a connected session joined. Its window is `window`
    /// messages, of which `credit` are free.
    pub fn member_connected(&self, shard: usize, window: u32, credit: u32) {
        let load = &self.loads[shard];
        load.connected.fetch_add(1, Relaxed);
        load.window.fetch_add(window.into(), Relaxed);
        load.free_credit.fetch_add(credit.into(), SeqCst);
    }

    /// A connected member of `shard` left, with the window and credit it last reported.
    pub fn member_disconnected(&self, shard: usize, window: u32, credit: u32) {
        let load = &self.loads[shard];
        load.connected.fetch_sub(1, Relaxed);
        load.window.fetch_sub(window.into(), Relaxed);
        load.free_credit.fetch_sub(credit.into(), SeqCst);
    }

    /// Adds `change` to the credit of the members of `shard`; an unused reservation is returned
    /// this way too. After adding credit, check [`waiting`](Self::waiting).
    pub fn credit_changed(&self, shard: usize, change: i64) {
        self.loads[shard].free_credit.fetch_add(change, SeqCst);
    }

    /// The number of messages that wait for credit or for a member, at the owner or on their way
    /// there.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting.0.load(SeqCst)
    }

    /// Counts a message as waiting until the result is dropped. The caller sends both to the owner,
    /// which then checks for credit.
    #[must_use = "dropping it ends the wait"]
    pub fn wait(self: &Arc<Self>) -> WaitingPlace {
        self.waiting.0.fetch_add(1, SeqCst);
        WaitingPlace(Arc::clone(self))
    }

    /// The load that `shard` last reported.
    pub fn load(&self, shard: usize) -> GroupLoad {
        let load = &self.loads[shard];
        let free_credit = load.free_credit.load(SeqCst);
        GroupLoad {
            connected: load.connected.load(Relaxed),
            free_credit,
            inflight: load.window.load(Relaxed) - free_credit,
        }
    }

    /// Chooses the shard for a message of QoS 1 or 2 and takes one credit from it. The caller sends
    /// the message there; that shard returns the credit if no member uses it. `None` when no shard
    /// has credit. `from` is the calling shard.
    pub fn reserve(&self, from: usize, choice: Choice) -> Option<usize> {
        let mut excluded = ShardSet::EMPTY;
        loop {
            let shard = self.choose(from, choice, excluded, true)?;
            // Never below 0, not even briefly: nothing would announce the return of that credit.
            let take = |free: i64| (free > 0).then(|| free - 1);
            if self.loads[shard].free_credit.fetch_update(SeqCst, SeqCst, take).is_ok() {
                return Some(shard);
            }
            excluded.insert(shard);
        }
    }

    /// Chooses the shard for a message of QoS 0, which needs no credit but prefers shards that have
    /// some. `None` when no member is connected.
    pub fn pick(&self, from: usize, choice: Choice) -> Option<usize> {
        self.choose(from, choice, ShardSet::EMPTY, false)
    }

    /// Like [`pick`](Self::pick), but not among the shards in `asked`, which declined the message.
    pub fn pick_other(&self, from: usize, choice: Choice, asked: ShardSet) -> Option<usize> {
        self.choose(from, choice, asked, false)
    }

    /// The shard for a key: the same for all callers while the same members are connected. A member
    /// that joins or leaves moves only the keys that it gains or loses. `None` when no member is
    /// connected.
    pub fn pick_by_key(&self, key: u64) -> Option<usize> {
        let mut best = None;
        for (shard, load) in self.loads.iter().enumerate() {
            let connected = load.connected.load(Relaxed);
            if connected == 0 {
                continue;
            }
            if self.loads.len() == 1 {
                return Some(shard);
            }
            // Rendezvous hashing: each shard draws a number, weighted by its members.
            let drawn = mix(key ^ mix(shard as u64 + 1));
            let unit = ((drawn >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            let score = f64::from(connected) / -unit.ln();
            if best.is_none_or(|(least, _)| score > least) {
                best = Some((score, shard));
            }
        }
        best.map(|(_, shard)| shard)
    }

    fn choose(
        &self,
        from: usize,
        choice: Choice,
        excluded: ShardSet,
        needs_credit: bool,
    ) -> Option<usize> {
        let shards = self.loads.len();
        let mut weights = [0_u32; SHARDS_MAX];
        let mut levels = [u8::MAX; SHARDS_MAX];
        let mut least = u8::MAX;
        for shard in 0..shards {
            let load = self.load(shard);
            let is_full = load.free_credit <= 0;
            if load.connected == 0 || excluded.contains(shard) || (needs_credit && is_full) {
                continue;
            }
            weights[shard] = load.connected;
            levels[shard] = match choice {
                _ if is_full => FULL,
                Choice::LeastInflight => load.level(),
                Choice::InTurn | Choice::Random(_) => 0,
            };
            least = least.min(levels[shard]);
        }
        let is_least = |shard: &usize| levels[*shard] == least && weights[*shard] > 0;
        let total: u64 = (0..shards).filter(is_least).map(|s| u64::from(weights[s])).sum();
        if total == 0 {
            return None;
        }
        let mut place = match choice {
            // Multiply and shift maps the number to the range without a division.
            Choice::Random(number) => ((u128::from(number) * u128::from(total)) >> 64) as u64,
            Choice::LeastInflight | Choice::InTurn => self.take_turn(from) % total,
        };
        (0..shards).map(|step| (from + step) % shards).filter(is_least).find(|&shard| {
            let weight = u64::from(weights[shard]);
            let is_here = place < weight;
            place = place.saturating_sub(weight);
            is_here
        })
    }

    /// Only the shard `from` calls this, so load and store do not race.
    fn take_turn(&self, from: usize) -> u64 {
        let turn = &self.loads[from].turn;
        let number = turn.load(Relaxed);
        turn.store(number.wrapping_add(1), Relaxed);
        number
    }
}

/// The load level of a shard without credit, above all others.
const FULL: u8 = 100;

impl GroupLoad {
    /// The average number of messages in flight per member, as a power of two: coarse, so that
    /// noise does not send everything to one shard.
    fn level(&self) -> u8 {
        let inflight = self.inflight.max(0).unsigned_abs() / u64::from(self.connected.max(1));
        (inflight + 1).ilog2() as u8
    }
}

/// Mixes the bits of a number (the finalizer of SplitMix64).
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests;
