//! The MQTT session as a state machine without I/O and without a clock.
//!
//! A [`server::Session`] is the broker's side of a session and outlives its connections; a
//! [`client::Session`] is the client's side. Both consist of the same parts: the outgoing half
//! (packet identifiers, in-flight window, resend), the incoming half (acknowledgements, duplicate
//! suppression) and topic aliases.
//!
//! There are four families of methods:
//!
//! - `handle_*` takes input: packets of the peer and timeouts,
//! - commands such as [`server::Session::offer`] or [`client::Session::publish`] change the state,
//! - `poll_transmit` yields the next packet to write, until there is none,
//! - getters.
//!
//! Time is `now_ns: u64`, nanoseconds of a monotonic clock that the caller owns. Messages are an
//! opaque [`Payload`] `M`, cheap to clone.
//!
//! # Durability
//!
//! A session hands every promise to its peer to [`Persist`] first, as a [`Record`]; the
//! returned [`BatchSeq`] tells when the record is durable. Packets that make a promise wait inside
//! the session until `poll_transmit` is called with their batch committed. [`InMemory`] returns
//! [`BatchSeq::DONE`], so nothing waits. The records contain everything that
//! [`server::Session::restore`] needs after a crash. Waiting messages need not be in memory, see
//! [`Payload`].
//!
//! # Out of scope
//!
//! Sockets, packets as bytes, subscriptions, routing, authorization.

mod alias;
mod authentication;
mod chunks;
pub mod client;
mod commit;
mod counters;
mod delivery;
mod error;
mod incoming;
mod keep_alive;
mod lifetime;
mod link;
mod on_demand;
mod outgoing;
mod payload;
mod queue;
mod restored;
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
pub use queue::{Overflow, QueueLevel};
