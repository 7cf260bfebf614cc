//! Writes in batches: every connection gets the same bytes as without them.

use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tacho_net::{Counters, LoopConfig, Net, probe_batch_writes};
use tacho_testkit::net::*;

const CLIENTS: usize = 20;
const ROUNDS: usize = 2_000;
/// These read nothing before all is sent: more than their sockets hold.
const SLOW: usize = 3;
/// These leave after their first message.
const LEAVERS: usize = 10;

/// The message of a round: small, large enough to be written alone, or in two pieces.
fn message(round: usize) -> Vec<u8> {
    let len = if round.is_multiple_of(10) { 9_000 } else { 3_500 };
    (0..len).map(|at| (at ^ (round * 7)) as u8).collect()
}

fn send_to_all(net: &mut Net<Probe>, round: usize) {
    let bytes = message(round);
    let shared: Shared = Arc::from(&bytes[1_000..]);
    let conns: Vec<_> = net.open_connections().collect();
    for (place, conn) in conns.into_iter().enumerate() {
        let out =
            if place.is_multiple_of(2) { net.out(conn) } else { net.out_later(conn, bytes.len()) };
        if (round + place).is_multiple_of(7) {
            out.extend_from_slice(&bytes[..1_000]);
            out.push_shared(Arc::clone(&shared));
        } else {
            out.extend_from_slice(&bytes);
        }
    }
}

fn read_all(mut client: TcpStream) {
    for round in 0..ROUNDS {
        let expected = message(round);
        assert!(read_exactly(&mut client, expected.len()) == expected, "round {round}");
    }
    assert_eq!(client.read(&mut [0]).expect("its end"), 0, "nothing follows");
}

/// Sends all messages to all clients; returns what the loop has counted.
fn fan_out(batch_writes: bool) -> Counters {
    let left = Arc::new(AtomicUsize::new(0));
    let leaves = Arc::clone(&left);
    let linger_ns = PATIENCE.as_nanos() as u64;
    let config = LoopConfig { batch_writes, linger_ns, ..LoopConfig::default() };
    let server = start_config(
        config,
        Probe {
            on_closed: Box::new(move |_, _, _| {
                leaves.fetch_add(1, Ordering::SeqCst);
            }),
            ..Probe::default()
        },
    );
    let mut clients: Vec<_> = (0..CLIENTS + LEAVERS).map(|_| server.client()).collect();
    eventually("all are accepted", || server.ask(|_, net| net.connections()) == CLIENTS + LEAVERS);
    server.ask(|_, net| send_to_all(net, 0));
    let leavers = clients.split_off(CLIENTS);
    for mut leaver in leavers {
        assert!(read_exactly(&mut leaver, message(0).len()) == message(0));
    }
    let slow = clients.split_off(CLIENTS - SLOW);
    let readers = clients.into_iter().map(|client| thread::spawn(move || read_all(client)));
    let readers: Vec<_> = readers.collect();
    for round in 1..ROUNDS {
        server.ask(move |_, net| send_to_all(net, round));
    }
    let counters = server.ask(|_, net| {
        assert!(net.unwritten_bytes() > 0, "the slow ones have not got all");
        let conns: Vec<_> = net.open_connections().collect();
        conns.into_iter().for_each(|conn| net.close(conn));
        net.counters()
    });
    let slow = slow.into_iter().map(|client| thread::spawn(move || read_all(client)));
    for reader in readers.into_iter().chain(slow) {
        reader.join().expect("it has read all");
    }
    eventually("all have left", || left.load(Ordering::SeqCst) == CLIENTS + LEAVERS);
    counters
}

#[test]
fn a_fan_out_in_batches_delivers_what_one_without_delivers() {
    let alone = fan_out(false);
    assert_eq!(alone.write_batches, 0);
    let batched = fan_out(true);
    // Elsewhere the loop does without.
    if probe_batch_writes().is_ok() {
        assert!(batched.write_batches > 0);
        assert!(batched.write_batches < batched.writes / 4, "{batched:?}");
    }
}
