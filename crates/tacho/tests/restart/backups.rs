//! Backups of a running broker, and brokers that start on what was restored of them.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tacho_codec::{QoS, Version};
use tacho_testkit::Client;
use tempfile::TempDir;

use crate::process::Process;

/// A broker on a data directory with a management socket beside it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn broker(&self, data: &str, shards: &str) -> Process {
        let socket = self.path("m.sock");
        let flags = ["--management-socket", &socket, "--shards", shards];
        Process::on(Path::new(&self.path(data)), &flags)
    }

    /// Runs a command of `tacho`; its exit code and what it says.
    fn tacho(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        let output = command.args(arguments).current_dir(self.0.path()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    }

    fn back_up(&self, directory: &str) -> (Option<i32>, String) {
        self.tacho(&["ctl", "--socket", &self.path("m.sock"), "backup", directory])
    }
}

/// Messages that a session has not received yet.
fn drain(broker: &Process, client_id: &str) -> Vec<u32> {
    let (mut client, present) = broker.lasting(client_id, 600);
    assert!(present, "the session of {client_id} is there");
    let mut numbers = Vec::new();
    broker.connected("last").publish("n/end", b"", QoS::AtLeastOnce, false);
    loop {
        let received = client.receive_and_ack();
        if received.topic == "n/end" {
            return numbers;
        }
        numbers.push(String::from_utf8(received.payload).unwrap().parse().unwrap());
    }
}

#[test]
fn what_was_acknowledged_before_a_backup_is_in_it_on_all_shards() {
    let place = Place::new();
    let broker = place.broker("data", "3");
    for number in 0..6 {
        let (mut session, _) = broker.lasting(&format!("session-{number}"), 600);
        session.subscribe("n/#", QoS::AtLeastOnce);
        session.disconnect();
    }
    broker.connected("keeper").publish("r", b"kept", QoS::AtLeastOnce, true);
    let (acknowledged, done) = (AtomicU32::new(0), AtomicBool::new(false));
    let before = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut publisher = broker.connected("publisher");
            let mut number = 0;
            while !done.load(Ordering::SeqCst) {
                number += 1;
                let text = number.to_string();
                publisher.publish("n/1", text.as_bytes(), QoS::AtLeastOnce, false);
                acknowledged.store(number, Ordering::SeqCst);
            }
        });
        let before: Vec<u32> = ["b1", "b2", "b3"]
            .map(|name| {
                let before = acknowledged.load(Ordering::SeqCst);
                let (code, said) = place.back_up(name);
                assert_eq!(code, Some(0), "{said}");
                assert!(said.contains("segments up to commit"), "{said}");
                before
            })
            .into();
        done.store(true, Ordering::SeqCst);
        before
    });
    broker.kill();
    for (name, before) in ["b1", "b2", "b3"].into_iter().zip(before) {
        let (code, said) = place.tacho(&["journal", "check", name]);
        assert_eq!(code, Some(0), "{said}");
        let data = format!("from-{name}");
        let (code, said) = place.tacho(&["journal", "restore", name, &data]);
        assert_eq!(code, Some(0), "{said}");
        // The number of shards may be another one.
        let broker = place.broker(&data, "2");
        let mut all = Vec::new();
        for number in 0..6 {
            let numbers = drain(&broker, &format!("session-{number}"));
            let newest = numbers.last().copied().unwrap_or(0);
            assert!(numbers.iter().copied().eq(1..=newest), "no gap: {numbers:?}");
            assert!(newest >= before, "{before} was acknowledged, {newest} is the newest");
            all.push(newest);
        }
        // A commit has the messages of all shards.
        let (least, most) = (all.iter().min().unwrap(), all.iter().max().unwrap());
        assert!(most - least <= 1, "{all:?}");
        let mut reader = broker.connected("reader");
        reader.subscribe("r", QoS::AtMostOnce);
        assert_eq!(reader.receive().payload, b"kept");
        broker.stop();
    }
}

#[test]
fn backups_and_directories_that_do_not_fit_are_refused() {
    let place = Place::new();
    let broker = place.broker("data", "1");
    let (code, said) = place.back_up("data");
    assert_eq!(code, Some(104), "{said}");
    assert!(said.contains("is there already"), "{said}");
    assert_eq!(place.back_up("backup").0, Some(0));
    broker.stop();
    let backup = place.path("backup");
    let (status, said) = Process::refused(&["--data-dir", &backup]);
    assert_eq!(status.code(), Some(104), "{said}");
    assert!(said.contains("is a backup") && said.contains("tacho journal restore"), "{said}");
    let (code, said) = place.tacho(&["journal", "restore", "data", "other"]);
    assert_eq!(code, Some(104), "{said}");
    assert!(said.contains("is no backup"), "{said}");
    let (code, said) = place.tacho(&["journal", "restore", "backup", "data"]);
    assert_eq!(code, Some(104), "{said}");
    std::fs::remove_file(place.0.path().join("backup/salt")).unwrap();
    let (code, said) = place.tacho(&["journal", "check", "backup"]);
    assert_eq!(code, Some(99), "{said}");
    assert!(said.contains("not complete: salt"), "{said}");
    let (code, said) = place.tacho(&["journal", "restore", "backup", "other"]);
    assert_eq!(code, Some(104), "{said}");
    // A broker in memory has nothing to back up.
    let socket = place.path("m.sock");
    let _broker = Process::with(&["--management-socket", &socket]);
    let (code, said) = place.back_up("memory");
    assert_eq!(code, Some(104), "{said}");
    assert!(said.contains("has no journal"), "{said}");
}

/// A directory that a broker has written is kept for each format of its journal and its records.
const KEPT: &str = "tests/fixtures/journal/format-1";

/// Everything that a journal keeps.
fn fill(broker: &Process) {
    let (mut receiver, _) = broker.lasting("receiver", 4_000_000_000);
    receiver.subscribe("a/#", QoS::ExactlyOnce);
    receiver.subscribe("$share/g/b", QoS::AtLeastOnce);
    receiver.disconnect();
    let mut publisher = broker.connected("publisher");
    for number in 1..=3 {
        let text = number.to_string();
        publisher.publish("a/n", text.as_bytes(), QoS::ExactlyOnce, false);
    }
    publisher.publish("b", b"shared", QoS::AtLeastOnce, false);
    publisher.publish("r", b"kept", QoS::AtLeastOnce, true);
}

#[test]
fn a_directory_of_every_format_is_read() {
    let place = Place::new();
    let data = place.0.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join(KEPT);
    for entry in std::fs::read_dir(&kept).expect("the directory is kept") {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), data.join(entry.file_name())).unwrap();
    }
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&data, permissions).unwrap();
    let (code, said) = place.tacho(&["journal", "check", "data"]);
    assert_eq!(code, Some(0), "{said}");
    let broker = place.broker("data", "2");
    let (mut receiver, present) = broker.lasting("receiver", 4_000_000_000);
    assert!(present, "the session is there");
    let mut received: Vec<(String, Vec<u8>)> = (0..4)
        .map(|_| receiver.receive_and_ack())
        .map(|message| (message.topic, message.payload))
        .collect();
    received.sort();
    let expected = [("a/n", "1"), ("a/n", "2"), ("a/n", "3"), ("b", "shared")];
    let text = |(topic, payload): (&str, &str)| (topic.to_owned(), payload.as_bytes().to_vec());
    assert_eq!(received, expected.map(text));
    let mut reader: Client = broker.connected("reader");
    reader.subscribe("r", QoS::AtMostOnce);
    assert_eq!(reader.receive().payload, b"kept");
    // And the subscription is in force.
    broker.connected("publisher").publish("a/x", b"new", QoS::AtLeastOnce, false);
    assert_eq!(receiver.receive_and_ack().payload, b"new");
    let mut old = broker.client(Version::V311);
    old.connect(&tacho_testkit::connect("old", Version::V311));
    broker.stop();
}

#[test]
#[ignore = "writes the directory of the present format, once after a change of the format"]
fn write_the_directory_of_the_present_format() {
    let place = Place::new();
    let broker = place.broker("data", "1");
    fill(&broker);
    assert_eq!(place.back_up("backup").0, Some(0));
    broker.stop();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join(KEPT);
    std::fs::create_dir_all(&kept).unwrap();
    for entry in std::fs::read_dir(place.0.path().join("backup")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "backup" {
            std::fs::copy(entry.path(), kept.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn what_root_restores_belongs_to_the_user_of_the_place() {
    let place = Place::new();
    let broker = place.broker("data", "1");
    assert_eq!(place.back_up("backup").0, Some(0));
    broker.stop();
    let theirs = place.path("theirs");
    fs::create_dir(&theirs).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(&theirs, Some(4_711), Some(4_712)).unwrap();
    }
    let (code, said) = place.tacho(&["journal", "restore", "backup", "theirs/data"]);
    assert_eq!(code, Some(0), "{said}");
    let owner = |path: &Path| fs::metadata(path).map(|about| (about.uid(), about.gid())).unwrap();
    let wanted = owner(Path::new(&theirs));
    let restored = Path::new(&theirs).join("data");
    assert_eq!(owner(&restored), wanted);
    let files: Vec<_> = fs::read_dir(&restored).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 1, "{files:?}");
    for file in files {
        assert_eq!(owner(&file), wanted, "{}", file.display());
    }
}
