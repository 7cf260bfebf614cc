//! `tacho pub` and `tacho sub`, as people and scripts use them.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tacho_testkit::{TestBroker, wait_until};
use tempfile::TempDir;

fn tacho(broker: &TestBroker, arguments: &[&str]) -> Command {
    let port = broker.addresses()[0].port().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.arg(arguments[0]).args(["-h", "127.0.0.1", "-p", &port]).args(&arguments[1..]);
    command.env_remove("TACHO_TARGET").env_remove("TACHO_USERNAME").env_remove("TACHO_PASSWORD");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts `tacho sub`, which ends by itself, and waits until it has subscribed.
fn subscriber(broker: &TestBroker, arguments: &[&str]) -> Child {
    wait_until("the one before has left", || broker.counter("subscriptions") == 0);
    let child = tacho(broker, arguments).args(["-W", "60"]).spawn().expect("it starts");
    wait_until("a subscription", || broker.counter("subscriptions") == 1);
    child
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn done(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
}

#[test]
fn a_message_arrives_in_every_version() {
    let broker = TestBroker::start(2);
    for version in ["5", "311", "mqttv31"] {
        let sub =
            subscriber(&broker, &["sub", "-t", "a/#", "-V", version, "-C", "2", "-v", "-q", "2"]);
        let one = ["pub", "-t", "a/b", "-m", "hello", "-q", "1", "-V", version];
        done(&tacho(&broker, &one).output().unwrap(), 0);
        let null = ["pub", "-t", "a/c", "-n", "-q", "2", "-V", version];
        done(&tacho(&broker, &null).output().unwrap(), 0);
        let shown = sub.wait_with_output().unwrap();
        done(&shown, 0);
        assert_eq!(text(&shown.stdout), "a/b hello\na/c \n", "{version}");
    }
}

#[test]
fn lines_of_standard_input_are_messages_in_order() {
    let broker = TestBroker::start(1);
    for qos in ["0", "1", "2"] {
        let sub = subscriber(&broker, &["sub", "-t", "lines", "-q", qos, "-C", "1000"]);
        let mut publisher = tacho(&broker, &["pub", "-t", "lines", "-l", "-q", qos])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let lines: String = (0..1000).map(|number| format!("line {number}\n")).collect();
        publisher.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        done(&publisher.wait_with_output().unwrap(), 0);
        let shown = sub.wait_with_output().unwrap();
        done(&shown, 0);
        assert_eq!(text(&shown.stdout), lines);
    }
}

#[test]
fn json_has_properties_and_files_are_payloads() {
    let broker = TestBroker::start(1);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("payload");
    std::fs::write(&file, [0xFF, 0x00]).unwrap();
    let sub = subscriber(&broker, &["sub", "-t", "a", "--json", "-C", "3"]);
    for what in [
        &[
            "-m",
            "{\"t\": 21.5}",
            "-D",
            "publish",
            "content-type",
            "application/json",
            "-D",
            "publish",
            "user-property",
            "unit",
            "C",
        ][..],
        &["-f", file.to_str().unwrap()],
        &["-m", "x", "--repeat", "1"],
    ] {
        let arguments = [&["pub", "-t", "a"][..], what].concat();
        done(&tacho(&broker, &arguments).output().unwrap(), 0);
    }
    let shown = sub.wait_with_output().unwrap();
    done(&shown, 0);
    let lines: Vec<Value> =
        text(&shown.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["payload"]["t"], 21.5);
    assert_eq!(lines[0]["properties"]["content-type"], "application/json");
    assert_eq!(lines[0]["properties"]["user-properties"][0]["unit"], "C");
    assert_eq!(lines[1]["payload_hex"], "ff00");
    assert_eq!(lines[2]["payload"], "x");
}

#[test]
fn retained_messages_are_shown_or_left_out() {
    let broker = TestBroker::start(1);
    done(
        &tacho(&broker, &["pub", "-t", "r/1", "-m", "kept", "-r", "-q", "1"]).output().unwrap(),
        0,
    );
    let sub = tacho(&broker, &["sub", "-t", "r/#", "-F", "%t %r", "-C", "1"]).output().unwrap();
    done(&sub, 0);
    assert_eq!(text(&sub.stdout), "r/1 1\n");
    for flag in [&["-R"][..], &["-T", "r/1"]] {
        let arguments = [&["sub", "-t", "r/#", "-C", "1", "-W", "1"][..], flag].concat();
        let sub = tacho(&broker, &arguments).output().unwrap();
        done(&sub, 27);
        assert_eq!(text(&sub.stdout), "");
    }
}

#[test]
fn what_cannot_be_done_is_said_with_an_exit_code() {
    let broker = TestBroker::start(1);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for (arguments, code, named) in [
        (&["pub", "-t", "a/#", "-m", "x"][..], 104, "'a/#'"),
        (&["pub", "-t", "a", "-m", "x", "-f", "y"], 1, "cannot be used with"),
        (&["pub", "-t", "a"], 1, "required"),
        (&["pub", "-t", "a", "-f", "/nonexistent"], 104, "/nonexistent"),
        (&["pub", "-t", "a", "-m", "x", "-D", "publish", "colour", "red"], 104, "publish colour"),
        (
            &["pub", "-t", "a", "-m", "x", "-V", "311", "-D", "publish", "content-type", "x"],
            104,
            "5.0",
        ),
        (&["pub", "-t", "$SYS/x", "-m", "x", "-q", "1"], 1, "refused"),
        (&["sub", "-t", "a/#/b"], 104, "'a/#/b'"),
        (&["sub", "-t", "a", "-F", "%z"], 1, "%z"),
        (&["sub", "-t", "a", "-V", "7"], 1, "versions are"),
    ] {
        let output = tacho(&broker, arguments).output().unwrap();
        done(&output, code);
        assert!(text(&output.stderr).contains(named), "{arguments:?}: {}", text(&output.stderr));
    }
    let nowhere = format!("mqtt://127.0.0.1:{free}");
    let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["pub", "-t", "a", "-m", "x"])
        .env("TACHO_TARGET", nowhere)
        .output()
        .unwrap();
    done(&output, 112);
    assert!(text(&output.stderr).contains(&free.to_string()));
}

#[test]
fn credentials_come_from_files_and_the_environment() {
    let folder = TempDir::new().unwrap();
    let users = folder.path().join("users");
    let mut passwd = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["passwd", "-c"])
        .arg(&users)
        .arg("ann")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    passwd.stdin.take().unwrap().write_all(b"s3cret\n").unwrap();
    assert!(passwd.wait().unwrap().success());
    let broker = TestBroker::configured(&format!(
        "[access]\npassword_file = {:?}\n",
        users.to_str().unwrap()
    ));
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "s3cret\n").unwrap();
    let publish = ["pub", "-t", "a", "-m", "x", "-q", "1"];
    let file = ["-u", "ann", "--password-file", secret.to_str().unwrap()];
    done(&tacho(&broker, &publish).args(file).output().unwrap(), 0);
    let output = tacho(&broker, &publish)
        .env("TACHO_USERNAME", "ann")
        .env("TACHO_PASSWORD", "s3cret")
        .output()
        .unwrap();
    done(&output, 0);
    let wrong = tacho(&broker, &publish).args(["-u", "ann", "-P", "no"]).output().unwrap();
    done(&wrong, 112);
    assert!(text(&wrong.stderr).contains("refuses the connection"), "{}", text(&wrong.stderr));
    assert!(text(&wrong.stderr).contains("other users of this machine"));
}
