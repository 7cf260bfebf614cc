//! Durable queues: one log of segments per data directory, written by one commit thread.
//!
//! The journal knows neither MQTT nor sockets nor how many shards there are. It knows **messages**
//! (opaque bodies, written once), **queues** of **entries** that refer to messages, and **keys**
//! with values, per queue. [`Record`] says what can be told to it.
//!
//! - **Writing.** Every shard has a [`Writer`]; [`Writer::append`] encodes a record into the
//!   shard's own buffer and returns the [`CommitSeq`] of the commit that will take it. The
//!   [`Committer`] takes the buffers of all writers at one instant and writes them as one frame:
//!   what was appended before something else is in the same frame or in an earlier one. A frame is
//!   there as a whole or not at all. [`Journal::committed`] tells up to where commits are complete.
//! - **Levels.** A commit is complete once it is written ([`Level::Written`]), or, if anything in
//!   it asks for [`Level::Fsynced`], once the disk says that it and all before it is on the disk.
//! - **Reading.** [`Recovered`] visits what was live when the log ended; [`Journal::read`] brings
//!   bodies back from the disk.
//! - **Space.** Segments are freed from the oldest end. What lives longer than the rest is moved
//!   to the newest end in the background, by handing it to the committer again.
//! - **Failure.** A commit that cannot be written is kept and nothing is acknowledged meanwhile;
//!   [`Journal::condition`] says so. After a failed sync the file is never trusted again: what it
//!   may have lost is written to another one.
//!
//! With the feature `sim` (for tests) the module `sim` has a disk in memory with every fault.

#[cfg(feature = "sim")]
pub mod sim;
pub mod storage;

mod blocks;
mod buffers;
mod commit_frame;
mod commit_thread;
mod committer;
mod compaction;
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
pub use recovery::{Damage, Report, Torn, Visitor};
pub use stats::{Counter, Latency, Stats};
pub use writer::Writer;
