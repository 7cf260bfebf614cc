//! How Tacho serves HTTP: the control plane of the broker, the live page and the list of past runs;
//! and what its APIs have in common: roles, descriptions, errors.
//!
//! Every program that reaches the port can open connections and then send nothing, half a request,
//! or requests whose answers it never reads. [`serve`] therefore gives connections places:
//!
//! - A connection has a place from its acceptance to its end; there are [`Limits::places_max`].
//! - When all places are taken and another connection comes, one that waits for its peer gives way:
//!   it has no complete request, or its peer does not read the answer. It is the one that has
//!   waited longest, among those of the address with most of them. A connection whose answer is in
//!   the making never gives way.
//! - Of a body that an operation leaves unread little is read, so that the connection can go on;
//!   that of a longer one ends with the answer.
//! - Requests, answers and pauses between them have deadlines, and a request has a limit of bytes.
//!
//! A request that arrives soon after its connection is therefore answered whatever other
//! connections do. [`Counters`] says how many gave way and how many ran out of time.

mod answering;
mod connection;
mod credentials;
mod limits;
mod listener;
mod openapi;
mod places;
mod problem;
mod role;
mod serve;
mod tls;
mod unread;

pub use credentials::{bearer, hex, is_same};
pub use limits::{Counters, Limits};
pub use openapi::{ApiDescription, Operation, RequestBody};
pub use places::Peer;
pub use problem::{ApiError, Problem, body, json};
pub use role::Role;
pub use serve::{serve, serve_socket, serve_tls};
pub use tls::TlsSource;
