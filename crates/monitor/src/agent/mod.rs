//! Host metrics over the network: one stream of JSON lines, authenticated by a token.
//!
//! ```text
//! agent  -> {"tacho_monitor":1,"nonce":"..."}
//! client -> {"nonce":"...","proof":"...","interval_ms":1000,"processes":[{"port":1883}]}
//! agent  -> {"host":"broker-1","proof":"..."}
//! agent  -> {"description":{...}}                       once, if the request has "describe":1
//! client -> {"ping":1}                                  repeatedly
//! agent  -> {"pong":1,"received_ns":2,"answered_ns":3}
//! agent  -> {"row":{...}}                               every interval
//! agent  -> {"error":"..."}                             and closes
//! ```
//!
//! Fields that a side does not know it ignores, so that agents and clients that know nothing of
//! descriptions work with those that do.
//!
//! Both sides prove knowledge of the token by an HMAC over both nonces; the token itself never
//! crosses the network. The rows are not encrypted: an eavesdropper can read load, memory, and the
//! names of interfaces and processes.

mod client;
mod line;
mod protocol;
mod server;
#[cfg(test)]
mod tests;
mod token;

pub(crate) use client::{AgentUpdate, Connection};
pub use server::{AgentCounts, AgentError, AgentServer};
pub use token::{TOKEN_VARIABLE, Token, TokenError};
