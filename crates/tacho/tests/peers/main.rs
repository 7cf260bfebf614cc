//! Independent MQTT programs against Tacho: their view of the protocol, not ours.
//!
//! A peer that the machine does not have turns its tests into ignored ones, by name; with
//! `TACHO_REQUIRE_PEERS=1` it is a failure. `cargo xtask peers` installs them.

mod access;
mod against_mosquitto;
mod agents;
mod another_host;
mod beside_jmeter;
mod bridges;
mod broker;
mod collectd;
mod dashboards;
mod influxdb;
mod jmeter;
mod mosquitto_clients;
mod node_exporter;
mod openapi;
mod operations;
mod otlp;
mod pages;
mod persistent;
mod plans;
mod plot;
mod process;
mod prometheus;
mod pushing;
mod report;
mod scenarios;
mod scripts;
mod sending;
mod small_load;
mod storms;
mod unit;

use libtest_mimic::{Arguments, Failed, Trial};

use process::Peer;

/// The program under test.
const TACHO: &str = env!("CARGO_BIN_EXE_tacho");

/// What a test says when it fails.
type Verdict = Result<(), Failed>;

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    mosquitto_clients::register(&mut trials);
    access::register(&mut trials);
    agents::register(&mut trials);
    scripts::register(&mut trials);
    against_mosquitto::register(&mut trials);
    collectd::register(&mut trials);
    dashboards::register(&mut trials);
    node_exporter::register(&mut trials);
    openapi::register(&mut trials);
    operations::register(&mut trials);
    prometheus::register(&mut trials);
    influxdb::register(&mut trials);
    otlp::register(&mut trials);
    pushing::register(&mut trials);
    scenarios::register(&mut trials);
    storms::register(&mut trials);
    plans::register(&mut trials);
    beside_jmeter::register(&mut trials);
    persistent::register(&mut trials);
    another_host::register(&mut trials);
    report::register(&mut trials);
    pages::register(&mut trials);
    bridges::register(&mut trials);
    jmeter::register(&mut trials);
    plot::register(&mut trials);
    unit::register(&mut trials);
    libtest_mimic::run(&arguments, trials).exit();
}

/// A test that needs peers: runs with them, is ignored without, fails where they are mandatory.
fn trial(name: String, peers: &[Peer], test: impl FnOnce() -> Verdict + Send + 'static) -> Trial {
    let missing: Vec<&str> =
        peers.iter().filter(|peer| peer.find().is_none()).map(|peer| peer.name()).collect();
    if missing.is_empty() {
        return Trial::test(name, test);
    }
    let why = format!("no {}", missing.join(", no "));
    if std::env::var("TACHO_REQUIRE_PEERS").is_ok_and(|value| value == "1") {
        let complaint = format!("{why}, and TACHO_REQUIRE_PEERS=1 makes it mandatory");
        return Trial::test(name, move || Err(complaint.into()));
    }
    Trial::test(name, test).with_ignored_flag(true).with_kind(why)
}
