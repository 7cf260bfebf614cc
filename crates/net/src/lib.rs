//! The event loops of Tacho: one thread per shard, each with edge-triggered readiness through
//! [`mio`] (epoll on Linux, kqueue on macOS) and without an async runtime.
//!
//! This crate moves bytes, time and messages between threads; it knows nothing about MQTT. The
//! broker and the load generator both implement [`Handler`] and let a [`Loop`] drive it:
//!
//! - **Sockets.** [`Loop`] accepts connections and reads each ready one once per turn into a
//!   reused buffer; [`Handler::input`] consumes what it can. A large unit whose length the handler
//!   knows ([`Net::expect_unit`]) arrives in pieces and is passed when it is whole. Output is
//!   appended to [`Net::out`] and leaves in one write per connection and turn.
//! - **Time.** [`Net::now_ns`] is read once per turn; [`Net::set_timer`] has a resolution of about
//!   a millisecond, [`Next::At`] wakes the loop with the precision of the kernel's timers.
//! - **Other shards.** [`Net::post`] collects messages during a turn and delivers them with one
//!   lock and at most one wake-up per target; [`Net::detach`] and [`Net::attach`] move a
//!   connection with everything that belongs to it.
//!
//! # A turn
//!
//! A turn waits for events, records which connections became ready, delivers mail, fires timers,
//! reads ready connections, then those whose peers have left, then newcomers, accepts connections,
//! reports closed connections, calls [`Handler::turn`], sends mail and flushes output. Every step
//! is bounded, so that one busy connection, peer or listener cannot starve the others; a turn that
//! leaves work behind is followed by another one without a sleep.
//!
//! The bound is one of time ([`LoopConfig::turn_ns_max`]). The loop and its handler charge the work
//! they do to the [`TurnBudget`] of the turn, each step has a share of it, and what no time is left
//! for waits in its order. A connection that waits to be written to gathers output meanwhile: under
//! load more leaves with one write, not less. [`Net::out_later`] is for the output of long
//! fan-outs, which waits behind all other output.
//!
//! After a late turn (the process was stopped, or the machine suspended) what has arrived meanwhile
//! is read before timers fire: a peer that spoke in time is not taken for silent.
//!
//! Under messaging workloads about nine tenths of a broker's CPU time is the kernel's: TCP, and
//! waking threads. Batching is therefore the lever: one read and one write per connection and turn,
//! one lock and one wake-up per target shard and turn. `cargo xtask floor` measures the kernel's
//! share for the same sockets and frames without a broker. Where the system has io_uring, many
//! writes of a turn share a system call ([`LoopConfig::batch_writes`]).
//!
//! # Filters
//!
//! TLS ([`tls`]) and WebSocket ([`ws`]) are byte filters between the socket and the handler: bytes
//! that were read pass through [`Filter::inbound`], output passes through [`Filter::outbound`] when
//! it is flushed, so that both remain one read and one write per turn. A filter owns no socket and
//! moves with its connection between shards; [`Layers`] stacks two (`wss`). [`Handler::ready`] is
//! called when a handshake is complete. If the filter sees the end of the peer's data, the handler
//! receives all bytes before it first.
//!
//! # Proxies
//!
//! [`Net::expect_proxy_header`] has a connection begin with a header of the PROXY protocol
//! ([`proxy`]), before its filter: [`Net::peer_addr`] tells the client's address from then on, and
//! [`Net::proxied_certificate_name`] the name in its certificate.
//!
//! # Simulation
//!
//! With the feature `sim` (for tests) the module `sim` drives the same handlers without sockets,
//! threads and clock.

pub mod clock;
pub mod proxy;
#[cfg(feature = "sim")]
pub mod sim;
pub mod tls;
pub mod ws;

mod alarm;
mod batch;
mod budget;
mod catch_up;
mod closing;
mod commands;
mod config;
mod conn;
mod connections;
mod counters;
mod cpus;
mod event_loop;
mod filter;
mod handover;
mod host;
mod kept;
mod limits;
mod listener;
mod mailbox;
mod net;
mod output;
mod peer_certificates;
mod pool;
mod readiness;
mod reading;
mod stream;
mod timers;
mod transport;
mod turn;
mod unit;
#[cfg(feature = "sim")]
mod virtual_socket;
mod writing;

pub use batch::probe_batch_writes;
pub use budget::TurnBudget;
pub use config::LoopConfig;
pub use conn::{Closed, ConnId};
pub use counters::Counters;
pub use cpus::{bind_to_cpus, lower_priority, usable_cpus};
pub use event_loop::Loop;
pub use filter::{Filter, Layers};
pub use handover::Detached;
pub use host::is_own_name;
pub use limits::{FdLimit, local_port_range, memory_bytes, raise_fd_limit};
pub use listener::{ListenSettings, adopt, bind, listen};
pub use mailbox::{Mailbox, OUTSIDE, Remote, mailboxes};
pub use net::{Handler, Net, Next};
pub use output::Output;
pub use peer_certificates::PeerCertificates;
pub use timers::TimerId;
pub use transport::ServerTransport;
