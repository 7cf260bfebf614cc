//! Durable messages: the journal that all shards append to, and the formats of messages, queue
//! entries and sessions in it. Without a data directory none of it is used. Shards never block on
//! it.
//!
//! # Record batches
//!
//! The records that a shard appends while it handles one event (a read, a mail, a timer) form one
//! record batch. A commit of the journal takes a record batch as a whole or not at all. So a QoS 2
//! message and the packet identifier that makes its retransmission a duplicate survive together,
//! and a message that moves from one member of a shared subscription to another is in exactly one
//! queue at any time. A session refers to record batches of its shard (`BatchSeq`); the commit that
//! contains a batch (`CommitSeq`) is known once the batch is closed.
//!
//! # One record per message
//!
//! A message is written once, when the first durable queue needs it, and its handle remembers its
//! message identifier. Queues have entries that refer to the identifier. An identifier may be used
//! only while something keeps the record alive: within the same event, or while the message is
//! open. A shard that cannot rely on this (a replay of a retained message, a forwarded message
//! without a receipt) writes its own record.
//!
//! # Open messages
//!
//! If shards other than the publisher's have durable sessions that may get a message (the route map
//! marks such filters), or a shared subscription has durable members, or the fan-out continues in
//! later turns, the message is recorded as open before it is forwarded. Each part of the
//! distribution ends with a receipt that names the commit that makes it safe. With the last receipt
//! the message is recorded as done, and its publisher is acknowledged when the latest of these
//! commits is complete.
//!
//! After a crash, recovery gives open messages to the subscribers that do not have them yet
//! ([`start`], `reroute`). A retained message is not given to subscriptions that became visible
//! after it was routed: they get it from their replay. That a shared subscription has had its
//! message is recorded with the entry of the member, in the queue of the group, so that it holds
//! after the member has acknowledged the message or left.
//!
//! A message that a member leaves has an entry in the queue of the group from that moment on. The
//! record batch that stores its next place removes this entry. A message of a durable group that is
//! handed to a member in memory keeps such an entry until the member has acknowledged it; at QoS 2
//! the entry is removed, and the removal committed, before the message is sent, because afterwards
//! no other member may get it.
//!
//! # Waiting for commits
//!
//! Acknowledgements wait in the sessions, in order, with the record batch that they need. A shard
//! that waits for a commit sets a flag; the commit thread posts one mail per commit to such shards
//! ([`Durable::committed`]), and a shard then serves each session that waited for this commit once.
//! A message that reaches only sessions in memory waits for no commit.
//!
//! A QoS 1 message to a connected durable session is sent at once and recorded as sent. QoS 2
//! messages and PUBREL are sent after their commit. Records of PUBACK and PUBCOMP from subscribers
//! are written with the next commit that something else requests.
//!
//! A shard requests a commit when its event loop has nothing else to do, or after three
//! milliseconds of turns without a pause. On an idle broker that is immediately. On a busy one the
//! commit takes more records, and deliveries are sent meanwhile: a message that all receivers have
//! acknowledged before its commit is not written at all.
//!
//! # Retained messages
//!
//! The shard of the publisher writes a retained message, with the version that orders it. The owner
//! of the topic removes it if a limit does not allow it.
//!
//! # A journal that cannot take more
//!
//! While the disk is full or failing, or the journal is at its size limit, a message that would
//! have to be written is refused before it is acknowledged, as if the memory budget for queues were
//! used up. Everything else continues.
//!
//! # Recovery
//!
//! [`threads`] opens the data directory and starts the threads. [`start`] reads the journal back
//! before any client is served and gives each shard the sessions, retained messages and groups that
//! it owns with the current number of shards. Messages of sessions stay on disk; [`reader`] loads
//! them when they are about to be sent.

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
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_journal::{Journal, QueueId};
use tacho_net::Remote;
use tacho_topic::{Group, ShardSet};

use crate::config::{Durability, Level, QueueLimits, SessionLevels};
use crate::mail::Mail;
use reader::Reader;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] tacho_journal::OpenError),
    /// Its records cannot be read.
    #[error("{0}")]
    Read(#[from] tacho_journal::ReadError),
    /// One of its threads cannot be started.
    #[error("cannot start a thread for it: {0}")]
    Thread(#[from] std::io::Error),
}

/// The journal as all shards share it.
pub(crate) struct Durable {
    pub(crate) journal: Journal,
    pub(crate) wall: WallClock,
    pub(crate) settings: Durability,
    /// The limits of the queue of one session.
    pub(crate) session_queue: QueueLimits,
    sessions_level: Level,
    /// Number of starts on this data directory, including this one.
    pub(crate) starts: u64,
    shards: Box<[Arc<ShardFlags>]>,
    pub(crate) groups: GroupQueues,
    /// Loads messages from the disk.
    pub(crate) reader: Reader,
}

/// What the commit thread and other shards read of a shard.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ShardFlags {
    /// The shard waits for the next commit.
    pub(crate) waits: AtomicBool,
    /// Durable sessions that it owns. The shard's `Sessions` keeps the number.
    pub(crate) sessions: AtomicUsize,
}

impl Durable {
    pub(crate) fn new(
        journal: Journal,
        wall: WallClock,
        settings: Durability,
        levels: &[SessionLevels],
        starts: u64,
        shards: usize,
        reader: Reader,
    ) -> Self {
        let shards = (0..shards).map(|_| Arc::default()).collect();
        let groups = GroupQueues::new(first_seq(starts));
        let of_sessions = levels.iter().flat_map(|levels| [levels.persistent, levels.clean]);
        // Recovered sessions may have levels of an earlier configuration.
        let sessions_level = of_sessions.max().unwrap_or(Level::Memory).max(Level::Written);
        let session_queue = settings.session_queue(None);
        Self {
            journal,
            wall,
            settings,
            session_queue,
            sessions_level,
            starts,
            shards,
            groups,
            reader,
        }
    }

    /// Notes the size of the file system that the data directory is on.
    pub(crate) fn set_disk_bytes(&mut self, bytes: u64) {
        self.session_queue = self.settings.session_queue(Some(bytes));
    }

    /// The flags of a shard.
    pub(crate) fn flags(&self, shard: usize) -> &Arc<ShardFlags> {
        &self.shards[shard]
    }

    /// Whether a shard has a durable session among the receivers of a message. `durable` are the
    /// shards that may have one, by the route map. A subscription that is visible there belongs to
    /// a session that is already counted.
    #[inline]
    pub(crate) fn has_receivers(&self, shard: usize, durable: ShardSet) -> bool {
        durable.contains(shard) && self.has_sessions(shard)
    }

    #[inline]
    fn has_sessions(&self, shard: usize) -> bool {
        self.shards[shard].sessions.load(Ordering::SeqCst) > 0
    }

    /// The strongest level of any session: the level of records that concern all sessions.
    pub(crate) fn sessions_level(&self) -> Level {
        self.sessions_level
    }

    /// The version of a retained message in the journal, where versions continue after a restart.
    pub(crate) fn retained_version(&self, version: u64) -> u64 {
        self.starts << RETAINED_VERSION_BITS | version
    }

    /// The version of the route map in the journal, where versions continue after a restart.
    pub(crate) fn route_version(&self, version: u64) -> u64 {
        self.starts << ROUTE_VERSION_BITS | version
    }

    /// Notifies the shards that wait for a commit. The commit thread calls this after every commit.
    pub(crate) fn committed(&self, remote: &Remote<Mail>) {
        for (shard, flags) in self.shards.iter().enumerate() {
            // A shard sets the flag and then reads the committed sequence number. Here the order is
            // the reverse, so one of the two sees the other.
            if flags.waits.swap(false, Ordering::SeqCst) {
                remote.post(shard, Mail::Committed);
            }
        }
    }
}

/// The first sequence number of queue entries in a start of the broker, for queues of earlier
/// starts. A queue never uses a sequence number twice: the log may still contain the removed entry.
pub(crate) const fn first_seq(starts: u64) -> u64 {
    starts << SEQ_BITS
}

/// Bits of the sequence numbers of one queue within one start of the broker.
const SEQ_BITS: u32 = 40;

/// Bits of the versions of retained messages within one start of the broker.
const RETAINED_VERSION_BITS: u32 = 40;

/// Bits of the versions of the route map within one start of the broker.
const ROUTE_VERSION_BITS: u32 = 40;

/// The queues of shared subscriptions, by the number of the group.
#[derive(Debug)]
pub(crate) struct GroupQueues {
    queues: Mutex<HashMap<u64, QueueId, RandomState>>,
    /// The last sequence number of any of them: all shards append entries.
    last_seq: AtomicU64,
}

impl GroupQueues {
    fn new(last_seq: u64) -> Self {
        Self { queues: Mutex::default(), last_seq: AtomicU64::new(last_seq) }
    }

    /// The next sequence number, above all that were used.
    pub(crate) fn next_seq(&self) -> u64 {
        self.last_seq.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes a sequence number that recovery found.
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

    /// Removes a group that has ended, unless it has members again. A member joins before it asks
    /// for the queue.
    pub(crate) fn remove_ended(&self, group: &Group) -> Option<QueueId> {
        let mut queues = self.lock();
        if group.members() > 0 { None } else { queues.remove(&group.id()) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, QueueId, RandomState>> {
        // No code panics while the lock is held.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The offset of the wall clock to the clock of the event loops. It is read once, at start, so that
/// a session expires after the right interval even if the wall clock is changed meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WallClock {
    offset_ns: i128,
}

impl WallClock {
    /// Both clocks are the same.
    pub(crate) const UNIX: Self = Self { offset_ns: 0 };

    pub(crate) fn new(now_ns: u64, unix_ns: u64) -> Self {
        Self { offset_ns: i128::from(unix_ns) - i128::from(now_ns) }
    }

    /// Converts an instant of the loop clock to the wall clock; `u64::MAX` means never on both.
    pub(crate) fn to_unix(self, at_ns: u64) -> u64 {
        shift(at_ns, self.offset_ns)
    }

    /// Converts an instant of the wall clock to the loop clock. Instants before the start of the
    /// loop clock become 0.
    #[allow(clippy::wrong_self_convention, reason = "the pair of `to_unix`")]
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
    fn instants_round_trip_and_never_stays_never() {
        for (now_ns, unix_ns) in [(5, 1_000), (1_000, 5)] {
            let wall = WallClock::new(now_ns, unix_ns);
            assert_eq!(wall.to_unix(now_ns), unix_ns);
            assert_eq!(wall.from_unix(unix_ns), now_ns);
            assert_eq!((wall.to_unix(u64::MAX), wall.from_unix(u64::MAX)), (u64::MAX, u64::MAX));
        }
        // An instant before the machine started.
        assert_eq!(WallClock::new(5, 1_000).from_unix(3), 0);
    }
}
