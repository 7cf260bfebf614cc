//! What MQTT demands of a broker, one test for each thing that brokers commonly get wrong. The
//! number in each test's comment is the line of the project's list of such behaviours.

#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

mod aliases;
mod authentication;
mod connect;
mod exchanges;
mod lifecycle;
mod malformed;
mod properties;
mod publish;
mod races;
mod replay;
mod retain;
mod sessions;
mod shared;
mod shared_strategies;
mod sizes;
mod subscribe;
mod turns;
mod will;
