//! MQTT's requirements on a broker: a test for each common defect. The number in a test's comment
//! is the line in `xtask/conformance/behaviours.txt`.

#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

mod aliases;
mod authentication;
mod connect;
mod exchanges;
mod leaving;
mod lifecycle;
mod malformed;
mod pieces;
mod properties;
mod publish;
mod races;
mod replay;
mod requests;
mod retain;
mod sessions;
mod shared;
mod shared_strategies;
mod sizes;
mod subscribe;
mod sweep;
mod turns;
mod will;
