//! The broker's promises with a journal, on simulated loops and a simulated disk: nothing is
//! committed before the test says so, and the broker can die at any moment.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

mod bridged;
mod commit_waits;
mod crash;
mod disk_full;
mod disk_full_sessions;
mod durable_broker;
mod groups;
mod redelivery;
mod retained;
