//! `tacho journal` reads the data directory of a stopped broker.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tacho_codec::QoS;

use crate::process::Process;

/// Its exit code, and what it says.
fn journal(command: &str, directory: &Path) -> (Option<i32>, String, String) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_tacho"));
    let output = process.args(["journal", command]).arg(directory).output().expect("starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn filled(directory: &Path) {
    let broker = Process::on(directory, &[]);
    let (mut receiver, _) = broker.lasting("receiver", 600);
    receiver.subscribe("a/#", QoS::ExactlyOnce);
    receiver.disconnect();
    let mut publisher = broker.connected("publisher");
    publisher.publish("a/1", b"text", QoS::AtLeastOnce, false);
    publisher.publish("a/2", b"\xff\x00", QoS::ExactlyOnce, true);
    let (code, _, said) = journal("inspect", directory);
    assert_eq!(code, Some(104), "{said}");
    assert!(said.contains("in use"), "{said}");
    broker.kill();
}

#[test]
fn inspect_and_export_show_the_contents() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let (code, said, _) = journal("inspect", directory.path());
    assert_eq!(code, Some(0), "{said}");
    let has = |name: &str, value: &str| {
        let line = said.lines().find(|line| line.starts_with(name));
        assert!(line.is_some_and(|line| line.ends_with(value)), "{name} {value}: {said}");
    };
    has("sessions", " 1, 0 connected");
    has("subscriptions", " 1");
    has("messages queued", " 2");
    has("retained messages", " 1");
    assert!(said.contains("receiver: 2 queued, 0 unacknowledged"), "{said}");
    let (code, exported, _) = journal("export", directory.path());
    assert_eq!(code, Some(0));
    let records: Vec<serde_json::Value> =
        exported.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect();
    let of = |kind: &str| records.iter().filter(|r| r["kind"] == kind).collect::<Vec<_>>();
    assert_eq!(of("session")[0]["client_id"], "receiver");
    assert_eq!(of("subscription")[0]["filter"], "a/#");
    let payloads: Vec<_> =
        of("entry").iter().map(|e| (e["payload"].clone(), e["qos"].clone())).collect();
    assert!(payloads.contains(&("text".into(), 1.into())), "{exported}");
    assert_eq!(of("retained")[0]["payload_hex"], "ff00");
    assert_eq!(of("retained")[0]["topic"], "a/2");
    let (code, said, _) = journal("check", directory.path());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("sound: "), "{said}");
}

/// The files of the log and those that are made ready for it, the oldest first.
fn segments(directory: &Path) -> Vec<PathBuf> {
    let mut segments: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "segment"))
        .collect();
    segments.sort();
    segments
}

#[test]
fn messages_whose_session_was_in_a_segment_that_is_gone_are_named() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    // What comes after a restart is in another segment, with the last that was there before.
    for topic in ["a/3", "a/4"] {
        let broker = Process::on(directory.path(), &[]);
        broker.connected("publisher").publish(topic, b"later", QoS::AtLeastOnce, false);
        broker.kill();
    }
    let (code, said, _) = journal("check", directory.path());
    assert_eq!(code, Some(0), "{said}");
    let (_, said, _) = journal("inspect", directory.path());
    let in_use = |path: &PathBuf| said.contains(path.file_name().unwrap().to_str().unwrap());
    let log: Vec<_> = segments(directory.path()).into_iter().filter(in_use).collect();
    for segment in &log[..log.len() - 1] {
        std::fs::remove_file(segment).unwrap();
    }
    let (code, said, _) = journal("check", directory.path());
    assert_eq!(code, Some(99), "{said}");
    assert!(said.contains("the record of its owner is lost"), "{said}");
}

/// A filled directory of which the log is one file: where the first commits come before a file is
/// prepared, they take one as it is, and the log leaves that file for the first prepared one.
fn filled_in_one_segment() -> tempfile::TempDir {
    for _ in 0..50 {
        let directory = tempfile::tempdir().unwrap();
        filled(directory.path());
        let (_, said, _) = journal("check", directory.path());
        if said.starts_with("sound: 1 segment, ") {
            return directory;
        }
    }
    panic!("the log never stayed in one file");
}

#[test]
fn damage_is_named() {
    let directory = filled_in_one_segment();
    // The second frame of the first segment, from its header on: behind the records of a commit
    // are zeros up to the next block, and their number depends on the sizes of the commits.
    let segments = segments(directory.path());
    let file = std::fs::OpenOptions::new().write(true).open(&segments[0]).unwrap();
    file.write_all_at(&[0xff; 64], 4096).unwrap();
    let (code, said, _) = journal("check", directory.path());
    assert_eq!(code, Some(99), "{said}");
    let name = segments[0].file_name().unwrap().to_str().unwrap();
    assert!(said.contains(name) && said.contains("byte "), "{said}");
    // The broker starts with the rest.
    Process::on(directory.path(), &[]).stop();
}

#[test]
fn a_directory_without_a_journal_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for command in ["inspect", "check", "export"] {
        let (code, _, said) = journal(command, directory.path());
        assert_eq!(code, Some(104), "{said}");
        assert!(said.contains(directory.path().to_str().unwrap()), "{said}");
    }
}
