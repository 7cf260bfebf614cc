//! The event loops of Tacho: one thread per core, each with an edge-triggered readiness loop.
//!
//! This crate moves bytes, time and messages between threads; it knows nothing about MQTT. The
//! broker and the load generator both implement [`Handler`] and let a [`Loop`] drive it:
//!
//! - **Sockets.** [`Loop`] accepts connections and reads each ready one once per turn into a
//!   reused buffer; [`Handler::input`] consumes what it can. Output is appended to
//!   [`Net::out`] and leaves in exactly one write per connection and turn.
//! - **Time.** [`Net::now_ns`] is read once per turn; [`Net::set_timer`] has a resolution of about
//!   a millisecond, [`Next::At`] wakes the loop with the precision of the kernel's timers.
//! - **Other shards.** [`Net::post`] collects messages during a turn and delivers them with one
//!   lock and at most one wake-up per target; [`Net::detach`] and [`Net::attach`] move a
//!   connection with everything that belongs to it.
//!
//! A turn is: wait for events, note what became ready, deliver mail, fire timers, read ready
//! connections, then newcomers, accept, report closed connections, [`Handler::turn`], flush, post
//! mail. Every step is bounded, so that one busy connection, peer or listener cannot starve the
//! others.
//!
//! With the feature `sim` (for tests) the module `sim` drives the same handlers without sockets,
//! threads and clock.

pub mod clock;
#[cfg(feature = "sim")]
pub mod sim;
pub mod tls;
pub mod ws;

mod alarm;
mod config;
mod conn;
mod counters;
mod cpus;
mod event_loop;
mod filter;
mod handler;
mod handover;
mod host;
mod limits;
mod listener;
mod mailbox;
mod net;
mod output;
mod pool;
mod reading;
mod stream;
mod timers;
mod transport;
mod turn;
mod writing;

pub use config::LoopConfig;
pub use conn::ConnId;
pub use counters::Counters;
pub use cpus::{bind_to_cpus, usable_cpus};
pub use event_loop::Loop;
pub use filter::{Filter, Layers};
pub use handler::{Closed, Handler, Next};
pub use handover::Detached;
pub use host::is_own_name;
pub use limits::{FdLimit, local_port_range, memory_bytes, raise_fd_limit};
pub use listener::bind;
pub use mailbox::{Mailbox, OUTSIDE, Remote, mailboxes};
pub use net::Net;
pub use output::Output;
pub use timers::TimerId;
pub use transport::ServerTransport;
