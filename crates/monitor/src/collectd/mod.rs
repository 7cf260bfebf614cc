//! collectd's binary network protocol: packets in, rows out.
//!
//! Supported plugins: cpu (in percent and in jiffies), memory, load, interface, processes,
//! contextswitch, protocols and fhcount. Signed and encrypted packets are rejected and counted.

mod hosts;
mod packet;
#[cfg(test)]
mod tests;

pub(crate) use hosts::Hosts;
pub(crate) use packet::{PacketError, parse};
