//! The bus of one process for the other processes of the machine, over a Unix socket.
//!
//! The server passes the calls of its clients on to a bus, usually a [`LocalBus`](crate::LocalBus).
//! Frames have a length in front ([`frame`]); a client that sends anything else is cut off. When
//! the server's process ends, so do all its clients' connections: their next call fails.

mod client;
mod frame;
mod server;

pub use client::SocketBus;
pub use server::SocketServer;
