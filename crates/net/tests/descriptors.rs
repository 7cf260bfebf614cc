//! Behaviour when descriptors run out. A test binary of its own: the limit applies to the process.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::sync::mpsc::channel;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tacho_net::LoopConfig;
use tacho_testkit::net::*;

/// Free descriptors that the test tries to leave; there may be fewer, because of descriptors that
/// this process has inherited and of the hard limit.
const ROOM: u64 = 64;

/// Files that occupy all free descriptors. Closing one of them frees one descriptor.
struct Ballast {
    files: Vec<File>,
    before: Rlimit,
}

impl Ballast {
    /// The limit bounds the numbers of descriptors, not how many are open: only opening files until
    /// it fails shows that none is left.
    fn fill() -> Self {
        let before = getrlimit(Resource::Nofile);
        let names = std::fs::read_dir("/dev/fd").unwrap();
        let numbers = names.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
        let highest: u64 = numbers.max().unwrap_or(0);
        let limit = (highest + 1 + ROOM).min(before.maximum.unwrap_or(u64::MAX));
        setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum: before.maximum })
            .unwrap();
        let mut files = Vec::new();
        while let Ok(file) = File::open("/dev/null") {
            files.push(file);
            assert!(files.len() as u64 <= limit, "a limit of {limit} is not kept here");
        }
        Self { files, before }
    }

    fn make_room(&mut self, count: usize) {
        assert!(self.files.len() >= count, "too few descriptors to begin with");
        self.files.truncate(self.files.len() - count);
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        // A failing test needs descriptors to report why.
        let _ = setrlimit(Resource::Nofile, self.before);
    }
}

fn assert_served(client: &mut TcpStream, bytes: &[u8]) {
    write(client, bytes);
    assert_eq!(read_exactly(client, bytes.len()), bytes);
}

#[test]
fn peers_are_refused_and_others_served_when_descriptors_run_out() {
    let config = LoopConfig { accepts_per_turn_max: 1, ..LoopConfig::default() };
    let server = start_config(config, echo());
    let mut first = server.client();
    assert_served(&mut first, b"before");

    let mut ballast = Ballast::fill();
    // Both ends of a connection live in this process.
    ballast.make_room(2);
    let mut second = server.client();
    assert_served(&mut second, b"the last that fits");

    let mut refused = Vec::new();
    for count in 1..=10 {
        ballast.make_room(1);
        let mut client = server.client();
        // A refused peer does not wait: its connection is closed.
        match client.read(&mut [0; 1]) {
            Ok(len) => assert_eq!(len, 0),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        refused.push(client);
        let counters = server.ask(|_, net| net.counters());
        assert_eq!((counters.accepted, counters.refused), (2, count), "{counters:?}");
        // Accepted connections are served all along.
        assert_served(&mut first, b"during");
        assert_served(&mut second, b"during");
    }

    // Many peers at once do not prolong a turn: refusing one counts like accepting one.
    const FLOOD: usize = 20;
    let turns = |server: &Running| server.ask(|_, net| net.counters().turns);
    let before = turns(&server);
    let (release, held) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| server.ask(move |_, _| held.recv_timeout(PATIENCE).is_ok()));
        for _ in 0..FLOOD {
            ballast.make_room(1);
            refused.push(server.client());
        }
        release.send(()).unwrap();
    });
    for client in refused.iter_mut().rev().take(FLOOD) {
        assert!(matches!(client.read(&mut [0; 1]), Ok(0) | Err(_)), "refused");
    }
    let taken = turns(&server) - before;
    assert!(taken >= FLOOD as u64, "{FLOOD} refused in {taken} turns");

    // With free descriptors, new connections are served again.
    ballast.make_room(2);
    assert_served(&mut server.client(), b"after");
    drop(refused);
    drop(ballast);
    assert_served(&mut server.client(), b"long after");
}
