//! A client session and a server session over an in-memory network, in virtual time.
//!
//! Every seed is one run: messages of all QoS in both directions while the network delays, splits
//! and cuts, the client reconnects (sometimes with a clean start), commits complete late, and
//! messages have to be loaded before they are sent. In some runs the server crashes and restarts
//! from its journal: with all committed records, and none or the first of the others. The rules of
//! the protocol are checked with every packet, the records with every step, and the QoS contracts
//! after the run. A failing seed is printed; `TACHO_SIM_SEED=n` runs only that one,
//! `TACHO_SIM_SEEDS=n` sets the number of seeds.

mod journal;
mod ledger;
mod network;
mod wire;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use world::World;

/// The number of seeds of an ordinary test run.
const SEEDS: u64 = 2_000;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Runs the seeds of one of `parts` equal shares; returns the number of messages that arrived.
fn run_share(part: u64, parts: u64, crashes: bool) -> usize {
    if let Some(seed) = variable("TACHO_SIM_SEED") {
        return if part == 0 { World::new(seed, crashes).run() } else { 1 };
    }
    let seeds = variable("TACHO_SIM_SEEDS").unwrap_or(SEEDS);
    let mut delivered = 0;
    for seed in (part..seeds).step_by(parts as usize) {
        match catch_unwind(AssertUnwindSafe(|| World::new(seed, crashes).run())) {
            Ok(len) => delivered += len,
            Err(_) => panic!("failing seed: TACHO_SIM_SEED={seed}"),
        }
    }
    delivered
}

// 26, 28, 30
#[test]
fn qos_contracts_hold_over_a_bad_network_even_seeds() {
    assert!(run_share(0, 2, false) > 0);
}

// 26, 28, 30
#[test]
fn qos_contracts_hold_over_a_bad_network_odd_seeds() {
    assert!(run_share(1, 2, false) > 0);
}

// 26, 28, 30
#[test]
fn qos_contracts_hold_over_crashes_of_the_server_even_seeds() {
    assert!(run_share(0, 2, true) > 0);
}

// 26, 28, 30
#[test]
fn qos_contracts_hold_over_crashes_of_the_server_odd_seeds() {
    assert!(run_share(1, 2, true) > 0);
}
