//! What outlives the process: the journal that all shards write to, and the forms in which it keeps
//! messages, their places in queues, and sessions.
//!
//! Nothing here blocks a shard. Without a data directory none of it exists.

pub(crate) mod body;
mod bytes;
pub(crate) mod entry;
pub(crate) mod keys;
pub(crate) mod open;
pub(crate) mod reader;
pub(crate) mod records;
pub(crate) mod recovery;
mod reroute;
pub(crate) mod start;
pub(crate) mod threads;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_journal::{Journal, QueueId};
use tacho_net::Remote;

use crate::config::{Durability, Level, SessionLevels};
use crate::mail::Mail;
use reader::Reader;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] tacho_journal::OpenError),
    /// What is in it cannot be read.
    #[error("{0}")]
    Read(#[from] tacho_journal::ReadError),
    /// A thread that works with it cannot be started.
    #[error("a thread for it cannot be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// The journal as all shards share it.
pub(crate) struct Durable {
    pub(crate) journal: Journal,
    pub(crate) wall: WallClock,
    pub(crate) settings: Durability,
    /// By listener.
    pub(crate) levels: Vec<SessionLevels>,
    sessions_level: Level,
    /// How often the broker has started on this data directory, this time included.
    pub(crate) starts: u64,
    pub(crate) shards: Box<[ShardFlags]>,
    pub(crate) groups: GroupQueues,
    /// Brings messages back.
    pub(crate) reader: Reader,
}

/// What a shard tells the commit thread and the other shards.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ShardFlags {
    /// It wants to hear of the next commit.
    pub(crate) waits: AtomicBool,
    /// Durable sessions that it owns: others ask it for receipts.
    sessions: AtomicUsize,
}

impl Durable {
    pub(crate) fn new(
        journal: Journal,
        wall: WallClock,
        settings: Durability,
        levels: Vec<SessionLevels>,
        starts: u64,
        shards: usize,
        reader: Reader,
    ) -> Self {
        let shards = (0..shards).map(|_| ShardFlags::default()).collect();
        let groups = GroupQueues::new(first_seq(starts));
        let of_sessions = levels.iter().flat_map(|levels| [levels.persistent, levels.clean]);
        // Sessions of an earlier configuration may be here too.
        let sessions_level = of_sessions.max().unwrap_or(Level::Memory).max(Level::Written);
        Self { journal, wall, settings, levels, sessions_level, starts, shards, groups, reader }
    }

    /// A durable session is made. To be called before anything of it is visible to routing.
    pub(crate) fn session_came(&self, shard: usize) {
        self.shards[shard].sessions.fetch_add(1, Ordering::SeqCst);
    }

    /// A durable session is over.
    pub(crate) fn session_went(&self, shard: usize) {
        self.shards[shard].sessions.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether a shard may have durable sessions. To be asked after the route map was looked at: a
    /// subscription that is visible there belongs to a session that was counted before.
    #[inline]
    pub(crate) fn has_sessions(&self, shard: usize) -> bool {
        self.shards[shard].sessions.load(Ordering::SeqCst) > 0
    }

    /// The strongest level of any session: that of what is noted for all of them.
    pub(crate) fn sessions_level(&self) -> Level {
        self.sessions_level
    }

    /// The version of a retained message in the journal, where versions go on after a restart.
    pub(crate) fn retained_version(&self, version: u64) -> u64 {
        self.starts << RETAINED_VERSION_BITS | version
    }

    /// The version of the route map in the journal, where versions go on after a restart too.
    pub(crate) fn route_version(&self, version: u64) -> u64 {
        self.starts << ROUTE_VERSION_BITS | version
    }

    /// The commit thread calls this after every commit: shards that wait are told.
    pub(crate) fn committed(&self, remote: &Remote<Mail>) {
        for (shard, flags) in self.shards.iter().enumerate() {
            // A shard sets the flag and then looks at what is committed; here it is the other way
            // round, so one of the two sees the other.
            if flags.waits.swap(false, Ordering::SeqCst) {
                remote.post(shard, Mail::Committed);
            }
        }
    }
}

/// The first number that a place in a queue gets in a start of the broker, in queues that were
/// there before. No number comes twice in a queue: what was removed is in the log still, and what
/// has its number would be taken for it.
pub(crate) const fn first_seq(starts: u64) -> u64 {
    starts << SEQ_BITS
}

/// Places of one queue in one start of the broker have numbers of so many bits.
const SEQ_BITS: u32 = 40;

/// Retained messages of one start of the broker have numbers of so many bits.
const RETAINED_VERSION_BITS: u32 = 40;

/// Versions of the route map in one start of the broker have numbers of so many bits.
const ROUTE_VERSION_BITS: u32 = 40;

/// The queues in which messages of shared subscriptions wait, by the number of the group.
#[derive(Debug)]
pub(crate) struct GroupQueues {
    queues: Mutex<HashMap<u64, QueueId, RandomState>>,
    /// The last place that was taken in any of them: all shards take places.
    last_seq: AtomicU64,
}

impl GroupQueues {
    fn new(last_seq: u64) -> Self {
        Self { queues: Mutex::default(), last_seq: AtomicU64::new(last_seq) }
    }

    /// A new place in one of them, behind all that were taken.
    pub(crate) fn next_seq(&self) -> u64 {
        self.last_seq.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A place that was taken before the broker served anybody.
    pub(crate) fn seen(&self, seq: u64) {
        self.last_seq.fetch_max(seq, Ordering::Relaxed);
    }

    /// The queue of a group, if it has one.
    pub(crate) fn find(&self, group: u64) -> Option<QueueId> {
        self.lock().get(&group).copied()
    }

    /// The queue of a group, made with `make` if it has none.
    pub(crate) fn queue(&self, group: u64, make: impl FnOnce() -> QueueId) -> QueueId {
        *self.lock().entry(group).or_insert_with(make)
    }

    /// A group is over.
    pub(crate) fn remove(&self, group: u64) -> Option<QueueId> {
        self.lock().remove(&group)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, QueueId, RandomState>> {
        // Nothing panics while it is held.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the wall clock stands to the loops' clock. It is looked at once, at start: what has to end
/// after an hour ends after an hour, also if somebody sets the clock meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WallClock {
    offset_ns: i128,
}

impl WallClock {
    /// Both clocks are one.
    pub(crate) const UNIX: Self = Self { offset_ns: 0 };

    pub(crate) fn new(now_ns: u64, unix_ns: u64) -> Self {
        Self { offset_ns: i128::from(unix_ns) - i128::from(now_ns) }
    }

    /// An instant of the loops' clock as one of the wall clock; `u64::MAX` is never on both.
    pub(crate) fn to_unix(self, at_ns: u64) -> u64 {
        shift(at_ns, self.offset_ns)
    }

    /// The reverse. What was before the loops' clock began is 0: long ago.
    #[allow(clippy::wrong_self_convention, reason = "this clock turns instants both ways")]
    pub(crate) fn from_unix(self, unix_ns: u64) -> u64 {
        shift(unix_ns, -self.offset_ns)
    }
}

fn shift(at_ns: u64, by_ns: i128) -> u64 {
    if at_ns == u64::MAX {
        return u64::MAX;
    }
    let shifted = i128::from(at_ns) + by_ns;
    u64::try_from(shifted.max(0)).unwrap_or(u64::MAX).min(u64::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::WallClock;

    #[test]
    fn instants_come_back_and_never_stays_never() {
        for (now_ns, unix_ns) in [(5, 1_000), (1_000, 5)] {
            let wall = WallClock::new(now_ns, unix_ns);
            assert_eq!(wall.to_unix(now_ns), unix_ns);
            assert_eq!(wall.from_unix(unix_ns), now_ns);
            assert_eq!((wall.to_unix(u64::MAX), wall.from_unix(u64::MAX)), (u64::MAX, u64::MAX));
        }
        // Before the machine was started.
        assert_eq!(WallClock::new(5, 1_000).from_unix(3), 0);
    }
}
