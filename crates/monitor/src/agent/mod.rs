//! Host figures over the network: one stream of JSON lines with a token.
//!
//! ```text
//! agent  -> {"tacho_monitor":1,"nonce":"..."}
//! client -> {"nonce":"...","proof":"...","interval_ms":1000,"processes":[{"port":1883}]}
//! agent  -> {"host":"broker-1","proof":"..."}
//! client -> {"ping":1}                                  again and again
//! agent  -> {"pong":1,"received_ns":2,"answered_ns":3}
//! agent  -> {"row":{...}}                               every interval
//! agent  -> {"error":"..."}                             and closes
//! ```
//!
//! Both sides prove that they know the token by an HMAC over both nonces; the token itself never
//! crosses the network. What does is readable for whoever can listen there: load, memory and
//! names of interfaces and processes.

mod client;
mod line;
mod protocol;
mod server;
#[cfg(test)]
mod tests;
mod token;

pub(crate) use client::{Connection, News};
pub use server::{AgentCounts, AgentError, AgentServer};
pub use token::{Token, TokenError};
