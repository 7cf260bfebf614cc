//! The MQTT session as a machine without I/O and without a clock.
//!
//! One [`server::Session`] is the broker's side of a session and outlives its connections; one
//! [`client::Session`] is the client's side. Both are made of the same parts: the outgoing
//! half (packet identifiers, in-flight window, resend), the incoming half (acknowledgements,
//! duplicate suppression) and topic aliases.
//!
//! The methods come in four families:
//!
//! - `handle_*` takes what arrived from the peer or from time,
//! - commands such as [`server::Session::offer`] or [`client::Session::publish`] change the state,
//! - `poll_transmit` yields the next packet to write, until there is none,
//! - getters.
//!
//! Time is `now_ns: u64`, nanoseconds of a monotonic clock that the caller owns. Messages are an
//! opaque [`Payload`] `M`, cheap to clone.
//!
//! # Durability
//!
//! Whatever a session promises to its peer it first hands to [`Persist`] as a [`Record`]; the
//! [`BatchSeq`] that comes back says when the record is safe. Packets that make a promise
//! wait inside the session until `poll_transmit` is told that their batch is committed.
//! In memory, [`InMemory`] returns [`BatchSeq::DONE`] and nothing waits. From the records an
//! owner knows what [`server::Session::restore`] needs to go on after a crash. Messages that wait
//! need not be in memory meanwhile, see [`Payload`].
//!
//! # Not here
//!
//! Sockets, packets as bytes, subscriptions, routing, authorisation.

mod alias;
mod authentication;
pub mod client;
mod commit;
mod counters;
mod delivery;
mod error;
mod incoming;
mod keep_alive;
mod lifetime;
mod link;
mod outgoing;
mod payload;
mod queue;
pub mod server;

pub use alias::AliasOut;
pub use authentication::{AuthAnswer, AuthRequest, AuthVerdict, Authentication};
pub use commit::{BatchSeq, InMemory, Persist, Record};
pub use counters::{Counters, DropReason};
pub use delivery::{Delivery, Offer, SubscriptionIdList, Transmit};
pub use error::ProtocolError;
pub use incoming::Inbound;
pub use lifetime::{EXPIRY_NEVER, WillState, session_expiry_s};
pub use link::{Link, LinkEvent, LinkSettings};
pub use payload::Payload;
