//! A broker that is wrong on purpose, and knows by how much.
//!
//! An MQTT server for exact topics in one epoll loop. It holds messages by a schedule, loses,
//! doubles or reorders some of them, and keeps its own record. It shares no code with the load
//! generator and the broker: their figures are judged by this record.

mod hold;
mod ledger;
mod options;
mod serve;
#[cfg(test)]
mod tests;
mod wire;

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result, bail};

use crate::floor::{pin_self_to, raise_descriptor_limit};
pub(crate) use hold::{CATCH_UP_NS, Fault};
pub(crate) use ledger::Testimony;
pub(crate) use options::ResponderOptions;
use serve::Responder;

/// Prints its port, serves until its input closes, and prints its record.
pub(super) fn run(options: &ResponderOptions) -> Result<()> {
    if options.stall_ms.is_some_and(|ms| ms >= options.stall_every_ms) {
        bail!("a stall must be shorter than its period");
    }
    if let Some(cpu) = options.cpu {
        pin_self_to(&[cpu])?;
    }
    raise_descriptor_limit()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
    listener.set_nonblocking(true).context("cannot make the listener non-blocking")?;
    println!("{}", listener.local_addr().context("no local address")?.port());
    let testimony = Responder::new(options, listener, &std::io::stdin())?.serve()?;
    println!("{}", serde_json::to_string(&testimony)?);
    Ok(())
}
