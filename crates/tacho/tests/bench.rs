//! `tacho bench`, as people with the flags of other tools in their fingers use it, and brokers with
//! a name.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tacho_testkit::{TestBroker, listening_address, wait_until};
use tempfile::TempDir;

fn tacho(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(arguments).current_dir(folder.path()).stdin(Stdio::null());
    command.env("TACHO_TARGETS", folder.path().join("targets.toml"));
    command.env_remove("TACHO_TARGET").env_remove("TACHO_USERNAME").env_remove("TACHO_PASSWORD");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn said(output: &Output) -> String {
    let texts = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    texts.concat()
}

fn port(broker: &TestBroker) -> String {
    broker.addresses()[0].port().to_string()
}

fn record(folder: &TempDir, run: &str) -> Value {
    let text = fs::read(folder.path().join(run).join("summary.json")).expect("a record");
    serde_json::from_slice(&text).expect("is JSON")
}

#[test]
fn publishers_end_after_their_messages_and_the_scenario_can_be_run_again() {
    let broker = TestBroker::start(1);
    let folder = TempDir::new().expect("a folder");
    let port = port(&broker);
    let line = ["bench", "pub", "-h", "127.0.0.1", "-p", &port, "-t", "b/%i", "-c", "10"];
    let more = ["-I", "20", "-q", "1", "-L", "200", "-i", "1", "--", "--dir", "first"];
    let output = tacho(&folder, &[&line[..], &more[..]].concat()).output().expect("starts");
    let shown = said(&output);
    assert!(shown.contains("bench-pub is a scenario now"), "{shown}");
    assert_eq!(record(&folder, "first")["steps"][0]["sent"], 200, "{shown}");
    let again = tacho(
        &folder,
        &["run", "first/scenario.toml", "--broker", &format!("127.0.0.1:{port}"), "--dir", "again"],
    );
    let again = { again }.output().expect("starts");
    assert_eq!(record(&folder, "again")["steps"][0]["sent"], 200, "{}", said(&again));
}

#[test]
fn subscribers_count_what_other_programs_publish() {
    let broker = TestBroker::start(1);
    let folder = TempDir::new().expect("a folder");
    let port = port(&broker);
    let line = ["bench", "sub", "-h", "127.0.0.1", "-p", &port, "-t", "s/#", "-c", "3", "-i", "0"];
    let more = ["-q", "1", "-d", "4s", "--", "--dir", "sub"];
    let sub = tacho(&folder, &[&line[..], &more[..]].concat()).spawn().expect("starts");
    wait_until("subscriptions", || broker.counter("subscriptions") == 3);
    // The run has a moment before its load begins.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let words = ["pub", "-h", "127.0.0.1", "-p", &port, "-t", "s/1", "-m", "x", "-q", "1"];
    let published = tacho(&folder, &[&words[..], &["--repeat", "5"][..]].concat()).output();
    assert!(published.expect("starts").status.success());
    let shown = said(&sub.wait_with_output().expect("ends"));
    assert!(shown.contains("received: 15 messages of other programs"), "{shown}");
}

#[test]
fn a_password_of_the_command_line_is_used_and_kept_nowhere() {
    let folder = TempDir::new().expect("a folder");
    let text = "[groups.conn]\nclients = 20\n";
    let line = ["bench", "conn", "-c", "20", "-u", "ann", "-P", "hunter2-secret", "--show"];
    let output = tacho(&folder, &line).output().expect("starts");
    let shown = said(&output);
    assert!(shown.contains(text) && !shown.contains("hunter2"), "{shown}");
    let broker = TestBroker::start(1);
    let port = port(&broker);
    let line =
        ["bench", "conn", "-h", "127.0.0.1", "-p", &port, "-c", "20", "-i", "0", "-u", "ann"];
    let more = ["-P", "hunter2-secret", "-d", "1s", "--", "--dir", "conn"];
    let output = tacho(&folder, &[&line[..], &more[..]].concat()).output().expect("starts");
    let record = record(&folder, "conn");
    assert_eq!(record["scenario"], "bench-conn", "{}", said(&output));
    for entry in fs::read_dir(folder.path().join("conn")).expect("a folder").flatten() {
        let bytes = fs::read(entry.path()).unwrap_or_default();
        let found = bytes.windows(14).any(|window| window == b"hunter2-secret");
        assert!(!found, "{}", entry.path().display());
    }
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_starts() {
    let folder = TempDir::new().expect("a folder");
    for (line, code, why) in [
        (vec!["bench", "pub", "-t", "a", "-c", "3", "-L", "10"], 104, "a multiple of -c"),
        (vec!["bench", "pub", "-t", "a/#"], 104, "a/#"),
        (vec!["bench", "pub", "-t", "a", "-s", "10"], 1, "24"),
        (vec!["bench", "conn", "-h", "a,b"], 104, "one host"),
        (vec!["bench", "conn", "--", "--no-such-flag"], 1, "--no-such-flag"),
        (vec!["bench", "conn", "--", "--repeat", "3"], 1, "--repeat"),
        (vec!["bench", "conn", "--broker", "@lab"], 1, "there is no broker @lab"),
    ] {
        let output = tacho(&folder, &line).output().expect("starts");
        let shown = said(&output);
        assert_eq!(output.status.code(), Some(code), "{line:?}: {shown}");
        assert!(shown.contains(why), "{line:?}: {shown}");
        assert!(!folder.path().join("runs").exists(), "{line:?}");
    }
}

/// A name stands for the address with its credentials, for every command.
#[test]
fn a_broker_with_a_name_is_reached_with_its_credentials() {
    let folder = TempDir::new().expect("a folder");
    let users = folder.path().join("users");
    let passwd = tacho(&folder, &["passwd", "-c", "-b", "users", "ann", "hunter2"]).output();
    assert!(passwd.expect("starts").status.success());
    let line = ["broker", "--listen", "0", "--shards", "1", "--management-socket", "none"];
    let broker = tacho(&folder, &line).arg("--password-file").arg(&users).spawn();
    let mut broker = broker.expect("starts");
    let log = BufReader::new(broker.stderr.take().expect("is piped"));
    let mut lines = log.lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("listening on ")).expect("it listens");
    let address = listening_address(&line).to_string();
    fs::write(folder.path().join("secret"), "hunter2\n").expect("writes");
    let entry = "username = \"ann\"\npassword_file = \"secret\"\n";
    let text = format!("[lab]\nurl = \"mqtt://{address}\"\n{entry}");
    fs::write(folder.path().join("targets.toml"), text).expect("writes");
    let outputs = [
        tacho(&folder, &["pub", "-L", "@lab", "-t", "a", "-m", "x", "-q", "1"]).output(),
        tacho(&folder, &["pub", "-t", "a", "-m", "x"]).env("TACHO_TARGET", "@lab").output(),
        tacho(&folder, &["bench", "conn", "-c", "5", "-i", "0", "-d", "1s"])
            .env("TACHO_TARGET", "@lab")
            .output(),
    ];
    let refused = tacho(&folder, &["pub", "-L", &address, "-t", "a", "-m", "x"]).output();
    broker.kill().expect("is there");
    broker.wait().expect("ends");
    for output in outputs {
        let output = output.expect("starts");
        assert!(output.status.success() || output.status.code() == Some(111), "{}", said(&output));
    }
    assert_eq!(refused.expect("starts").status.code(), Some(112));
}
