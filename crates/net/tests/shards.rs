//! Several loops: mail between them, and connections that move.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tacho_net::{LoopConfig, Mailbox, Next, OUTSIDE, mailboxes};
use tacho_testkit::net::*;

fn start_all(count: usize, mut probe: impl FnMut(usize) -> Probe) -> Vec<Running> {
    let boxes: Vec<Mailbox<Mail>> = mailboxes(count);
    boxes
        .into_iter()
        .enumerate()
        .map(|(shard, mailbox)| {
            let config = LoopConfig { listeners: vec![local()], ..LoopConfig::default() };
            start_with(config, mailbox, probe(shard))
        })
        .collect()
}

#[test]
fn mail_wakes_a_sleeping_loop_and_keeps_its_order() {
    let (got, mails) = events();
    let (idle, sleeps) = events();
    let loops = start_all(2, |_| {
        let (got, idle) = (got.clone(), idle.clone());
        Probe {
            // The loop sleeps next.
            on_idle: Box::new(move |_| idle.send(()).unwrap()),
            on_mail: Box::new(move |net, from, mail| {
                if let Mail::Number(number) = mail {
                    got.send((net.shard(), from, number)).unwrap();
                }
            }),
            ..Probe::default()
        }
    });
    for round in 0..50 {
        loops[0].ask(move |_, net| {
            for number in 0..10 {
                net.post(1, Mail::Number(round * 10 + number));
            }
        });
        for number in 0..10 {
            assert_eq!(next(&mails), (1, 0, round * 10 + number));
        }
        if round % 10 == 0 {
            loops[1].ask(|_, net| net.tell_idle());
            next(&sleeps);
        }
    }
    loops[1].ask(|_, net| net.post(1, Mail::Number(1)));
    assert_eq!(next(&mails), (1, 1, 1), "mail to the same shard");
    loops[1].remote.post(1, Mail::Number(2));
    assert_eq!(next(&mails), (1, OUTSIDE, 2));
    eventually("all is delivered", || {
        loops[0].ask(|_, net| (net.mailbox_len(1), net.congested(1))) == (0, false)
    });
}

// Regression: output left before the mail of its turn, so a peer could act on an answer before the
// other loops had received the mail.
#[test]
fn mail_of_a_turn_is_posted_before_its_output_can_be_read() {
    const BYSTANDERS: usize = 32;
    let (got, mails) = events();
    let loops = start_all(2, |_| {
        let got = got.clone();
        let mut conns = Vec::new();
        Probe {
            on_input: Box::new(move |net, conn, data| {
                if data == b"join" {
                    net.out(conn).extend_from_slice(b"!");
                    conns.push(conn);
                    return data.len();
                }
                net.post(1, Mail::Number(1));
                net.out(conn).extend_from_slice(b"!");
                // More output prolongs the flush.
                for &other in &conns {
                    net.out(other).extend_from_slice(b"?");
                }
                data.len()
            }),
            on_mail: Box::new(move |_, _, mail| {
                if let Mail::Number(number) = mail {
                    got.send(number).unwrap();
                }
            }),
            ..Probe::default()
        }
    });
    let mut bystanders: Vec<_> = (0..BYSTANDERS).map(|_| loops[0].client()).collect();
    for bystander in &mut bystanders {
        write(bystander, b"join");
        assert_eq!(read_exactly(bystander, 1), b"!");
    }
    let mut client = loops[0].client();
    for round in 0..500 {
        write(&mut client, b"ask");
        assert_eq!(read_exactly(&mut client, 1), b"!");
        loops[1].remote.post(1, Mail::Number(2));
        assert_eq!((next(&mails), next(&mails)), (1, 2), "round {round}");
    }
}

#[test]
fn three_loops_that_mail_each_other_lose_nothing() {
    // Each mail is passed on until it has made its hops; numbers carry the hops left.
    const MAILS: usize = 200;
    const HOPS: u64 = 100;
    let finished = Arc::new(AtomicUsize::new(0));
    let loops = start_all(3, |_| {
        let finished = Arc::clone(&finished);
        Probe {
            on_mail: Box::new(move |net, _, mail| match mail {
                Mail::Number(0) => {
                    finished.fetch_add(1, Ordering::SeqCst);
                }
                Mail::Number(hops) => {
                    let target = (net.shard() + 1 + (hops % 2) as usize) % net.shards();
                    net.post(target, Mail::Number(hops - 1));
                }
                _ => {}
            }),
            ..Probe::default()
        }
    });
    for index in 0..MAILS {
        loops[0].remote.post(index % 3, Mail::Number(HOPS + index as u64 % 5));
    }
    eventually("all mails have arrived", || finished.load(Ordering::SeqCst) == MAILS);
    for running in &loops {
        eventually("delivered", || running.remote.mailbox_len(running.shard) == 0);
    }
}

#[test]
fn congestion_shows_when_a_shard_does_not_keep_up() {
    let mut boxes = mailboxes::<Mail>(2);
    let slow = boxes.pop().unwrap();
    let config = LoopConfig { mailbox_high_len: 100, ..LoopConfig::default() };
    let fast = start_with(config, boxes.pop().unwrap(), Probe::default());
    let post = |count: u64| {
        fast.ask(move |_, net| {
            for number in 0..count {
                net.post(1, Mail::Number(number));
            }
            (net.mailbox_len(1), net.congested(1))
        })
    };
    assert_eq!(post(60), (60, false));
    assert_eq!(post(60), (120, true));
    let slow = start_with(LoopConfig::default(), slow, Probe::default());
    eventually("drained", || fast.ask(|_, net| net.mailbox_len(1)) == 0);
    drop(slow);
}

/// Moves the connection to the next shard at every newline; echoes everything in between.
fn moving(shards: usize, hops: Arc<AtomicUsize>) -> Probe {
    Probe {
        on_input: Box::new(move |net, conn, data| {
            let Some(end) = data.iter().position(|&byte| byte == b'\n') else {
                net.out(conn).extend_from_slice(data);
                return data.len();
            };
            net.out(conn).extend_from_slice(&data[..=end]);
            let mut detached = net.detach(conn, &data[end + 1..]).expect("it is open");
            assert!(net.detach(conn, b"").is_none(), "it is gone");
            assert!(!net.is_open(conn));
            detached.tag = 77;
            let target = (net.shard() + 1) % shards;
            net.post(target, Mail::Conn(Box::new(detached)));
            data.len()
        }),
        on_mail: Box::new(move |net, _, mail| {
            if let Mail::Conn(detached) = mail {
                assert_eq!(detached.tag, 77);
                hops.fetch_add(1, Ordering::SeqCst);
                net.attach(*detached);
            }
        }),
        ..Probe::default()
    }
}

#[test]
fn connections_that_move_lose_no_byte_in_either_direction() {
    const LINES: usize = 400;
    let hops = Arc::new(AtomicUsize::new(0));
    let loops = start_all(3, |_| moving(3, Arc::clone(&hops)));
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let mut stream = loops[client % 3].client();
            thread::spawn(move || {
                // Lines of all lengths, written in pieces that do not match the lines, so that
                // bytes arrive before, during and after each move.
                let mut sent = Vec::new();
                for line in 0..LINES {
                    sent.extend((0..(line * 31) % 500).map(|at| b'a' + (at + client) as u8 % 20));
                    sent.push(b'\n');
                }
                let mut reader = stream.try_clone().unwrap();
                let len = sent.len();
                let reading = thread::spawn(move || read_exactly(&mut reader, len));
                let mut position = 0;
                let mut piece = 1;
                while position < sent.len() {
                    let end = sent.len().min(position + piece);
                    write(&mut stream, &sent[position..end]);
                    position = end;
                    piece = piece * 7 % 1009 + 1;
                }
                assert!(reading.join().unwrap() == sent);
                assert!(finish(stream).is_empty());
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    assert_eq!(hops.load(Ordering::SeqCst), 4 * LINES);
    for running in &loops {
        eventually("nothing is left", || running.ask(|_, net| net.connections()) == 0);
    }
}

#[test]
fn unwritten_output_moves_along() {
    const LEN: usize = 20_000_000;
    let (moved, moves) = events();
    let loops = start_all(2, |_| {
        let moved = moved.clone();
        Probe {
            on_accepted: Box::new(|net, conn| {
                net.out(conn).push_shared(Arc::from(pattern(LEN)));
                net.set_timer(net.now_ns() + 20_000_000, 0);
            }),
            on_timer: Box::new(|net, _| {
                // By now the kernel accepts no more.
                let conn = net.open_connections().next().unwrap();
                assert!(net.output_bytes(conn) > 0);
                let detached = net.detach(conn, b"").unwrap();
                net.post(1, Mail::Conn(Box::new(detached)));
            }),
            on_mail: Box::new(move |net, _, mail| {
                if let Mail::Conn(detached) = mail {
                    let conn = net.attach(*detached);
                    net.out(conn).extend_from_slice(b"and from here");
                    net.close(conn);
                    moved.send(()).unwrap();
                }
            }),
            ..Probe::default()
        }
    });
    let mut client = loops[0].client();
    next(&moves);
    let got = read_exactly(&mut client, LEN);
    assert!(got == pattern(LEN));
    assert_eq!(finish(client), b"and from here");
}

#[test]
fn a_dropped_connection_is_closed() {
    let server = start(Probe {
        on_input: Box::new(|net, conn, data| {
            drop(net.detach(conn, b""));
            data.len()
        }),
        on_closed: Box::new(|_, _, _| panic!("a detached connection is not reported")),
        ..Probe::default()
    });
    let mut client = server.client();
    write(&mut client, b"x");
    assert!(finish(client).is_empty());
    assert_eq!(server.ask(|_, net| net.connections()), 0);
}

#[test]
fn a_connection_detached_outside_input_keeps_its_unconsumed_bytes() {
    // The loop keeps a partial frame; the connection is detached by a mail, not in `input`.
    let (heard, hears) = events();
    let server = start(Probe {
        on_input: Box::new(move |_, _, data| {
            heard.send(data.to_vec()).unwrap();
            if data.len() < 6 { 0 } else { data.len() }
        }),
        ..Probe::default()
    });
    let mut client = server.client();
    write(&mut client, b"abc");
    assert_eq!(next(&hears), b"abc");
    server.ask(|_, net| {
        let conn = net.open_connections().next().unwrap();
        let detached = net.detach(conn, b"").unwrap();
        assert_eq!(detached.unread(), b"abc");
        net.attach(detached);
    });
    assert_eq!(next(&hears), b"abc");
    write(&mut client, b"def");
    assert_eq!(next(&hears), b"abcdef");
    write(&mut client, b"abcdef");
    assert_eq!(next(&hears), b"abcdef");
}

#[test]
fn a_loop_with_work_takes_turns_and_one_without_sleeps() {
    let mut left = 1000;
    let server = start(Probe {
        on_turn: Box::new(move |_| {
            left -= 1;
            if left > 0 { Next::Again } else { Next::Sleep }
        }),
        ..Probe::default()
    });
    eventually("1000 turns", || server.ask(|_, net| net.counters().turns) > 1000);
    let before = server.ask(|_, net| net.counters());
    // Time for further turns, which there may not be.
    thread::sleep(Duration::from_millis(50));
    let after = server.ask(|_, net| net.counters());
    assert!(after.turns - before.turns < 5);
}

/// Two loops listen on one socket: it is closed when both have closed it, and one that is opened
/// at its address is served by both.
#[test]
fn a_listener_is_closed_and_opened_again() {
    let socket = local();
    let address = socket.local_addr().unwrap();
    let boxes: Vec<Mailbox<Mail>> = mailboxes(2);
    let loops: Vec<Running> = boxes
        .into_iter()
        .map(|mailbox| {
            let listeners = vec![local(), socket.try_clone().unwrap()];
            start_with(LoopConfig { listeners, ..LoopConfig::default() }, mailbox, echo())
        })
        .collect();
    drop(socket);
    let serves = |count: usize| {
        let mut clients: Vec<_> = (0..count).map(|_| connect(address)).collect();
        for client in &mut clients {
            write(client, b"x");
            assert_eq!(read_exactly(client, 1), b"x");
        }
        clients
    };
    let mut before = serves(4);
    for running in &loops {
        running.ask(|_, net| net.close_listener(1));
        // What is not there may be closed as well.
        running.ask(|_, net| net.close_listener(7));
    }
    assert!(std::net::TcpStream::connect(address).is_err(), "the listener is closed");
    write(&mut before[0], b"y");
    assert_eq!(read_exactly(&mut before[0], 1), b"y", "connections stay");
    let other = loops[0].client();
    let socket = tacho_net::bind(address, 16).unwrap();
    for running in &loops {
        let clone = socket.try_clone().unwrap();
        running.ask(|_, net| net.listen(1, clone)).unwrap();
        let clone = socket.try_clone().unwrap();
        assert!(running.ask(|_, net| net.listen(1 << 12, clone)).is_err(), "too many");
    }
    let after = serves(4);
    loops[0].ask(|_, net| net.stop_listening());
    loops[1].ask(|_, net| net.stop_listening());
    drop(socket);
    assert!(std::net::TcpStream::connect(address).is_err(), "the listener is closed");
    drop((other, before, after));
}
