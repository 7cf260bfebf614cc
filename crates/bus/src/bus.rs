//! The contract that every engine fulfils.

use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{BusError, Name, Pattern, Subject, Subscription};

/// Limit on the payload of a message, a log entry or a value: half of what NATS takes by default.
pub const MESSAGE_BYTES_MAX: usize = 512 * 1024;

/// What is needed of a messaging engine.
///
/// Messages from one publisher on one bus reach a subscription in the order in which they were
/// published, at most once. Calls may be made from any thread, and block for a bounded time, but
/// never inside an event loop.
pub trait Bus: Debug + Send + Sync {
    /// Sends a message to all subscriptions that want its subject, if any. An answer to a request
    /// is published to the request's [`reply`](crate::Message::reply).
    ///
    /// # Errors
    /// The payload is too large, the outgoing queue is full, or the connection has ended. Success
    /// means accepted, not delivered.
    fn publish(&self, subject: &Subject, payload: Bytes) -> Result<(), BusError>;

    /// Subscribes; messages published later on this bus reach the subscription. At most `capacity`
    /// messages wait in it; more are dropped and counted.
    ///
    /// # Errors
    /// The engine refuses it, or has too many subscriptions.
    fn subscribe(&self, pattern: &Pattern, capacity: usize) -> Result<Subscription, BusError>;

    /// Sends a request and waits for the first answer.
    ///
    /// # Errors
    /// [`BusError::NoResponder`] at once where nothing subscribes to the subject, and
    /// [`BusError::TimedOut`] where nothing answers in time.
    fn request(
        &self,
        subject: &Subject,
        payload: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, BusError>;

    /// Opens a log, creating it when there is none. It keeps the limits that it was created with.
    ///
    /// # Errors
    /// The engine refuses it, or has too many.
    fn log(&self, name: &Name, limits: LogLimits) -> Result<Box<dyn Log>, BusError>;

    /// Opens a log that exists.
    ///
    /// # Errors
    /// The engine does not answer.
    fn find_log(&self, name: &Name) -> Result<Option<Box<dyn Log>>, BusError>;

    /// Deletes a log with its entries, if there is one; handles of it fail from then on.
    ///
    /// # Errors
    /// The engine does not answer.
    fn delete_log(&self, name: &Name) -> Result<(), BusError>;

    /// Opens a table of keys, creating it when there is none. With a `lease`, at least 100 ms, each
    /// key ends that long after it was written last; a table keeps the lease it was created with.
    ///
    /// # Errors
    /// The engine refuses it, has too many, or has it with another lease.
    fn table(&self, name: &Name, lease: Option<Duration>) -> Result<Box<dyn Table>, BusError>;
}

/// What a log keeps: the newest entries within both bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLimits {
    /// Bytes of all entries together, with what the engine adds.
    pub bytes_max: u64,
    /// How long an entry is kept; as long as there is room, unless given.
    pub age_max: Option<Duration>,
}

impl LogLimits {
    /// Up to so many bytes, of any age.
    #[must_use]
    pub const fn of_bytes(bytes_max: u64) -> Self {
        Self { bytes_max, age_max: None }
    }
}

/// Entries in order, each with a sequence number; the oldest are forgotten.
pub trait Log: Debug + Send + Sync {
    /// Adds an entry and returns its number: 1 for the first, and one more for each later one.
    ///
    /// # Errors
    /// The entry is too large, or the engine did not confirm it: it may have been added.
    fn append(&self, entry: Bytes) -> Result<u64, BusError>;

    /// Up to `entries_max` entries from number `from` on; none where there are no more.
    ///
    /// # Errors
    /// The engine does not answer.
    fn read(&self, from: u64, entries_max: usize) -> Result<Vec<LogEntry>, BusError>;
}

/// Keys with values, revisions and perhaps leases.
pub trait Table: Debug + Send + Sync {
    /// The value of a key; `None` if it was never written, was deleted, or its lease has ended.
    ///
    /// # Errors
    /// The engine does not answer.
    fn get(&self, key: &Name) -> Result<Option<Value>, BusError>;

    /// Writes a key if its state is as expected, and begins its lease anew.
    ///
    /// # Errors
    /// [`BusError::Conflict`] if the state differs.
    fn put(&self, key: &Name, value: Bytes, expected: Expected) -> Result<Revision, BusError>;

    /// Deletes a key if its state is as expected; one that is not there may be deleted.
    ///
    /// # Errors
    /// [`BusError::Conflict`] if the state differs.
    fn delete(&self, key: &Name, expected: Expected) -> Result<(), BusError>;

    /// All keys, in order.
    ///
    /// # Errors
    /// The engine does not answer.
    fn keys(&self) -> Result<Vec<Name>, BusError>;
}

/// One entry of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Its number.
    pub seq: u64,
    /// Its content.
    pub payload: Bytes,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// Identifies this write of the key.
    pub revision: Revision,
    /// Its content.
    pub payload: Bytes,
}

/// Identifies a write of a key; later writes of the same key have higher ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Revision(pub(crate) u64);

/// The state that a key must have for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expected {
    /// Whatever it is.
    Any,
    /// There is no such key.
    Absent,
    /// It was written last with this revision.
    Revision(Revision),
}

/// Checks the size of a payload.
pub(crate) const fn check_size(payload: &Bytes) -> Result<(), BusError> {
    let bytes = payload.len();
    match bytes <= MESSAGE_BYTES_MAX {
        true => Ok(()),
        false => Err(BusError::TooLarge { bytes, bytes_max: MESSAGE_BYTES_MAX }),
    }
}
