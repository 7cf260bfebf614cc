//! Sessions whose subscribers are away while messages are published, and brokers that are killed
//! meanwhile.

#[path = "common/persistent.rs"]
mod common;

use std::process::Command;

use common::{Course, persistent};

/// A shared machine may slow both sides; what counts here is what came.
const FAIR: [i32; 3] = [0, 99, 111];

fn run(arguments: &[&str]) -> Course {
    persistent(arguments).unwrap_or_else(|why| panic!("{why}"))
}

/// The broker as a command that keeps nothing on disk.
fn in_memory() -> String {
    format!("{} broker --quiet --listen 127.0.0.1:{{port}} --shards 2", env!("CARGO_BIN_EXE_tacho"))
}

#[test]
fn everything_comes_when_the_subscribers_are_back() {
    for qos in ["qos=1", "qos=2"] {
        let course = run(&["--var", qos, "--broker-cmd", &in_memory()]);
        assert!(course.code.is_some_and(|code| FAIR.contains(&code)), "{:#}", course.record);
        let counts = ["sent", "received", "lost", "acknowledged_lost", "sessions_lost", "kills"];
        assert_eq!(counts.map(|key| course.count(key)), [200, 200, 0, 0, 0, 0], "{qos}");
        let phases = course.record["phases"].as_array().expect("phases");
        let named = |name: &str| phases.iter().find(|phase| phase["name"] == name).expect(name);
        assert_eq!(named("measure")["sent"], 200);
        assert_eq!(named("measure")["received"], 0);
        let order: Vec<_> = phases.iter().filter_map(|phase| phase["name"].as_str()).collect();
        let wanted = ["connect", "subscribe", "probe", "offline", "measure", "resume", "drain"];
        assert!(order.starts_with(&wanted), "{order:?}");
        assert!(course.table.contains("acknowledged, but lost"), "{}", course.table);
        assert!(course.table.contains("\n  resume  ") && course.page.contains(">resume<"));
    }
}

#[test]
fn a_broker_that_keeps_sessions_in_memory_loses_what_it_acknowledged_when_it_is_killed() {
    let course = run(&["--var", "kills=1", "--broker-cmd", &in_memory()]);
    assert_eq!(course.code, Some(110), "{:#}", course.record);
    // Some of the subscribers may have been back, and have drained, just before.
    let (sent, lost) = (course.count("sent"), course.count("acknowledged_lost"));
    assert!(sent == 200 && lost > 100, "{:#}", course.record);
    assert!(course.count("sessions_lost") >= 10 && course.count("kills") == 1);
    let restart = &course.record["restarts"][0];
    assert_eq!(restart["phase"], "resume");
    assert!(restart["serving_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{restart}");
    assert!(course.table.contains("broker killed at"), "{}", course.table);
    assert!(course.page.contains("Brokers killed and started again"));
    let reasons = course.record["reasons"].to_string();
    assert!(reasons.contains("never came of messages that the broker had acknowledged"));
}

#[test]
fn the_directory_of_a_command_stays_while_its_broker_is_killed() {
    // Each start leaves a line there.
    let command = format!(
        "sh -c 'echo start >> {{dir}}/starts; cp {{dir}}/starts {{dir}}/../starts; exec {}'",
        in_memory()
    );
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("run");
    let status = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["run", "persistent", "--quiet", "--var", "sessions=2", "--var", "messages=20"])
        .args(["--var", "rate=20", "--var", "kills=2", "--var", "drain=1s", "--seed", "3"])
        .args(["--broker-cmd", &command, "--dir"])
        .arg(&directory)
        .status()
        .expect("tacho runs");
    assert_eq!(status.code(), Some(110));
    let starts = std::fs::read_to_string(directory.join("starts")).expect("the broker started");
    assert_eq!(starts.lines().count(), 3);
    assert!(!directory.join("data").exists());
}

#[test]
fn a_broker_that_is_running_already_cannot_be_killed() {
    let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["run", "persistent", "--var", "kills=1", "--broker"])
        .arg({
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
            let address = listener.local_addr().expect("an address");
            std::thread::spawn(move || listener.accept());
            format!("mqtt://{address}")
        })
        .output()
        .expect("tacho runs");
    assert_eq!(output.status.code(), Some(104));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("only a broker that the run starts can be started again"), "{said}");
}

#[test]
fn a_broker_that_does_not_come_back_ends_the_run() {
    let command =
        format!("sh -c 'test -e {{dir}}/ran && exit 3; touch {{dir}}/ran; exec {}'", in_memory());
    let course = run(&["--var", "kills=1", "--broker-cmd", &command]);
    assert_eq!(course.code, Some(112), "{:#}", course.record);
    assert_eq!(course.record["verdict"], "aborted");
}
