//! The commands of docs/operators-guide.md, in their order, on a machine that a folder stands for.

#[allow(dead_code, reason = "other tests of the documents use the rest")]
mod documents;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tacho_codec::{QoS, Version};
use tacho_testkit::{Client, connect, wait_until};
use tempfile::TempDir;

/// Addresses of the guide, which other programs of this machine may have.
const THEIRS: [&str; 2] = ["127.0.0.1:1883", "127.0.0.1:9883"];

struct Machine {
    folder: TempDir,
    /// In the place of [`THEIRS`].
    addresses: [String; 2],
    broker: Option<Child>,
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(broker) = &mut self.broker {
            let _ = broker.kill();
            let _ = broker.wait();
        }
    }
}

impl Machine {
    /// As a package leaves it.
    fn new() -> Self {
        let free = || TcpListener::bind("127.0.0.1:0").and_then(|held| held.local_addr());
        let addresses = [free(), free()].map(|address| address.expect("a port").to_string());
        let folder = TempDir::new().expect("a folder");
        let machine = Self { folder, addresses, broker: None };
        for place in ["etc/tacho", "var/lib"] {
            fs::create_dir_all(machine.path(place)).expect("makes");
        }
        let packaged = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/broker.toml");
        let config = fs::read_to_string(packaged).expect("reads");
        machine.write("/etc/tacho/broker.toml", &config);
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A text of the guide with what stands for its places.
    fn here(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for place in ["/etc/tacho", "/var/lib/tacho"] {
            text = text.replace(place, &self.path(&place[1..]).display().to_string());
        }
        let both = THEIRS.iter().zip(&self.addresses);
        both.fold(text, |text, (theirs, ours)| text.replace(theirs, ours))
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.here(name), self.here(content)).expect("writes");
    }

    fn tacho(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("XDG_RUNTIME_DIR", self.folder.path());
        command.env("TACHO_TARGET", format!("mqtt://{}", self.addresses[0]));
        command.env_remove("TACHO_USERNAME").env_remove("TACHO_PASSWORD");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn done(&self, line: &str) -> Output {
        let output = self.tacho(&documents::words(line)[1..]).output().expect("starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {said}");
        output
    }

    /// What `systemctl VERB tacho` does.
    fn service(&mut self, verb: &str) {
        if let Some(mut broker) = self.broker.take() {
            kill_process(Pid::from_child(&broker), Signal::TERM).expect("is ours");
            assert!(broker.wait().expect("ends").success());
        }
        if verb == "stop" {
            return;
        }
        let line = self.here("tacho broker --config /etc/tacho/broker.toml --shards 1");
        let mut command = self.tacho(&documents::words(&line)[1..]);
        // Whatever it says goes where it cannot block it.
        let log = fs::File::create(self.path("log")).expect("makes");
        self.broker = Some(command.stderr(log).stdout(Stdio::null()).spawn().expect("starts"));
        wait_until("the broker answers", || {
            let words = ["ctl", "health"].map(str::to_owned);
            self.tacho(&words).status().expect("starts").success()
        });
    }
}

#[test]
fn every_command_of_the_guide_works_in_its_order() {
    let all = documents::documents();
    let guide = all.iter().find(|document| document.name == "operators-guide.md");
    let guide = &guide.expect("is there").text;
    let mut machine = Machine::new();
    let mut count = 0;
    let mut kept = false;
    for command in documents::commands(guide) {
        if let Some((name, content)) = &command.file {
            machine.write(name, content);
            continue;
        }
        count += 1;
        let line = machine.here(&command.line);
        if let Some(rest) = line.strip_prefix("systemctl ") {
            machine.service(rest.split(' ').next().expect("a verb"));
        } else if line.starts_with("sed ") {
            let status = Command::new("sh").arg("-c").arg(&line).status().expect("starts");
            assert!(status.success(), "{line}");
        } else if line.starts_with("tacho ctl events") {
            let events = machine.tacho(&documents::words(&line)[1..]).spawn().expect("starts");
            come_and_go(&machine, events);
        } else {
            if line.contains("ctl backup") {
                keep(&machine);
                kept = true;
            }
            machine.done(&line);
        }
    }
    assert!(count > 20 && kept, "{count}");
    // What was there before the backup is there after the restore.
    let shown = machine.done("tacho ctl retained show kept");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("until the restore"), "{shown:?}");
}

/// A client of the operator.
fn operator(machine: &Machine) -> Client {
    let address = machine.addresses[0].parse().expect("an address");
    let mut client = Client::open(address, Version::V5);
    let mut packet = connect("operator", Version::V5);
    packet.username = Some("operator");
    packet.password = Some(b"change-me");
    client.connect(&packet);
    client
}

fn keep(machine: &Machine) {
    let mut client = operator(machine);
    client.publish("kept", b"until the restore", QoS::AtLeastOnce, true);
}

/// Clients connect until the command that waits for one ends.
fn come_and_go(machine: &Machine, mut events: Child) {
    wait_until("an event", || {
        drop(operator(machine));
        events.try_wait().expect("is ours").is_some()
    });
    let output = events.wait_with_output().expect("ends");
    assert!(output.status.success(), "{output:?}");
}
