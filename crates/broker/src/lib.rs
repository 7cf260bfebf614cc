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
mod delivery;
mod durable;
mod keys;
mod mail;
mod memory;
mod message;
mod permits;
mod query;
mod server;
mod shard;
#[cfg(feature = "sim")]
pub mod sim;
mod stats;
mod subscription;

pub use authentication::{
    AuthClient, AuthExchange, AuthFailure, AuthMethod, AuthMethods, AuthReply, AuthStep,
};
pub use certificates::{Certificates, SelfSigned, self_signed};
pub use config::{
    BridgeConfig, Config, ConfigError, Durability, EgressRule, IngressRule, Level, Limits,
    Listener, Mapping, Overload, Password, RawBridge, RawBridgeTls, RawConfig, RawListener,
    RawRule, RawTls, Remote, SHARDS_MAX, Secret, SharedStrategy, SourceText, Template,
    TemplateError, Transport, Values,
};
pub use durable::JournalError;
pub use durable::records::{KeptMessage, KeptRecord, visit_records};
pub use server::{Broker, SharedSubscription, StartError, Stopper};
pub use stats::{ByQos, ByReason, Counter, Histogram, ShardStats};
