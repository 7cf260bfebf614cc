//! The contract of the bus, against every engine.
//!
//! Without a nats-server (`cargo xtask peers` builds one) its tests are ignored by name; with
//! `TACHO_REQUIRE_PEERS=1` they fail.

mod logs;
mod messages;
mod nats;
mod parties;
mod server;
mod tables;

use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use tacho_bus::{Bus, LocalBus, Name, NatsBus, NatsSettings, Pattern, SocketBus, SocketServer};

use server::NatsServer;

/// What a test says when it fails.
type Verdict = Result<(), Failed>;
/// Makes a further handle of one engine.
type Connect = Arc<dyn Fn() -> Arc<dyn Bus> + Send + Sync>;
/// A test of the contract: its name is a token of its subjects, so that tests do not meet.
type Test = (&'static str, fn(&Connect, &'static str) -> Verdict);

fn main() {
    let arguments = Arguments::from_args();
    let tests: Vec<Test> = [messages::TESTS, logs::TESTS, tables::TESTS, parties::TESTS].concat();
    let local = LocalBus::default();
    let connect: Connect = Arc::new(move || Arc::new(local.clone()));
    let mut trials = Vec::new();
    register(&mut trials, "local", &tests, &connect);

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bus");
    let server = SocketServer::start(Arc::new(LocalBus::default()), &path).expect("serves");
    let connect: Connect = Arc::new(move || Arc::new(SocketBus::connect(&path).expect("serves")));
    register(&mut trials, "socket", &tests, &connect);

    let nats = NatsServer::find().map(|program| NatsServer::start(&program, "", true));
    let address = nats.as_ref().map(NatsServer::address).unwrap_or_default();
    let connect: Connect = Arc::new(move || {
        let settings = NatsSettings::new(&address).expect("an address");
        Arc::new(NatsBus::connect(&settings).expect("connects"))
    });
    let mut own = Vec::new();
    register(&mut own, "nats", &tests, &connect);
    nats::register(&mut own);
    trials.extend(own.into_iter().map(|trial| with_peer(trial, nats.is_some())));

    let conclusion = libtest_mimic::run(&arguments, trials);
    drop((nats, server));
    conclusion.exit();
}

fn register(trials: &mut Vec<Trial>, engine: &str, tests: &[Test], connect: &Connect) {
    for &(name, test) in tests {
        let connect = Arc::clone(connect);
        trials.push(Trial::test(format!("{engine}::{name}"), move || test(&connect, name)));
    }
}

/// Ignored by name, or failed where peers are mandatory, if there is no nats-server.
fn with_peer(trial: Trial, is_here: bool) -> Trial {
    if is_here {
        return trial;
    }
    if std::env::var("TACHO_REQUIRE_PEERS").is_ok_and(|value| value == "1") {
        let complaint = "no nats-server, and TACHO_REQUIRE_PEERS=1 makes it mandatory";
        return Trial::test(trial.name().to_owned(), move || Err(complaint.into()));
    }
    trial.with_ignored_flag(true).with_kind("no nats-server")
}

/// A subject of the test.
fn subject(test: &str, rest: &str) -> tacho_bus::Subject {
    tacho_bus::Subject::parse(&format!("test.{test}.{rest}")).expect("a subject")
}

fn pattern(test: &str, rest: &str) -> Pattern {
    Pattern::parse(&format!("test.{test}.{rest}")).expect("a pattern")
}

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

/// Asks again and again until it is so, for ten seconds at most.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("not within ten seconds: {what}");
}
