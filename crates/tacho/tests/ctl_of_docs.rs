//! The commands of docs/management.md, in their order, at a broker as a reader may have it.

#[allow(dead_code, reason = "other tests of the documents use the rest")]
mod documents;

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tacho_codec::{QoS, Version};
use tacho_testkit::{Client, connect, line_with, listening_address};

/// Where the document says that the API is.
const THEIRS: &str = "127.0.0.1:9884";

/// A process that does not outlive the test.
struct Kept(Child);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn tacho(folder: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(arguments).current_dir(folder).env("XDG_RUNTIME_DIR", folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The broker of the reader; the addresses of its clients and of its API.
fn broker(folder: &Path) -> (Kept, SocketAddr, String) {
    let flags = [
        "broker",
        "--listen",
        "0",
        "--shards",
        "2",
        "--sys-interval-s",
        "0",
        "--data-dir",
        "data",
        "--management-listen",
        "127.0.0.1:0",
        "--management-store",
        "management",
    ];
    let mut child = tacho(folder, &flags.map(str::to_owned)).spawn().expect("starts");
    let mut log = BufReader::new(child.stderr.take().expect("is piped")).lines();
    let child = Kept(child);
    let address = listening_address(&line_with(&mut log, "listening on "));
    let line = line_with(&mut log, "management API at ");
    let url = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    // Whatever else it says goes nowhere, but must not block it.
    std::thread::spawn(move || log.for_each(drop));
    (child, address, url.expect("is told").to_owned())
}

/// Clients and messages that the document speaks of.
fn clients(address: SocketAddr) -> Vec<Client> {
    ["meter-7", "meter-8", "meter-9", "worker"]
        .map(|name| {
            let mut client = Client::open(address, Version::V5);
            client.connect(&connect(name, Version::V5));
            if name == "worker" {
                client.subscribe("jobs/#", QoS::AtLeastOnce);
                client.subscribe("$share/workers/jobs/#", QoS::AtLeastOnce);
                client.publish("state/door", b"open", QoS::AtLeastOnce, true);
                client.publish("state/lamp", b"on", QoS::AtLeastOnce, true);
            }
            client
        })
        .into()
}

/// Follows what has no end until it has begun, then ends it as Ctrl-C does.
fn follow(folder: &Path, arguments: &[String]) {
    let mut child = Kept(tacho(folder, arguments).spawn().expect("starts"));
    let said = BufReader::new(child.0.stderr.take().expect("is piped"));
    line_with(&mut said.lines(), "Ctrl-C ends it");
    kill_process(Pid::from_child(&child.0), Signal::INT).expect("is ours");
    assert_eq!(child.0.wait().expect("ends").code(), Some(0), "{arguments:?}");
}

#[test]
fn every_command_of_the_guide_works() {
    let all = documents::documents();
    let guide = all.iter().find(|document| document.name == "management.md").expect("is there");
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    let (_broker, address, api) = broker(folder);
    let _clients = clients(address);
    let mut count = 0;
    for command in documents::commands(&guide.text) {
        let Some(line) = command.line.strip_prefix("tacho ctl ") else { continue };
        let mut arguments = documents::words(&format!("ctl {line}"));
        arguments.iter_mut().for_each(|word| *word = word.replace(THEIRS, &api));
        count += 1;
        if matches!(&*arguments[1], "events" | "trace") {
            follow(folder, &arguments);
            continue;
        }
        let output = tacho(folder, &arguments).output().expect("starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
        assert!(!output.stdout.is_empty(), "{arguments:?} says nothing");
        if arguments.get(1..3).is_some_and(|words| words == ["keys", "add"]) {
            // The reader redirects it.
            std::fs::write(folder.join("ci.key"), output.stdout).expect("writes");
        }
    }
    assert!(count > 25, "{count}");
}
