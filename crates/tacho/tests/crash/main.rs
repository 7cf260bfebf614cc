//! The broker is killed with SIGKILL at random moments, again and again, and everything that it
//! has acknowledged must be there.
//!
//! Clients with sessions that outlive everything publish numbered messages at QoS 1 and 2 and
//! receive them, by plain, changing and shared subscriptions; others have wills, or messages
//! retained. The broker dies, also while it starts, and comes back on the same data, with another
//! number of shards; the clients resume. Then: no acknowledged message is missing, none of
//! QoS 2 came twice, order holds per topic and publisher, retained messages and subscriptions are
//! as acknowledged, wills were published once, see [`ledger`].
//!
//! What happens is drawn from a seed, when it happens is up to the machine: a seed that failed is
//! worth running again, but need not fail again. `cargo xtask crash` runs for as long as one likes,
//! and against any broker that can be started by a command.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

mod broker;
mod cast;
mod client;
mod ledger;
mod options;
mod outcome;
mod wire;
mod world;

use std::fs;

use broker::Program;
use ledger::Kind;
use options::Options;
use outcome::Outcome;
use world::World;

/// Says what was wrong, if anything was; then what the broker left is kept.
fn judge(options: &Options, outcome: &Outcome) {
    println!("{}", outcome.table());
    let findings = &outcome.findings;
    assert!(
        findings.total() == 0,
        "{}\n{} promises were broken with seed {} (TACHO_CRASH_SEED); the broker's data and log \
         are in {}",
        findings.told().join("\n"),
        findings.total(),
        options.seed,
        options.folder.display(),
    );
    assert!(outcome.totals.acknowledged > 0, "nothing was checked");
    fs::remove_dir_all(&options.folder).unwrap();
}

#[test]
fn a_few_kills_lose_nothing() {
    let options = Options::short("short", Program::Durable, 6);
    let outcome = World::new(options.clone()).run();
    judge(&options, &outcome);
    assert!(outcome.reshaped > 0, "every life had as many shards as the one before");
}

#[test]
#[ignore = "as long as asked for: cargo xtask crash"]
fn kills_for_as_long_as_asked() {
    let options = Options::from_environment();
    judge(&options, &World::new(options.clone()).run());
}

/// The clients and the checker are right: without kills also a broker in memory passes.
#[test]
fn without_kills_nothing_is_wrong() {
    let options = Options::short("alive", Program::Forgetful, 0);
    judge(&options, &World::new(options.clone()).run_without_kills(4));
}

/// What the checker is worth: a broker that keeps nothing does not pass.
#[test]
fn a_broker_that_forgets_is_found_out() {
    let mut options = Options::short("forgetful", Program::Forgetful, 4);
    options.keep_going = true;
    let folder = options.folder.clone();
    let outcome = World::new(options).run();
    assert!(outcome.findings.count(Kind::Session) > 0, "{}", outcome.table());
    fs::remove_dir_all(folder).unwrap();
}
