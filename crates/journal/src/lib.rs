//! Durable queues: a write-ahead log with group commit, recovery and compaction.
//!
//! The journal knows neither MQTT nor sockets, and its data does not depend on the number of
//! shards. It stores **messages** (opaque bodies, each written once), **queues** of **entries**
//! that refer to messages, and **keys** with values, per queue. [`Record`] lists the operations.
//!
//! There is one log per data directory and one thread that commits. Each shard appends encoded
//! records to a buffer of its own ([`Writer::append`]) and receives the [`CommitSeq`] of the commit
//! that will include them; a shard never waits for the disk.
//!
//! # Commits
//!
//! - **The cut.** A commit takes the buffers of all writers at one instant, under all their locks.
//!   A record that was appended before another one is in the same frame or in an earlier one,
//!   across shards too, so a message that one shard writes and another refers to is never missing.
//!   The next commit gathers while one is on its way to the disk. Only at low load does a commit
//!   wait up to 200 us for more records, as long as that proves useful, and up to 1 ms while
//!   commits take more than a tenth of a processor and a quarter of its idle time.
//! - **Transient messages** are not written: a message whose entries were all added and removed
//!   within one commit is left out with its entries, unless another record in the frame refers to
//!   it (a key, or the state of its distribution). A frame is valid as a whole or not at all, so
//!   the result after a crash is the same. Messages that subscribers acknowledge at once therefore
//!   cost the disk little. While few are found, most commits are not searched.
//! - **The high-water mark.** Frames are numbered without gaps, a [`CommitSeq`] is such a number,
//!   and every commit up to [`Journal::committed`] is complete: written ([`Level::Written`]), and
//!   synced if a record in it asked for that ([`Level::Fsynced`]). A record with [`Urgency::Rides`]
//!   never wakes the commit thread; it is committed after 100 ms at the latest.
//!
//! # Segments
//!
//! - **Preparation.** A separate thread prepares segments: zeroed, under their final names, both
//!   synced. Those of an empty log have 1 MiB, and each one that is begun doubles the size of the
//!   next, up to 64 MiB: the space that is prepared is in proportion to the log. A commit is then
//!   one write and one `fdatasync` that has only data to write. Segments without live records are
//!   recycled as they are, since every frame names its segment. A segment that had to be used
//!   before it was zeroed is left for the first prepared one. Frames and zeros of 64 KiB and more
//!   bypass the page cache where the file system supports `O_DIRECT`.
//! - **The synced mark.** Each frame names the newest frame that was synced when it was written, so
//!   a torn end is distinguished from damage. When a segment is begun, the previous one is synced.
//! - **A failed sync** is never repeated, because systems may drop the data that they could not
//!   write and then report success. The file is abandoned at its last synced position and the
//!   frames behind it are written again to a new segment, so that a reader of that segment finds
//!   all of them or none. Opening the journal does the same with frames that the last process may
//!   not have synced.
//! - **A full disk** holds the commit, and nothing is acknowledged until there is space.
//!   [`Journal::condition`] reports it one or two segments early, when the next segment cannot be
//!   prepared: the remaining space is reserved for the acknowledgements and removals that free
//!   space.
//! - **Segments are freed** from the oldest end only, one after the other: the removal of each is
//!   synced before the next one, and not before the records that made it free are synced. So a
//!   removal outlives the record that it removes.
//!
//! # Index and compaction
//!
//! - **The index** holds the live records and their places: messages with reference counts, entries
//!   by queue and number, keys with versions. It is the log without bodies and values, 24 bytes per
//!   entry and 16 per message. Frames are applied to it in order, by recovery and by commits alike.
//!   Within a frame the records of different writers are in any order, so an entry may precede its
//!   message. The version of a deleted key is kept as a tombstone while an older value may still be
//!   appended, or is behind it in the log.
//! - **Compaction** moves the live records of the oldest segment to the newest end once the log is
//!   larger than 512 MiB and twice its live bytes. They are read in the background at a limited
//!   rate (eight times as fast when there is little to move) and offered to the committer, which
//!   writes those that are still live at the start of its next frame. Moved records precede their
//!   removals, so nothing is resurrected. A round moves all records that were in the log when it
//!   began; the next round waits for a segment of new garbage and, unless the disk is full, for a
//!   quarter of the live bytes. So a log that cannot be made smaller is left alone. With a full
//!   disk, a segment is moved only if there is room for all of it. Unreadable records are given up
//!   and counted, and their file is kept in `quarantine/`.
//!
//! # Recovery
//!
//! Opening reads the log once for the index; [`Recovered::visit`] reads it a second time. No bodies
//! stay in memory. A torn frame ends the log. Damage elsewhere loses only the commits that it
//! affects: they are reported by number, the rest is used, and a copy of the file goes to
//! `quarantine/`. Every frame carries the salt of its data directory, kept in the file `salt`, so
//! that no client can send a body that would be accepted as a frame. [`Journal::read`] reads bodies
//! back from the disk later.
//!
//! # Backups
//!
//! [`Journal::back_up`] makes a consistent copy while commits go on: the log up to one commit.
//! Segments before its last one do not change any more and are linked, so that a backup costs
//! little time and space; files that a backup has are removed instead of recycled. A shard waits
//! for none of this. [`restore`] makes a data directory of a backup.
//!
//! One process uses a data directory at a time, by locks on the directory itself and on the file
//! `lock` in it; `tacho journal` may inspect it ([`Inspection`]) while no broker runs. All names
//! are looked up in the directory that was locked. If its path leads elsewhere meanwhile, nothing
//! is committed ([`Condition::Displaced`]) until it leads there again. Frames name the process that
//! wrote them: what one wrote after another one had taken the directory over, for want of locks, is
//! found ([`Foreign`]) and not used. Directories that other users can write to are refused.
//!
//! With the feature `sim` (for tests) the module `sim` provides a disk in memory with faults of
//! every kind.

#[cfg(feature = "sim")]
pub mod sim;
pub mod storage;

mod backup;
mod backup_list;
mod blocks;
mod buffers;
mod commit_frame;
mod commit_thread;
mod committer;
mod compaction;
mod custody;
mod doubts;
mod error;
mod frame;
mod id;
mod index;
mod inspect;
mod journal;
mod keeper;
mod lock;
mod options;
mod pool;
mod read;
mod record;
mod recovered;
mod recovery;
#[cfg(test)]
mod reference;
mod salt;
mod scan;
mod segment;
mod settle;
mod shared;
mod signal;
mod stats;
mod tail;
mod transient;
mod troubles;
mod writer;

pub use backup::{Backup, BackupError, restore};
pub use commit_thread::CommitThread;
pub use committer::{Committer, Step};
pub use error::{OpenError, ReadError};
pub use id::{CommitSeq, MessageId, QueueId, SegmentId};
pub use inspect::{Inspection, Problem, SegmentSummary, Summary};
pub use journal::{Journal, Opened};
pub use options::{Condition, Level, Options, Urgency};
pub use read::Body;
pub use record::Record;
pub use recovered::Recovered;
pub use recovery::{Damage, Foreign, Report, Torn, Visitor};
pub use stats::{Counter, Latency, Stats};
pub use writer::Writer;
