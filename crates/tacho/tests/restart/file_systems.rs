//! File systems of their own on loop devices: full for real, and back.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tacho_codec::{QoS, ReasonCode};

use crate::process::Process;

/// A file system in a file, mounted until it is dropped.
struct Mounted {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

fn succeeds(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(format!("{program}: {error}")),
    }
}

impl Mounted {
    /// `None`, with the reason on standard error, where that is not possible or allowed.
    fn new(kind: &str, mib: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (image, root) = (folder.path().join("image"), folder.path().join("root"));
        fs::create_dir(&root).unwrap();
        fs::File::create(&image).unwrap().set_len(mib << 20).unwrap();
        let [image, at] = [&image, &root].map(|path| path.to_str().unwrap());
        let made = succeeds(&format!("mkfs.{kind}"), &["-q", image]);
        match made.and_then(|()| succeeds("mount", &["-o", "loop", image, at])) {
            Ok(()) => Some(Self { _folder: folder, root }),
            Err(why) => {
                eprintln!("skipped: no {kind} on a loop device here: {why}");
                None
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let root = self.root.to_str().unwrap();
        // A process that was just killed may hold it for a moment.
        let _ = succeeds("umount", &[root]).or_else(|_| succeeds("umount", &["--lazy", root]));
    }
}

/// Takes all the space that is left.
fn fill(file: &Path) {
    let mut filler = fs::File::create(file).unwrap();
    for piece in [1 << 20, 4096] {
        while filler.write_all(&vec![1; piece]).is_ok() {}
    }
}

fn full_and_back(kind: &str, mib: u64) {
    let Some(mounted) = Mounted::new(kind, mib) else { return };
    let (data, filler) = (mounted.root.join("data"), mounted.root.join("filler"));
    let broker = Process::on(&data, &["--shards", "2"]);
    let (mut receiver, _) = broker.lasting("receiver", 600);
    receiver.subscribe("kept", QoS::AtLeastOnce);
    receiver.disconnect();
    let mut publisher = broker.connected("publisher");
    publisher.publish("kept", &[0, 0], QoS::AtLeastOnce, false);
    fill(&filler);
    // What was prepared is used up first; then one is taken in and waits, or is refused.
    let payload = |number: u16| [&number.to_be_bytes()[..], &[7; 60_000]].concat();
    let mut next = 1;
    loop {
        publisher.send_publish("kept", &payload(next), QoS::AtLeastOnce);
        assert!(next < 1_000, "the disk is never full");
        if !publisher.has_frame_within(Duration::from_secs(2)) {
            break;
        }
        let reason = publisher.expect(|packet| match packet {
            tacho_codec::Packet::PubAck(ack) => ack.reason,
            other => panic!("{other:?}"),
        });
        if reason.is_error() {
            assert_eq!(reason, ReasonCode::QUOTA_EXCEEDED);
            break;
        }
        next += 1;
    }
    fs::remove_file(&filler).unwrap();
    // The broker goes on by itself.
    let mut other = broker.connected("other");
    let mut tries = 0;
    while other.try_publish("kept", b"back", QoS::AtLeastOnce).is_error() {
        tries += 1;
        assert!(tries < 600, "it does not go on");
        std::thread::sleep(Duration::from_millis(100));
    }
    broker.kill();
    let broker = Process::on(&data, &["--shards", "1"]);
    let (mut receiver, present) = broker.lasting("receiver", 600);
    assert!(present);
    assert_eq!(receiver.receive_and_ack().payload, [0, 0]);
    for number in 1..next {
        assert_eq!(receiver.receive_and_ack().payload, payload(number));
    }
    // The one that waited had no answer: it may have been taken.
    let mut message = receiver.receive_and_ack();
    if message.payload == payload(next) {
        message = receiver.receive_and_ack();
    }
    assert_eq!(message.payload, b"back");
    broker.stop();
}

#[test]
fn an_ext4_that_is_full_loses_nothing_and_comes_back() {
    full_and_back("ext4", 128);
}

#[test]
fn an_xfs_that_is_full_loses_nothing_and_comes_back() {
    // mkfs.xfs makes no smaller ones.
    full_and_back("xfs", 300);
}
