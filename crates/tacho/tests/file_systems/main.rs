//! File systems of their own on loop devices: full for real, and back.
//!
//! Where a machine cannot make and mount one, its test is ignored by name, with the reason. With
//! `TACHO_REQUIRE_PEERS=1` that is a failure if the machine has what it takes: the program that
//! makes the file system is there, and another kind can be mounted.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use tacho_codec::{Connect, ConnectProperties, QoS, ReasonCode, Version};
use tacho_testkit::{Client, connect, listening_address, runtime_folder};

/// Kinds of file systems, and their MiB: mkfs.xfs makes no smaller ones.
const KINDS: [(&str, u64); 2] = [("ext4", 128), ("xfs", 300)];

fn main() {
    let arguments = Arguments::from_args();
    let possible = KINDS.map(|(kind, mib)| Mounted::new(kind, mib).map(drop));
    let is_any_possible = possible.iter().any(Result::is_ok);
    let is_required = std::env::var("TACHO_REQUIRE_PEERS").is_ok_and(|value| value == "1");
    let trials = KINDS.into_iter().zip(possible).map(|((kind, mib), possible)| {
        let name = format!("an_{kind}_that_is_full_loses_nothing_and_comes_back");
        let test = move || {
            full_and_back(kind, mib);
            Ok(())
        };
        match possible {
            Ok(()) => Trial::test(name, test),
            Err(why) if is_required && is_any_possible && !why.is_program_missing => {
                Trial::test(name, move || Err(why.text.into()))
            }
            Err(why) => Trial::test(name, test).with_ignored_flag(true).with_kind(why.text),
        }
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

/// A file system in a file, mounted until it is dropped.
struct Mounted {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

/// Why a file system cannot be made or mounted.
struct WhyNot {
    text: String,
    is_program_missing: bool,
}

fn succeeds(program: &str, arguments: &[&str]) -> Result<(), WhyNot> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let (is_program_missing, why) = match output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => (false, String::from_utf8_lossy(&output.stderr).trim().replace('\n', " ")),
        Err(error) => (error.kind() == ErrorKind::NotFound, error.to_string()),
    };
    Err(WhyNot { text: format!("{program}: {why}"), is_program_missing })
}

impl Mounted {
    fn new(kind: &str, mib: u64) -> Result<Self, WhyNot> {
        let folder = tempfile::tempdir().unwrap();
        let (image, root) = (folder.path().join("image"), folder.path().join("root"));
        fs::create_dir(&root).unwrap();
        fs::File::create(&image).unwrap().set_len(mib << 20).unwrap();
        let [image, at] = [&image, &root].map(|path| path.to_str().unwrap());
        succeeds(&format!("mkfs.{kind}"), &["-q", image])?;
        succeeds("mount", &["-o", "loop", image, at])?;
        Ok(Self { _folder: folder, root })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let root = self.root.to_str().unwrap();
        // A process that was just killed may hold it for a moment.
        let _ = succeeds("umount", &[root]).or_else(|_| succeeds("umount", &["--lazy", root]));
    }
}

/// A broker on a data directory, killed when it is dropped.
struct KilledBroker {
    child: Child,
    address: SocketAddr,
}

impl KilledBroker {
    fn on(data: &Path, shards: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.env("XDG_RUNTIME_DIR", runtime_folder());
        command.args(["broker", "--listen", "127.0.0.1:0", "--sys-interval-s", "0"]);
        command.args(["--shards", shards, "--data-dir"]).arg(data);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("listening on ")).expect("it listens");
        // So that it never waits for someone who reads what it says.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address: listening_address(&line) }
    }

    fn publisher(&self, client_id: &str) -> Client {
        let mut client = Client::open(self.address, Version::V5);
        client.connect(&connect(client_id, Version::V5));
        client
    }

    /// The client whose session lasts, and whether it was there.
    fn receiver(&self) -> (Client, bool) {
        let mut client = Client::open(self.address, Version::V5);
        let properties = ConnectProperties { session_expiry_s: Some(600), ..Default::default() };
        let lasting =
            Connect { clean_start: false, properties, ..connect("receiver", Version::V5) };
        let (present, reason) = client.connect(&lasting);
        assert_eq!(reason, ReasonCode::SUCCESS);
        (client, present)
    }
}

impl Drop for KilledBroker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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
    let mounted = Mounted::new(kind, mib).unwrap_or_else(|why| panic!("{}", why.text));
    let (data, filler) = (mounted.root.join("data"), mounted.root.join("filler"));
    let broker = KilledBroker::on(&data, "2");
    let (mut receiver, _) = broker.receiver();
    receiver.subscribe("kept", QoS::AtLeastOnce);
    receiver.disconnect();
    let mut publisher = broker.publisher("publisher");
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
    let mut other = broker.publisher("other");
    let mut tries = 0;
    while other.try_publish("kept", b"back", QoS::AtLeastOnce).is_error() {
        tries += 1;
        assert!(tries < 600, "it does not go on");
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(broker);
    let broker = KilledBroker::on(&data, "1");
    let (mut receiver, present) = broker.receiver();
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
}
