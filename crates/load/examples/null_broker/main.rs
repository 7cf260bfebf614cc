//! The least a broker can do for the `pairs` example. What the generator reaches against it is
//! the generator's own limit.
//!
//! ```text
//! cargo run --release -p tacho-load --example null_broker -- 127.0.0.1:1883 0
//! ```

mod broker;

use std::error::Error;

use tacho_net::{Loop, LoopConfig, mailboxes};

use broker::NullBroker;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let addr = args.next().ok_or("usage: null_broker HOST:PORT [CPU]")?.parse()?;
    let cpu = args.next().map(|cpu| cpu.parse()).transpose()?;
    tacho_net::raise_fd_limit()?;
    let listeners = vec![tacho_net::bind(addr, 4096)?];
    let mailbox = mailboxes(1).pop().ok_or("no mailbox")?;
    let config = LoopConfig { listeners, cpu, ..LoopConfig::default() };
    Ok(Loop::new(config, mailbox)?.run(&mut NullBroker::default())?)
}
