//! What Tacho needs of a messaging engine, and no more: request and answer, publish and subscribe,
//! durable logs, and tables of keys with leases and compare-and-set.
//!
//! [`Bus`] is that contract. Three engines fulfil it, and the tests in `tests/contract` run against
//! all of them:
//!
//! | engine | for | survives the program |
//! |---|---|---|
//! | [`LocalBus`] | one process | no |
//! | [`SocketBus`], served by [`SocketServer`] | other processes of the machine, on the bus of this one | no |
//! | [`NatsBus`] | many machines: NATS with JetStream | yes |
//!
//! Calls block for a bounded time and are made from threads that may wait; `NatsBus` keeps its
//! asynchronous client on a thread of its own. Every queue has a bound: a subscription that is not
//! read loses messages and counts them. Where nothing may be lost, a [`Link`] carries messages
//! between two parties in order, with credit, and says when the other side is gone.

mod bus;
mod error;
mod link;
mod local;
mod name;
mod nats;
mod socket;
mod subscription;

pub use bus::{Bus, Expected, Log, LogEntry, LogLimits, MESSAGE_BYTES_MAX, Revision, Table, Value};
pub use error::BusError;
pub use link::{Link, LinkEnds, LinkEvent, LinkLimits};
pub use local::LocalBus;
pub use name::{Name, Pattern, Subject};
pub use nats::{Credentials, NatsBus, NatsSettings};
pub use socket::{SocketBus, SocketServer};
pub use subscription::{Message, SUBSCRIPTION_MESSAGES_MAX, Subscription};

/// Payloads of messages, shared without a copy.
pub use bytes::Bytes;
