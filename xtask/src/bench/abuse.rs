//! Bad clients: a bounded number of connections that break the rules in turn.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::background::Background;

/// Pause between two new bad clients.
const PAUSE: Duration = Duration::from_millis(1);

/// CONNECT of a 3.1.1 client named `bad`, clean session, without keep-alive.
const CONNECT: [u8; 17] = [
    0x10, 0x0f, 0x00, 0x04, b'M', b'Q', b'T', b'T', 0x04, 0x02, 0x00, 0x00, 0x00, 0x03, b'b', b'a',
    b'd',
];

/// Keeps `clients` bad connections open, one of them replaced every millisecond; counts the bad
/// clients that connected.
pub(super) fn abuse(port: u16, clients: usize) -> Result<Background> {
    Background::start("abuse", move |stop| work(port, clients, stop))
}

fn work(port: u16, clients: usize, stop: &AtomicBool) -> u64 {
    let mut connections = VecDeque::with_capacity(clients);
    let mut attempts = 0;
    while !stop.load(Ordering::Relaxed) {
        // A refusal is a valid answer.
        if let Ok(stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            misbehave(&stream, attempts);
            connections.push_back(stream);
            attempts += 1;
        }
        if connections.len() > clients {
            connections.pop_front();
        }
        thread::sleep(PAUSE);
    }
    attempts
}

/// One of the ways to break the rules. Errors are expected: the broker may close at any time.
fn misbehave(mut stream: &TcpStream, attempt: u64) {
    let _ = stream.set_nonblocking(true);
    let mut say = |bytes: &[u8]| drop(stream.write(bytes));
    match attempt % 8 {
        // Random bytes.
        0 => say(&noise(attempt)),
        // A CONNECT that stops in the middle.
        1 => say(CONNECT.get(..9).unwrap_or_default()),
        // A first packet that claims 256 MiB.
        2 => say(&[0x10, 0xff, 0xff, 0xff, 0x7f, 0x00]),
        // A length of five bytes.
        3 => say(&[0x10, 0xff, 0xff, 0xff, 0xff, 0x7f]),
        // No bytes.
        4 => {}
        // A second CONNECT.
        5 => say(&[CONNECT, CONNECT].concat()),
        // A packet that only servers send, with a wrong length.
        6 => say(&[&CONNECT[..], &[0x20, 0x05, 0x00]].concat()),
        // Subscribes to what it publishes and never reads.
        _ => {
            let subscribe =
                [0x82, 0x0a, 0x00, 0x01, 0x00, 0x05, b'b', b'a', b'd', b'/', b'x', 0x00];
            say(&[&CONNECT[..], &subscribe[..]].concat());
            let publish = [&[0x30, 0x87, 0x08, 0x00, 0x05][..], b"bad/x", &[0x55; 1024]].concat();
            (0..32).for_each(|_| say(&publish));
        }
    }
}

/// 256 random bytes; xorshift, seeded by the attempt.
fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(256).collect()
}
