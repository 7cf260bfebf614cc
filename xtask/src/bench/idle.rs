//! Memory of clients that only connect, and of the same with one subscription each.

use std::thread;

use anyhow::Result;

use super::figures::Sample;
use super::machine::MEMORY_BACK;
use super::population::Population;

/// Those that make what all share.
const FIRST: usize = 100;
const CONNECTIONS: usize = 10_000;

/// Growth of the broker's resident memory per connection.
pub(super) fn measure(
    mut sample: Sample,
    port: u16,
    rss_bytes: impl Fn() -> Result<u64>,
) -> Result<Sample> {
    let settled = || {
        thread::sleep(MEMORY_BACK);
        rss_bytes().map(|bytes| bytes as f64)
    };
    let mut population = Population::connect(port, FIRST)?;
    let before = settled()?;
    population.connect_more(port, CONNECTIONS)?;
    let connected = settled()?;
    population.subscribe(1, |client, _| format!("devices/{client:05}/commands"))?;
    let subscribed = settled()?;
    let each = (connected - before) / CONNECTIONS as f64;
    let subscription = (subscribed - connected) / (CONNECTIONS + FIRST) as f64;
    sample.set("rss_bytes_per_connection", Some(each));
    sample.set("rss_bytes_per_subscribed", Some(each + subscription));
    Ok(sample)
}
