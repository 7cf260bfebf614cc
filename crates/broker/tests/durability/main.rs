//! The broker's promises with a journal, on simulated loops and a simulated disk: nothing is
//! committed before the test says so, and the broker can die at any moment.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

mod bridged;
mod clock_steps;
mod commit_waits;
mod crash;
mod disk_full;
mod disk_full_sessions;
mod durable_broker;
mod groups;
mod leaving;
mod queue_full;
mod redelivery;
mod retained;
mod wills;
