//! The MQTT broker: shards that own sessions, route messages between them, and keep every queue
//! bounded.
//!
//! One thread per shard runs a [`tacho_net::Loop`]; what it does with bytes is in the private
//! `shard` module. Nothing here blocks, reads a clock, or knows of the load generator.

mod authentication;
pub mod bridge;
mod certificates;
mod config;
mod control;
mod durable;
mod keys;
mod mail;
mod memory;
mod message;
mod server;
mod shard;
#[cfg(feature = "sim")]
pub mod sim;
mod stats;

pub use authentication::{
    AuthClient, AuthExchange, AuthFailure, AuthMethod, AuthMethods, AuthReply, AuthStep,
};
pub use certificates::{Certificates, SelfSigned, self_signed};
pub use config::{
    Config, ConfigError, Durability, Level, Limits, Listener, Overload, RawConfig, RawListener,
    RawTls, SHARDS_MAX, SharedStrategy, Transport,
};
pub use durable::records::{KeptMessage, KeptRecord, visit_records};
pub use server::{Broker, JournalError, SharedSubscription, StartError, Stopper};
pub use stats::{ByQos, ByReason, Counter, Histogram, ShardStats};
