//! Clients that begin a large PUBLISH and stop: what they have sent stays in the broker's memory.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::background::Background;
use crate::mqtt::{connect, head, push_text};

/// Bytes of the PUBLISH that each client announces, and of those that it sends.
const PACKET_BYTES: usize = 1_000_000;
pub(super) const SENT_BYTES: usize = 600_000;

/// Pause between two clients.
const PAUSE: Duration = Duration::from_millis(2);
/// While no more of them come.
const REST: Duration = Duration::from_millis(50);

/// Connects `clients` clients, one after the other, which stay; counts those that have sent all
/// that they send.
pub(super) fn partial_packets(port: u16, clients: usize) -> Result<Background> {
    Background::start("partial", move |stop| work(port, clients, stop))
}

fn work(port: u16, clients: usize, stop: &AtomicBool) -> u64 {
    let broker = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let bytes = beginning();
    let mut streams: Vec<TcpStream> = Vec::with_capacity(clients);
    for client in 0..clients {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // A refusal is a valid answer, and so is a close.
        if let Ok(mut stream) = connect(broker, &format!("partial-{client}"))
            && stream.write_all(&bytes).is_ok()
        {
            streams.push(stream);
        }
        thread::sleep(PAUSE);
    }
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(REST);
    }
    streams.len() as u64
}

/// The beginning of a PUBLISH of QoS 0 to `partial`.
fn beginning() -> Vec<u8> {
    let mut bytes = head(0x30, PACKET_BYTES);
    push_text(&mut bytes, "partial");
    bytes.resize(SENT_BYTES, 0x55);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packet_is_longer_than_what_is_sent_of_it() {
        let bytes = beginning();
        assert_eq!(bytes.len(), SENT_BYTES);
        // 1,000,000 as a variable byte integer.
        assert_eq!(bytes[..13], *b"\x30\xc0\x84\x3d\x00\x07partial");
    }
}
