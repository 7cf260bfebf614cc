//! The null broker by itself, for the `pairs` example.
//!
//! ```text
//! cargo run --release -p tacho-load --example null_broker -- 127.0.0.1:1883 0
//! ```

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let address = args.next().ok_or("usage: null_broker HOST:PORT [CPU]")?.parse()?;
    let cpu = args.next().map(|cpu| cpu.parse()).transpose()?;
    Ok(tacho_load::null_broker::serve_null_broker(address, cpu)?)
}
