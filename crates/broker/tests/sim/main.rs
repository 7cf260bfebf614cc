//! Whole shards on virtual loops: clients, connections, clock and faults, all drawn from a seed.
//!
//! Every seed is one run of a broker with one to three shards. Several clients of all versions do
//! whatever clients do (connect, resume, take over, subscribe, publish, read slowly, vanish) while
//! the simulation delays mail, events and bytes, stalls shards and refuses connections. What they
//! see is checked against the promises of the broker, see [`ledger`]; at the end everything must
//! have been given back. [`bridged`] has a bridge to another broker, [`ruled`] users and rules that
//! change. [`fuzz`] sends single connections whatever packets there are. [`backpressure`] looks at
//! one case by itself.
//!
//! A failing seed is printed with the command that runs it again. `TACHO_SIM_SEED=n` runs one seed,
//! `TACHO_SIM_SEEDS=n` n seeds, `TACHO_SIM_SECONDS=n` as many as possible in that time, starting
//! with `TACHO_SIM_FROM`; `cargo xtask sim` does the last for minutes or hours.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

mod backpressure;
mod bridged;
mod client;
mod fuzz;
mod ledger;
mod ruled;
mod setup;
mod wire;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use world::World;

/// Seeds of an ordinary test run.
const SEEDS: u64 = 3_000;
/// Seeds of brokers with a journal, which crash.
const DURABLE_SEEDS: u64 = 200;
/// Seeds of brokers with a journal and a bridge.
const BRIDGED_SEEDS: u64 = 100;
/// Seeds of brokers with users and rules.
const RULED_SEEDS: u64 = 80;
/// Those that have found something about members of a group that may not have its messages any
/// more: these went from one to another without end, or were lost for the others.
const RULED_FOUND: [u64; 3] = [103_516, 502_396, 103_814];
/// A persistent session with 3 messages queued, where 2 are allowed, becomes one that ends with its
/// connection, at whose limits messages are dropped.
const OVER_ITS_LIMIT: u64 = 50_307_906;
/// A publisher that was cut off repeats what it sent; its repetitions push the first copy of an
/// older message out of a full queue, but not that of a newer one.
const DROPPED_AND_REPEATED: u64 = 50_679_890;
/// A session is resumed with messages whose commit was not complete when they were first read.
const READ_AGAIN: u64 = 71_002_009;
/// Connections fuzzed in an ordinary test run.
const FUZZ_SEEDS: u64 = 2_000;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Runs the seeds of one of `parts` equal shares; `run` returns how much it has seen.
fn run_share(test: &str, part: u64, parts: u64, seeds: u64, run: fn(u64) -> u64) {
    if let Some(seed) = variable("TACHO_SIM_SEED") {
        if part == 0 {
            run(seed);
        }
        return;
    }
    let seconds = variable("TACHO_SIM_SECONDS").map(Duration::from_secs);
    let first = variable("TACHO_SIM_FROM").unwrap_or(0);
    let seeds = variable("TACHO_SIM_SEEDS").unwrap_or(seeds);
    let last = if seconds.is_some() { u64::MAX } else { first + seeds };
    let start = Instant::now();
    let (mut seen, mut runs) = (0, 0_u64);
    for seed in (first + part..last).step_by(parts as usize) {
        if seconds.is_some_and(|seconds| start.elapsed() > seconds) {
            break;
        }
        match catch_unwind(AssertUnwindSafe(|| run(seed))) {
            Ok(len) => seen += len,
            Err(_) => panic!(
                "failing seed: TACHO_SIM_SEED={seed} cargo test -p tacho-broker --test sim {test}"
            ),
        }
        runs += 1;
    }
    println!("{test}: {runs} runs from seed {first}, {seen} packets checked");
    assert!(seen > 0, "nothing was checked");
}

fn whole(seed: u64) -> u64 {
    World::new(seed).run().seen
}

#[test]
fn whole_shards_keep_their_promises_even_seeds() {
    run_share("whole_shards", 0, 2, SEEDS, whole);
}

#[test]
fn whole_shards_keep_their_promises_odd_seeds() {
    run_share("whole_shards", 1, 2, SEEDS, whole);
}

fn durable(seed: u64) -> u64 {
    World::durable(seed).run().seen
}

#[test]
fn messages_above_the_limit_stay_where_new_ones_begin_to_be_dropped() {
    assert!(whole(OVER_ITS_LIMIT) > 0);
}

#[test]
fn a_message_that_a_full_queue_dropped_may_come_behind_newer_ones() {
    assert!(whole(DROPPED_AND_REPEATED) > 0);
}

#[test]
fn durable_shards_keep_their_promises_even_seeds() {
    run_share("durable_shards", 0, 2, DURABLE_SEEDS, durable);
}

#[test]
fn durable_shards_keep_their_promises_odd_seeds() {
    run_share("durable_shards", 1, 2, DURABLE_SEEDS, durable);
}

#[test]
fn bridged_shards_keep_their_promises() {
    run_share("bridged_shards", 0, 1, BRIDGED_SEEDS, bridged::run);
}

#[test]
fn ruled_shards_keep_to_their_rules() {
    run_share("ruled_shards", 0, 1, RULED_SEEDS, ruled::run);
}

#[test]
fn messages_that_cannot_be_read_yet_are_read_a_moment_later() {
    assert!(ruled::run(READ_AGAIN) > 0);
}

#[test]
fn messages_that_a_member_may_not_have_go_to_others() {
    for seed in RULED_FOUND {
        assert!(ruled::run(seed) > 0, "seed {seed}");
    }
}

#[test]
fn any_packets_are_answered_or_end_the_connection() {
    run_share("any_packets", 0, 1, FUZZ_SEEDS, fuzz::run);
}

/// A seed is worth nothing if it does not mean the same run again.
#[test]
fn a_seed_is_one_run() {
    for seed in 0..10 {
        for world in [World::new, World::durable] {
            let (first, second) = (world(seed).run(), world(seed).run());
            assert_eq!(first, second, "seed {seed} went another way the second time");
        }
        assert_eq!(bridged::run(seed), bridged::run(seed), "seed {seed} of a bridge");
        assert_eq!(ruled::run(seed), ruled::run(seed), "seed {seed} with rules");
    }
}
