//! One MQTT client that waits for what happens: for commands and scripts, not for load.
//!
//! [`Client::connect`] opens the connection; [`Client::publish`] and [`Client::subscribe`] send;
//! [`Client::wait`] returns the next thing that happens, which may be a piece of input that
//! [`Client::ask`] has asked for. The protocol is that of [`tacho_session::Session`]: a client that
//! connects again sends unacknowledged messages again.
//!
//! Everything is bounded: a packet in its size, unacknowledged messages by the broker's receive
//! maximum and the client's own, events between its threads by [`EVENTS_MAX`].

mod client;
mod error;
mod link;
mod message;
mod packets;
mod settings;

pub use client::{Client, Happened};
pub use error::ClientError;
pub use link::{EVENTS_MAX, FilterSource};
pub use message::{Message, MessageProperties, Received};
pub use packets::Accepted;
pub use settings::{ClientSettings, Subscription};
