//! The broker is killed with SIGKILL at random moments, repeatedly, and must lose nothing that it
//! has acknowledged.
//!
//! Clients with persistent sessions publish numbered messages at QoS 1 and 2 and receive them by
//! plain, changing and shared subscriptions; others have wills or publish retained messages. The
//! broker dies, also while it starts, and restarts on the same data with a different number of
//! shards; the clients resume. Then no acknowledged message is missing, none of QoS 2 is
//! duplicated, order holds per topic and publisher, retained messages and subscriptions are as
//! acknowledged, and wills were published once; see [`ledger`].
//!
//! Every third kill comes right after a backup, which then takes the place of the data: what was
//! acknowledged before the backup is in it.
//!
//! The seed decides what happens, the machine when: a failing seed is worth repeating but may pass.
//! `cargo xtask crash` runs for any time, and against any broker that a command can start.
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

/// Fails on findings, and keeps the data and log of the broker then.
fn judge(options: &Options, outcome: &Outcome) {
    println!("{}", outcome.table());
    let findings = &outcome.findings;
    assert!(
        findings.total() == 0,
        "{}\n{} findings with seed {} (TACHO_CRASH_SEED); the broker's data and log \
         are in {}",
        findings.texts().join("\n"),
        findings.total(),
        options.seed,
        options.folder.display(),
    );
    assert!(outcome.totals.acknowledged > 0, "no message was acknowledged");
    if let Some(disk) = outcome.disk {
        assert!(disk.sync_errors > 0, "no sync has failed: nothing is proved about bad disks");
    }
    fs::remove_dir_all(&options.folder).unwrap();
}

#[test]
fn a_few_kills_lose_nothing() {
    let options = Options::short("short", Program::Durable, 6);
    let outcome = World::new(options.clone()).run();
    judge(&options, &outcome);
    assert!(outcome.reshaped > 0, "every restart had the same number of shards");
    assert!(outcome.restored > 0, "no restart was one from a backup");
}

/// Its disk is slow, writes by halves, and fails to sync now and then.
#[test]
fn a_few_kills_on_a_bad_disk_lose_nothing() {
    let options = Options { disk_faults: true, ..Options::short("bad-disk", Program::Durable, 4) };
    judge(&options, &World::new(options.clone()).run());
}

#[test]
#[ignore = "for long runs: cargo xtask crash"]
fn kills_for_as_long_as_asked() {
    let options = Options::from_environment();
    let outcome = World::new(options.clone()).run();
    let is_bad = outcome.disk.is_some();
    assert_eq!(is_bad, options.disk_faults, "faults of the disk are not possible here");
    judge(&options, &outcome);
}

/// Clients and checker are correct: without kills even an in-memory broker passes.
#[test]
fn without_kills_there_are_no_findings() {
    let options = Options::short("alive", Program::Forgetful, 0);
    judge(&options, &World::new(options.clone()).run_without_kills(4));
}

/// The checker detects losses: an in-memory broker does not pass.
#[test]
fn an_in_memory_broker_is_detected() {
    let mut options = Options::short("forgetful", Program::Forgetful, 4);
    options.keep_going = true;
    let folder = options.folder.clone();
    let outcome = World::new(options).run();
    assert!(outcome.findings.count(Kind::Session) > 0, "{}", outcome.table());
    fs::remove_dir_all(folder).unwrap();
}
