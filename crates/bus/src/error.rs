//! Why a call on the bus failed.

use serde::{Deserialize, Serialize};

/// Why a call on the bus failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum BusError {
    /// A subject, pattern or name that the contract does not allow.
    #[error("'{text}' is not a {what}: {why}")]
    Name {
        /// `subject`, `pattern` or `name`.
        what: String,
        /// As given.
        text: String,
        /// The rule that it breaks.
        why: String,
    },
    /// A payload above [`MESSAGE_BYTES_MAX`](crate::MESSAGE_BYTES_MAX).
    #[error("a message of {bytes} bytes is too large for the bus, which takes {bytes_max}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A queue is full; the call may be repeated later.
    #[error("the bus is too slow: {what} are waiting")]
    Full {
        /// What the queue holds, with its bound.
        what: String,
    },
    /// No subscription matches the subject of a request.
    #[error("nothing answers on '{subject}'")]
    NoResponder {
        /// The subject.
        subject: String,
    },
    /// No answer in time.
    #[error("no answer from {from} within {waited_ms} ms")]
    TimedOut {
        /// The subject of the request, or `the bus`.
        from: String,
        /// Time waited.
        waited_ms: u64,
    },
    /// The key has another revision than expected, or exists although it must not.
    #[error("'{key}' has been changed by another writer")]
    Conflict {
        /// The key.
        key: String,
    },
    /// A bound of the engine on subscriptions, logs, tables or keys.
    #[error("the bus has {max} {what} already, its limit")]
    Limit {
        /// What there is too much of.
        what: String,
        /// The limit.
        max: usize,
    },
    /// The connection to the engine has ended and will not come back.
    #[error("the connection to the bus has ended: {why}")]
    Closed {
        /// The reason.
        why: String,
    },
    /// The engine cannot be reached, or does not let this client in.
    #[error("cannot reach the bus at {address}: {why}")]
    Connect {
        /// Its address, without secrets.
        address: String,
        /// The reason.
        why: String,
    },
    /// The engine refused the call.
    #[error("the bus refuses it: {why}")]
    Refused {
        /// What it said.
        why: String,
    },
    /// An address of a bus that cannot be used.
    #[error("'{text}' is not the address of a bus: {why}")]
    Address {
        /// As given, without secrets.
        text: String,
        /// What to write instead.
        why: String,
    },
    /// A file with credentials that cannot be used; its content is not shown.
    #[error("{path}: {why}")]
    Credentials {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}
