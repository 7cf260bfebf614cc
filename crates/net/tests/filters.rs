//! A toy filter: input, output, moves between loops, output of its own, and errors.

use std::io::{self, Read};
use std::sync::Arc;

use tacho_net::{Filter, LoopConfig, mailboxes, probe_batch_writes};
use tacho_testkit::net::*;

/// Every byte is combined with a key that changes with every byte, separately per direction, so
/// that a lost or repeated byte corrupts all that follow. A zero byte on the plain side is a
/// greeting that the filter itself answers; 0xff is an error.
struct Toy {
    inbound_key: u8,
    outbound_key: u8,
    greetings: usize,
}

impl Toy {
    fn new() -> Self {
        Self { inbound_key: 1, outbound_key: 1, greetings: 0 }
    }
}

fn translate(key: &mut u8, bytes: &[u8], into: &mut Vec<u8>) {
    for byte in bytes {
        into.push(byte ^ *key);
        *key = key.wrapping_mul(13).wrapping_add(7);
    }
}

impl Filter for Toy {
    fn inbound(&mut self, wire: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
        let mut bytes = Vec::new();
        translate(&mut self.inbound_key, wire, &mut bytes);
        for byte in bytes {
            match byte {
                0 => self.greetings += 1,
                0xff => {
                    self.greetings += 1;
                    return Err(io::Error::other("a bad byte"));
                }
                byte => plain.push(byte),
            }
        }
        Ok(())
    }

    fn outbound(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        translate(&mut self.outbound_key, plain, wire);
        for _ in 0..std::mem::take(&mut self.greetings) {
            translate(&mut self.outbound_key, b"<hi>", wire);
        }
        Ok(())
    }

    fn wants_write(&self) -> bool {
        self.greetings > 0
    }

    fn finish(&mut self, wire: &mut Vec<u8>) {
        translate(&mut self.outbound_key, b"<bye>", wire);
    }
}

fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    translate(&mut 1, bytes, &mut wire);
    wire
}

fn filtered(mut probe: Probe) -> Probe {
    probe.on_accepted = Box::new(|net, conn| net.set_filter(conn, Box::new(Toy::new())));
    probe
}

#[test]
fn bytes_pass_through_the_filter_both_ways() {
    let server = start(filtered(Probe {
        on_input: Box::new(|net, conn, data| {
            // Only whole groups of three; shared and copied output alternate.
            let len = data.len() - data.len() % 3;
            for group in data[..len].chunks(3) {
                net.out(conn).push_shared(Arc::from(&group[..2]));
                net.out(conn).extend_from_slice(&group[2..]);
            }
            len
        }),
        ..Probe::default()
    }));
    let plain: Vec<u8> = (0..300_000).map(|at| (at % 250) as u8 + 1).collect();
    let wire = encode(&plain);
    let mut client = server.client();
    let mut reader = client.try_clone().unwrap();
    let len = plain.len();
    let reading = std::thread::spawn(move || read_exactly(&mut reader, len));
    let (mut position, mut piece) = (0, 1);
    while position < wire.len() {
        let end = wire.len().min(position + piece);
        write(&mut client, &wire[position..end]);
        position = end;
        piece = piece * 5 % 4099 + 1;
    }
    assert!(encode(&reading.join().unwrap()) == plain);
    // The peer has closed its side, but the filter still sends its closing message.
    assert_eq!(finish(client).len(), 5);
}

#[test]
fn the_filter_has_output_of_its_own_and_a_closing_message() {
    let server = start(filtered(Probe {
        on_input: Box::new(|net, conn, data| {
            net.out(conn).extend_from_slice(b"closing");
            net.close(conn);
            data.len()
        }),
        ..Probe::default()
    }));
    let mut client = server.client();
    let wire = encode(b"\0\0x");
    write(&mut client, &wire[..2]);
    let mut got = read_exactly(&mut client, 8);
    write(&mut client, &wire[2..]);
    client.read_to_end(&mut got).unwrap();
    assert_eq!(encode(&got), b"<hi><hi>closing<bye>");
}

#[test]
fn an_error_of_the_filter_ends_the_connection_after_its_output() {
    let (log, logged) = events::<String>();
    let ends = log.clone();
    let server = start(filtered(Probe {
        on_input: Box::new(move |_, _, data| {
            log.send(String::from_utf8_lossy(data).into_owned()).unwrap();
            data.len()
        }),
        on_closed: Box::new(move |_, _, reason| ends.send(format!("{reason:?}")).unwrap()),
        ..Probe::default()
    }));
    let mut client = server.client();
    write(&mut client, &encode(b"good\xffbad"));
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert_eq!(encode(&got), b"<hi><bye>");
    assert_eq!(next(&logged), "good");
    assert!(next(&logged).contains("a bad byte"));
}

#[test]
fn decrypted_bytes_that_were_not_consumed_are_passed_again() {
    let mut calls = 0;
    let server = start(filtered(Probe {
        on_input: Box::new(move |net, conn, data| {
            calls += 1;
            if calls % 2 == 1 {
                net.pause_read(conn);
                net.set_timer(net.now_ns(), 0);
                return 0;
            }
            net.out(conn).extend_from_slice(&data[..1]);
            net.resume_read(conn);
            1
        }),
        on_timer: Box::new(|net, _| {
            let conns: Vec<_> = net.open_connections().collect();
            for conn in conns {
                net.resume_read(conn);
            }
        }),
        ..Probe::default()
    }));
    let mut client = server.client();
    write(&mut client, &encode(b"abcdefgh"));
    assert_eq!(encode(&read_exactly(&mut client, 8)), b"abcdefgh");
}

#[test]
fn translated_output_leaves_in_batches() {
    const CLIENTS: usize = 20;
    let config = LoopConfig { batch_writes: true, ..LoopConfig::default() };
    let server = start_config(config, filtered(Probe::default()));
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.client()).collect();
    eventually("all are accepted", || server.ask(|_, net| net.connections()) == CLIENTS);
    let mut got = vec![Vec::new(); CLIENTS];
    for round in 0..10 {
        server.ask(move |_, net| {
            let conns: Vec<_> = net.open_connections().collect();
            for conn in conns {
                net.out(conn).extend_from_slice(&[round; 30]);
            }
        });
        // Read at once, so that each round is a turn of its own.
        for (client, got) in clients.iter_mut().zip(&mut got) {
            got.extend(read_exactly(client, 30));
        }
    }
    let expected: Vec<u8> = (0..10).flat_map(|round| [round; 30]).collect();
    assert!(got.iter().all(|got| encode(got) == expected));
    let counters = server.ask(|_, net| net.counters());
    assert_eq!(counters.writes, 10 * CLIENTS as u64);
    assert!(counters.write_batches > 0 || probe_batch_writes().is_err());
}

#[test]
fn the_filter_moves_with_its_connection() {
    const LEN: usize = 5_000_000;
    let loops: Vec<_> = mailboxes(2)
        .into_iter()
        .map(|mailbox| {
            let config = LoopConfig { listeners: vec![local()], ..LoopConfig::default() };
            let probe = filtered(Probe {
                on_input: Box::new(|net, conn, data| {
                    if data.len() < 4 {
                        return 0;
                    }
                    // More than the kernel accepts: translated and untranslated output move too.
                    net.out(conn).push_shared(Arc::from(vec![7; LEN]));
                    net.out(conn).extend_from_slice(&data[..4]);
                    let target = (net.shard() + 1) % 2;
                    let detached = net.detach(conn, &data[4..]).unwrap();
                    net.post(target, Mail::Conn(Box::new(detached)));
                    data.len()
                }),
                on_mail: Box::new(|net, _, mail| {
                    if let Mail::Conn(detached) = mail {
                        net.attach(*detached);
                    }
                }),
                ..Probe::default()
            });
            start_with(config, mailbox, probe)
        })
        .collect();
    let mut client = loops[0].client();
    let wire = encode(b"onceuponatime");
    write(&mut client, &wire[..10]);
    eventually("the first piece is read", || {
        let read: u64 =
            loops.iter().map(|running| running.ask(|_, net| net.counters().read_bytes)).sum();
        read == 10
    });
    write(&mut client, &wire[10..]);
    let plain = encode(&read_exactly(&mut client, 3 * (LEN + 4)));
    for (round, word) in [b"once", b"upon", b"atim"].into_iter().enumerate() {
        let part = &plain[round * (LEN + 4)..][..LEN + 4];
        assert!(part[..LEN].iter().all(|&byte| byte == 7));
        assert_eq!(&part[LEN..], word);
    }
}

/// Begins with a handshake: the peer sends `H` and receives `h`. Then `!` is the peer's closing
/// message, and `?` an error.
#[derive(Default)]
struct WithHandshake {
    is_open: bool,
    owes_answer: bool,
    is_closed: bool,
}

impl Filter for WithHandshake {
    fn inbound(&mut self, wire: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
        for byte in wire {
            match byte {
                b'H' if !self.is_open => (self.is_open, self.owes_answer) = (true, true),
                b'!' => self.is_closed = true,
                b'?' => return Err(io::Error::other("a question")),
                byte => plain.push(*byte),
            }
        }
        Ok(())
    }

    fn outbound(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        if std::mem::take(&mut self.owes_answer) {
            wire.push(b'h');
        }
        wire.extend_from_slice(plain);
        Ok(())
    }

    fn is_ready(&self) -> bool {
        self.is_open
    }

    fn peer_closed(&self) -> bool {
        self.is_closed
    }

    fn wants_write(&self) -> bool {
        self.owes_answer
    }

    fn finish(&mut self, wire: &mut Vec<u8>) {
        wire.extend_from_slice(b"bye");
    }
}

/// Logs the events of connections with a [`WithHandshake`] filter.
fn with_handshake(log: &std::sync::mpsc::Sender<String>) -> Probe {
    let (ready, input, closed) = (log.clone(), log.clone(), log.clone());
    Probe {
        on_accepted: Box::new(|net, conn| net.set_filter(conn, Box::new(WithHandshake::default()))),
        on_ready: Box::new(move |net, conn| {
            ready.send("ready".to_owned()).expect("the test listens");
            net.out(conn).extend_from_slice(b"hello");
        }),
        on_input: Box::new(move |_, _, data| {
            input.send(String::from_utf8_lossy(data).into_owned()).expect("the test listens");
            data.len()
        }),
        on_closed: Box::new(move |net, _, reason| {
            let shard = net.shard();
            closed.send(format!("{} at {shard}", why(&reason))).expect("the test listens");
        }),
        ..Probe::default()
    }
}

#[test]
fn the_end_of_a_handshake_is_reported_once_before_the_data_after_it() {
    let (log, logged) = events::<String>();
    let server = start(with_handshake(&log));
    let mut client = server.client();
    write(&mut client, b"Hdata");
    assert_eq!(read_exactly(&mut client, 6), b"hhello");
    assert_eq!([next(&logged), next(&logged)], ["ready", "data"]);
    write(&mut client, b"more");
    assert_eq!(next(&logged), "more");
    drop(client);
    assert_eq!(next(&logged), "by peer at 0");
}

#[test]
fn a_closing_message_ends_the_connection_though_the_socket_is_open() {
    let (log, logged) = events::<String>();
    let server = start(with_handshake(&log));
    let mut client = server.client();
    write(&mut client, b"Hlast!");
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"hhellobye");
    let events = [next(&logged), next(&logged), next(&logged)];
    assert_eq!(events, ["ready", "last", "by peer at 0"]);
}

#[test]
fn an_end_waits_until_the_handler_has_read_the_bytes_before_it() {
    let (log, logged) = events::<String>();
    let mut probe = with_handshake(&log);
    let mut is_first = true;
    probe.on_input = Box::new(move |net, conn, data| {
        log.send(format!("{} bytes", data.len())).unwrap();
        if std::mem::take(&mut is_first) {
            net.pause_read(conn);
            return 1;
        }
        data.len()
    });
    let server = start(probe);
    let mut client = server.client();
    write(&mut client, b"Habc!");
    assert_eq!([next(&logged), next(&logged)], ["ready", "3 bytes"]);
    assert_eq!(server.ask(|_, net| net.open_connections().count()), 1, "it waits");
    server.ask(|_, net| {
        let conns: Vec<_> = net.open_connections().collect();
        conns.into_iter().for_each(|conn| net.resume_read(conn));
    });
    assert_eq!([next(&logged), next(&logged)], ["2 bytes", "by peer at 0"]);
}

#[test]
fn an_end_seen_before_a_move_is_reported_by_the_next_owner() {
    for (end, expected) in [(&b"!"[..], "by peer at 1"), (b"?", "error at 1")] {
        let (log, logged) = events::<String>();
        let loops: Vec<_> = mailboxes(2)
            .into_iter()
            .map(|mailbox| {
                let config = LoopConfig { listeners: vec![local()], ..LoopConfig::default() };
                let mut probe = with_handshake(&log);
                let log = log.clone();
                probe.on_input = Box::new(move |net, conn, data| {
                    if net.shard() == 0 {
                        let detached = net.detach(conn, data).unwrap();
                        net.post(1, Mail::Conn(Box::new(detached)));
                    } else {
                        log.send(String::from_utf8_lossy(data).into_owned()).unwrap();
                    }
                    data.len()
                });
                probe.on_mail = Box::new(|net, _, mail| {
                    if let Mail::Conn(detached) = mail {
                        net.attach(*detached);
                    }
                });
                start_with(config, mailbox, probe)
            })
            .collect();
        let mut client = loops[0].client();
        // In one piece: the first owner's filter sees the end behind the data that moves.
        write(&mut client, &[b"Hmove", end].concat());
        assert_eq!([next(&logged), next(&logged), next(&logged)], ["ready", "move", expected]);
    }
}
