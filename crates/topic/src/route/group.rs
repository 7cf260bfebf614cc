//! Shared subscription groups: which shard takes the next message.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize};

use super::{SHARDS_MAX, ShardSet};
use crate::{SharedFilter, TopicFilter, owner_shard};

/// A shared subscription group: one share name with one filter (MQTT 5.0 section 4.8.2).
///
/// The shards that have members write down here, without locks, how many are connected and how
/// many QoS 1 and 2 messages these could take at once: their credit. A publishing shard takes one
/// credit for each such message ([`reserve`](Self::reserve)), so that no two shards count on the
/// same room. What finds no credit waits at the owner ([`wait`](Self::wait)).
///
/// Whoever frees credit looks afterwards whether messages wait, and whoever lets a message wait
/// looks for credit afterwards; both in one total order, so that one of the two sees the other.
#[derive(Debug)]
pub struct Group {
    id: u64,
    filter: SharedFilter,
    loads: Box<[ShardLoad]>,
    waiting: Waiting,
    lasting: AtomicUsize,
    owner: usize,
}

/// What one shard says about its members; a cache line of its own, as its shard writes it often.
#[derive(Debug, Default)]
#[repr(align(64))]
struct ShardLoad {
    free_credit: AtomicI64,
    /// Credit of the connected members with nothing inflight.
    window: AtomicI64,
    connected: AtomicU32,
    /// Turns that this shard, as a publisher, has given to shards.
    turn: AtomicU64,
}

/// Every publish reads it; it is written only while messages wait.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Waiting(AtomicUsize);

/// The load of a group's members in one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupLoad {
    /// Members that are connected.
    pub connected: u32,
    /// QoS 1 and 2 messages that the connected members could take at once. Below 0 for a moment
    /// when members left whose credit was reserved.
    pub free_credit: i64,
    /// Credit in use or reserved, of connected members.
    pub inflight: i64,
}

/// How a shard is chosen among those with members that can take the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The one whose members have the fewest messages inflight; those that differ by less than a
    /// factor of two have turns, as many as they have members.
    LeastInflight,
    /// Each has turns, as many as it has members.
    InTurn,
    /// By a random number, each as likely as it has members.
    Random(u64),
}

impl Group {
    pub(super) fn new(id: u64, filter: SharedFilter, shards: usize) -> Self {
        assert!((1..=SHARDS_MAX).contains(&shards), "between 1 and SHARDS_MAX shards");
        let owner = owner_shard(0, filter.to_string().as_bytes(), shards);
        let loads = (0..shards).map(|_| ShardLoad::default()).collect();
        Self { id, filter, loads, waiting: Waiting::default(), lasting: AtomicUsize::new(0), owner }
    }

    /// A number, at least 1, that no other group of the map has or had.
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

    /// The shard that queues messages which no member can take.
    pub fn owner(&self) -> usize {
        self.owner
    }

    /// A member came or went whose session lasts beyond this process, connected or not.
    pub fn member_lasts(&self, came: bool) {
        if came {
            self.lasting.fetch_add(1, SeqCst);
        } else {
            self.lasting.fetch_sub(1, SeqCst);
        }
    }

    /// Members whose sessions last beyond this process.
    #[inline]
    pub fn lasting(&self) -> usize {
        self.lasting.load(SeqCst)
    }

    /// The number of shards that may have members.
    pub fn shards(&self) -> usize {
        self.loads.len()
    }

    /// A member of `shard` connected, or a connected one subscribed, whose window is so wide and
    /// has room for `credit` messages.
    pub fn member_connected(&self, shard: usize, window: u32, credit: u32) {
        let load = &self.loads[shard];
        load.connected.fetch_add(1, Relaxed);
        load.window.fetch_add(window.into(), Relaxed);
        load.free_credit.fetch_add(credit.into(), SeqCst);
    }

    /// A connected member of `shard` left, with what it last said about its window and credit.
    pub fn member_disconnected(&self, shard: usize, window: u32, credit: u32) {
        let load = &self.loads[shard];
        load.connected.fetch_sub(1, Relaxed);
        load.window.fetch_sub(window.into(), Relaxed);
        load.free_credit.fetch_sub(credit.into(), SeqCst);
    }

    /// The members of `shard` have so much more (or less) credit; a reservation that was not used
    /// is more credit too. Ask [`waiting`](Self::waiting) after having added some.
    pub fn credit_changed(&self, shard: usize, more: i64) {
        self.loads[shard].free_credit.fetch_add(more, SeqCst);
    }

    /// Messages that wait for credit or for a member, at the owner or on their way there.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting.0.load(SeqCst)
    }

    /// A message starts to wait: it is to be sent to the owner, which then looks for credit.
    pub fn wait(&self) {
        self.waiting.0.fetch_add(1, SeqCst);
    }

    /// So many messages wait no more.
    pub fn waited(&self, count: usize) {
        self.waiting.0.fetch_sub(count, SeqCst);
    }

    /// What `shard` last said about its members.
    pub fn load(&self, shard: usize) -> GroupLoad {
        let load = &self.loads[shard];
        let free_credit = load.free_credit.load(SeqCst);
        GroupLoad {
            connected: load.connected.load(Relaxed),
            free_credit,
            inflight: load.window.load(Relaxed) - free_credit,
        }
    }

    /// Chooses the shard for a message of QoS 1 or 2 and takes one credit from it. The message has
    /// to be sent there; the shard gives the credit back if no member uses it. `None` when no
    /// shard has credit. `from` is the shard that asks.
    pub fn reserve(&self, from: usize, choice: Choice) -> Option<usize> {
        let mut excluded = ShardSet::EMPTY;
        loop {
            let shard = self.choose(from, choice, excluded, true)?;
            // Never below 0, not even for a moment: nobody would tell of that credit's return.
            let take = |free: i64| (free > 0).then(|| free - 1);
            if self.loads[shard].free_credit.fetch_update(SeqCst, SeqCst, take).is_ok() {
                return Some(shard);
            }
            excluded.insert(shard);
        }
    }

    /// Chooses the shard for a message of QoS 0, which needs no credit but goes where there is
    /// some. `None` when no member is connected.
    pub fn pick(&self, from: usize, choice: Choice) -> Option<usize> {
        self.choose(from, choice, ShardSet::EMPTY, false)
    }

    /// Like [`pick`](Self::pick), for a message that the shards in `asked` cannot use.
    pub fn pick_other(&self, from: usize, choice: Choice, asked: ShardSet) -> Option<usize> {
        self.choose(from, choice, asked, false)
    }

    /// The shard for a key: the same for all who ask while the same members are connected. One
    /// that comes or goes moves only the keys that it gains or loses. `None` when no member is
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
            // Rendezvous: everyone draws a number, members of one shard draw together.
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

    /// Only `from` itself calls it, so there is nothing to race with.
    fn take_turn(&self, from: usize) -> u64 {
        let turn = &self.loads[from].turn;
        let number = turn.load(Relaxed);
        turn.store(number.wrapping_add(1), Relaxed);
        number
    }
}

/// The level of a shard without credit, above all others.
const FULL: u8 = 100;

impl GroupLoad {
    /// How much a member has inflight on average, in powers of two. Coarse, so that noise does not
    /// send everything one way.
    fn level(&self) -> u8 {
        let inflight = self.inflight.max(0).unsigned_abs() / u64::from(self.connected.max(1));
        (inflight + 1).ilog2() as u8
    }
}

/// Scatters the bits of a number (the finalizer of SplitMix64).
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests;
