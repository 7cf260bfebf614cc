//! collectd's binary network protocol: values in, rows out.
//!
//! What is understood: the plugins cpu (in percent and in jiffies), memory, load, interface,
//! processes, contextswitch, protocols and fhcount. Signed and encrypted packets are refused and
//! counted: their keys are not ours.

mod hosts;
mod packet;
#[cfg(test)]
mod tests;

pub(crate) use hosts::Hosts;
pub(crate) use packet::{PacketError, Reading, Value, parse};
