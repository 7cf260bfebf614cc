//! Support for the integration tests of all crates, with a feature for each layer, so that testing
//! a crate does not build the crates above it.
//!
//! Unit tests cannot use it: it links the ordinary build of their crate, whose types differ.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]
#![allow(missing_docs, reason = "names and types say it; nothing here is published")]

#[cfg(feature = "broker")]
mod broker;
#[cfg(feature = "tacho")]
mod broker_log;
#[cfg(all(feature = "codec", feature = "tacho"))]
mod broker_program;
#[cfg(feature = "codec")]
mod client;
#[cfg(feature = "tacho")]
mod disk_faults;
#[cfg(feature = "codec")]
mod flooding_broker;
#[cfg(feature = "fuzz")]
pub mod fuzz;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "journal")]
pub mod journal;
#[cfg(feature = "load")]
pub mod load;
pub mod memory;
#[cfg(feature = "net")]
pub mod net;
#[cfg(feature = "codec")]
pub mod notation;
#[cfg(feature = "codec")]
pub mod packets;
pub mod rng;
#[cfg(feature = "tacho")]
pub mod runs;
#[cfg(feature = "tacho")]
mod runtime_folder;
#[cfg(feature = "strategies")]
pub mod strategies;
#[cfg(feature = "topic")]
pub mod topics;
#[cfg(all(feature = "net", feature = "broker"))]
mod tunnel;
#[cfg(feature = "codec")]
pub mod vectors;
mod wait;

#[cfg(feature = "broker")]
pub use broker::{TestBroker, each_broker};
#[cfg(feature = "tacho")]
pub use broker_log::{line_with, listening_address};
#[cfg(all(feature = "codec", feature = "tacho"))]
pub use broker_program::BrokerProgram;
#[cfg(feature = "codec")]
pub use client::{ALL_QOS, Client, Received, TimedOut, VERSIONS, connect, packet, will};
#[cfg(feature = "tacho")]
pub use disk_faults::{DiskFault, DiskFaultsSeen, FaultyDisk};
#[cfg(feature = "codec")]
pub use flooding_broker::{Flood, FloodingBroker};
#[cfg(feature = "tacho")]
pub use runtime_folder::runtime_folder;
#[cfg(all(feature = "net", feature = "broker"))]
pub use tunnel::{through, tunnel};
pub use wait::{PATIENCE, QUIET, wait_until};
