//! Sessions whose subscribers are away while messages are published, and brokers that are killed
//! meanwhile.

use std::process::Command;

use tacho_testkit::runs::assert_code;
use tacho_testkit::runs::persistent::{Course, persistent};

fn run(arguments: &[&str]) -> Course {
    persistent(env!("CARGO_BIN_EXE_tacho"), arguments).unwrap_or_else(|why| panic!("{why}"))
}

/// The broker as a command that keeps nothing on disk.
fn in_memory() -> String {
    format!("{} broker --quiet --listen 127.0.0.1:{{port}} --shards 2", env!("CARGO_BIN_EXE_tacho"))
}

#[test]
fn everything_comes_when_the_subscribers_are_back() {
    for qos in ["qos=1", "qos=2"] {
        let course = run(&["--var", qos, "--broker-cmd", &in_memory()]);
        assert_code(course.code, &course.record, &[]);
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
fn a_killed_broker_with_sessions_in_memory_loses_acknowledged_messages() {
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
    assert!(reasons.contains("that the broker had acknowledged never came"));
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
        .args(["--var", "rate=20", "--var", "kills=2", "--var", "drain=5s", "--seed", "3"])
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

#[test]
fn the_built_in_broker_keeps_acknowledged_messages_unless_configured_otherwise() {
    for qos in ["qos=1", "qos=2"] {
        let course = run(&["--var", qos, "--var", "kills=3"]);
        assert_code(course.code, &course.record, &[]);
        let counts = ["acknowledged_lost", "sessions_lost", "out_of_order", "acknowledged_pending"];
        assert_eq!(counts.map(|key| course.count(key)), [0; 4], "{qos} {:#}", course.record);
        // Messages due while the broker is down are never sent: on a slow disk that is most.
        assert!(course.count("kills") >= 1 && course.count("received") > 0, "{:#}", course.record);
        if qos == "qos=2" {
            assert_eq!(course.count("duplicates"), 0, "{:#}", course.record);
        }
        let target = &course.record["targets"][0];
        assert_eq!(
            (&target["durability"], &target["offline_qos0"]),
            (&"fsynced".into(), &false.into())
        );
        assert!(course.table.contains("sessions: fsynced; QoS 0 is not kept"), "{}", course.table);
    }
    let course = run(&["--durability", "memory", "--var", "kills=1"]);
    assert_eq!(course.code, Some(110), "{:#}", course.record);
    assert!(course.count("acknowledged_lost") > 100);
    assert_eq!(course.record["targets"][0]["durability"], "memory");
}

#[test]
fn sessions_that_outlive_connections_are_kept_on_the_disk_by_default() {
    for (scenario, level) in
        [("false_2_2_qos1_p64_20mps", "fsynced"), ("2_2_qos1_p64_20mps", "memory")]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
            .args(["run", scenario, "--quiet", "--hold", "1s", "--warmup", "0s", "--dir"])
            .arg(folder.path())
            .output()
            .expect("tacho runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let text = std::fs::read_to_string(folder.path().join("summary.json")).expect(&said);
        let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(record["target"]["durability"], level, "{scenario}");
        let received = &record["steps"][0]["received"];
        assert_eq!(*received, 40, "{scenario}: {record:#}");
        let command = record["target"]["command"].as_str().expect("a command");
        assert_eq!(command.contains("--data-dir"), level == "fsynced", "{command}");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["run", "symmetric", "--durability", "written", "--broker-cmd", "true {port}"])
        .output()
        .expect("tacho runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--durability cannot be used here"), "{said}");
}
