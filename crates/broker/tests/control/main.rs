//! The control plane from outside: what it answers by HTTP, and `$SYS` topics.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

mod clients;
mod displaced;
mod http;
mod metrics;
mod sys;
