//! Starting runs: each at most once, and watched by those only who may use the console.

use std::fs;
use std::net::SocketAddr;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

use crate::client::{Console, ask, long, next_event, small, until};
use crate::{folder, runs_below};

#[test]
fn a_run_whose_console_ends_while_it_starts_it_is_started_once() {
    let place = folder();
    let console = Console::start(place.path());
    let first = console.begin(&long());
    console.wait_for(&first, "running");
    let second = console.begin(&small(0.5));
    let directory = place.path().join(&second);
    // The console gets stuck where it notes the process that it has just started.
    let note = directory.join(".request.json.new");
    mknodat(CWD, &note, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("makes");
    assert_eq!(console.post(&format!("/runs/{first}/stop"), &Value::Null).status, 202);
    until("the second run is not started", || runs_below(&directory).pop());
    console.kill();
    until("the second run goes on", || runs_below(&directory).is_empty().then_some(()));
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
    let noted: Value = serde_json::from_str(&read("request.json")).expect("is JSON");
    assert_eq!(noted["process"], Value::Null, "it was noted before");
    assert!(read("console.log").contains("before this run began"), "{}", read("console.log"));
    for begun in ["scenario.toml", "environment.json", "running.json", "summary.json"] {
        assert!(!directory.join(begun).exists(), "it has begun: {begun}");
    }
    fs::remove_file(&note).expect("removes");
    let console = Console::start(place.path());
    let run = console.wait_for(&second, "finished");
    assert_eq!(run["summary"]["steps"].as_array().map(Vec::len), Some(1), "{run}");
}

#[test]
fn a_run_that_was_noted_is_not_started_again() {
    let place = folder();
    let console = Console::start(place.path());
    let id = console.begin(&long());
    let process = until("the run is not started", || runs_below(&place.path().join(&id)).pop());
    console.wait_for(&id, "running");
    console.kill();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).expect("is ours");
    let console = Console::start(place.path());
    console.wait_for(&id, "broken");
    assert_eq!(console.read("/queue")["running"], Value::Null);
    assert!(runs_below(&place.path().join(&id)).is_empty());
}

#[test]
fn other_users_of_the_machine_reach_nothing_of_a_run_of_the_console() {
    let place = folder();
    let console = Console::start(place.path());
    let id = console.begin(&long());
    console.wait_for(&id, "running");
    let mut events = console.events(&format!("/runs/{id}/events"));
    next_event(&mut events, "event: second");
    let running = fs::read(place.path().join(&id).join("running.json")).expect("is there");
    let running: Value = serde_json::from_slice(&running).expect("is JSON");
    let page = running["page"].as_str().expect("listens");
    let page = page.trim_start_matches("http://").trim_end_matches('/');
    let page: SocketAddr = page.parse().expect("an address");
    for line in ["GET /", "GET /events", "POST /stop", "GET /run/scenario.toml", "GET /live.js"] {
        let wrong = "0".repeat(64);
        for token in ["", console.token.as_str(), &wrong] {
            let headers = format!("Authorization: Bearer {token}\nX-Tacho-Token: {token}");
            let answer = ask(page, line, &headers, b"");
            assert_eq!(answer.status, 401, "{line}: {}", answer.body);
        }
        assert_eq!(ask(page, line, "", b"").status, 401, "{line}");
    }
    // A console that comes later watches it all the same.
    console.kill();
    let console = Console::start(place.path());
    let mut events = console.events(&format!("/runs/{id}/events"));
    next_event(&mut events, "event: second");
    assert_eq!(console.read(&format!("/runs/{id}"))["state"], "running");
}
